#include "chiefd/journal_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "chiefd/journal_codec.h"
#include "transport/wire/checksum.h"

namespace disttrain::chiefd {
namespace {

constexpr std::array<char, 8> kMagic = {'D', 'T', 'R', 'N', 'J', 'R', 'N', 'L'};
constexpr std::size_t kFileHeaderBytes = 12;  // magic, u32 version
constexpr std::size_t kBatchHeaderBytes = 8;  // u32 length, u32 crc32c of length and content
constexpr std::uint32_t kMaxBatchBytes = 64 << 20;
constexpr std::uint32_t kBatches = 4;  // before this version a batch was one record, without a length of its own

using Bytes = std::vector<std::byte>;

// What to do about it.
const char* advice(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return ": free space on that disk, and the chief goes on where it was";
    case EACCES:
    case EPERM:
      return ": give this user the right, or set chief.state_directory";
    case EROFS:
      return ": mount it for writing (the kernel's log says whether the disk fails), or set chief.state_directory";
    case EIO:
      return ": the disk fails; look at the kernel's log";
    default:
      return "";
  }
}

tl::unexpected<Error> failed(const std::string& what, const std::string& path) {
  const int code = errno;
  const bool denied = code == EACCES || code == EPERM || code == EROFS;
  return fail(denied ? ErrorCode::kNoPermission : ErrorCode::kUnavailable,
              "can't " + what + " " + path + ": " + std::strerror(code) + advice(code));
}

void put_u32(Bytes& out, std::uint32_t value) {
  for (int i = 0; i < 4; ++i) out.push_back(static_cast<std::byte>((value >> (8 * i)) & 0xff));
}

std::uint32_t get_u32(std::span<const std::byte> bytes) {
  std::uint32_t value = 0;
  for (unsigned i = 0; i < 4; ++i)
    value |= static_cast<std::uint32_t>(std::to_integer<std::uint8_t>(bytes[i])) << (8 * i);
  return value;
}

void put_batch(Bytes& out, std::span<const std::byte> content) {
  const std::size_t begin = out.size();
  put_u32(out, static_cast<std::uint32_t>(content.size()));
  const std::uint32_t of_length = wire::crc32c(std::span(out).subspan(begin, 4));
  put_u32(out, wire::crc32c(content, of_length));
  out.insert(out.end(), content.begin(), content.end());
}

// As one batch, of several only where it would be too large.
void put_records(Bytes& out, std::span<const Record> records) {
  Bytes content;
  for (const Record& record : records) {
    const Bytes bytes = encode_record(record);
    if (!content.empty() && content.size() + bytes.size() > kMaxBatchBytes / 2)
      put_batch(out, std::exchange(content, {}));
    put_u32(content, static_cast<std::uint32_t>(bytes.size()));
    content.insert(content.end(), bytes.begin(), bytes.end());
  }
  if (!content.empty()) put_batch(out, content);
}

Status write_all(int fd, std::span<const std::byte> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return failed("write", path);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  if (::fdatasync(fd) != 0) return failed("make durable", path);
  return {};
}

Result<Bytes> read_all(int fd, const std::string& path) {
  Bytes bytes;
  std::array<std::byte, 65536> chunk;
  while (true) {
    const ssize_t got = ::read(fd, chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed("read", path);
    if (got == 0) return bytes;
    bytes.insert(bytes.end(), chunk.begin(), chunk.begin() + got);
  }
}

struct Recovered {
  JournalState state;
  std::uint64_t cut_bytes = 0;
};

Status apply_record(JournalState& state, std::span<const std::byte> bytes, const std::string& path) {
  const Result<Record> record = decode_record(bytes);
  if (!record)
    return fail(record.error().code,
                path + ": " + record.error().message + "; if a newer chiefd wrote it, install that version again");
  chiefd::apply(state, *record);
  return {};
}

Status apply_batch(JournalState& state, std::span<const std::byte> content, std::uint32_t version,
                   const std::string& path) {
  if (version < kBatches) return apply_record(state, content, path);
  while (!content.empty()) {
    const std::size_t length = content.size() < 4 ? SIZE_MAX : get_u32(content);
    if (length > content.size() || content.size() - 4 < length)
      return fail(ErrorCode::kData,
                  path + " has a record that is longer than its batch; move it away to begin a new one");
    if (Status applied = apply_record(state, content.subspan(4, length), path); !applied) return applied;
    content = content.subspan(4 + length);
  }
  return {};
}

// Reads batches up to the first that isn't whole. If whole ones follow it, the file is damaged, not torn: a chief that
// forgot decisions in its middle would break its promises.
Result<Recovered> recover(std::span<const std::byte> bytes, const std::string& path) {
  Recovered recovered;
  if (bytes.empty()) return recovered;
  if (bytes.size() < kFileHeaderBytes) {
    recovered.cut_bytes = bytes.size();
    return recovered;
  }
  if (std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0)
    return fail(ErrorCode::kData, path + " isn't a journal of chiefd; move it away to begin a new one");
  const std::uint32_t version = get_u32(bytes.subspan(kMagic.size()));
  if (version > kJournalVersion)
    return fail(ErrorCode::kConfig, path + " was written by a newer chiefd (journal version " +
                                        std::to_string(version) + ", this one knows up to " +
                                        std::to_string(kJournalVersion) + "): install that version again");
  bytes = bytes.subspan(kFileHeaderBytes);
  const auto length_of_first = [](std::span<const std::byte> rest) -> std::size_t {
    if (rest.size() < kBatchHeaderBytes) return 0;
    const std::uint32_t length = get_u32(rest);
    if (length == 0 || length > kMaxBatchBytes || rest.size() - kBatchHeaderBytes < length) return 0;
    const std::uint32_t expected = get_u32(rest.subspan(4));
    const std::uint32_t found = wire::crc32c(rest.subspan(kBatchHeaderBytes, length), wire::crc32c(rest.subspan(0, 4)));
    return found == expected ? length : 0;
  };
  while (const std::size_t length = length_of_first(bytes)) {
    const std::span content = bytes.subspan(kBatchHeaderBytes, length);
    if (Status applied = apply_batch(recovered.state, content, version, path); !applied)
      return tl::unexpected(applied.error());
    bytes = bytes.subspan(kBatchHeaderBytes + length);
  }
  // One write was torn at most, that of the last batch, as each waited for the one before it to be durable.
  for (std::size_t skip = 1; skip < std::min<std::size_t>(bytes.size(), 1 << 20); ++skip)
    if (length_of_first(bytes.subspan(skip)) != 0)
      return fail(ErrorCode::kData,
                  path + " is damaged before its end: restore it, or move it away to begin a new one");
  recovered.cut_bytes = bytes.size();
  return recovered;
}

Result<FileDescriptor> lock(const std::string& directory) {
  const std::string path = directory + "/lock";
  FileDescriptor fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0640));
  if (fd.get() < 0) return failed("open", path);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
  if (errno != EWOULDBLOCK) return failed("lock", path);
  return fail(ErrorCode::kConfig, "another chief keeps its journal in " + directory +
                                      ": stop it, or give this one another chief.state_directory");
}

Status sync_directory(const std::string& directory) {
  const FileDescriptor fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0) return failed("open", directory);
  if (::fsync(fd.get()) != 0) return failed("make durable", directory);
  return {};
}

// Writes the journal anew beside the old one and puts it in its place; gives the new file, open for appending.
Result<FileDescriptor> rewrite(const std::string& directory, const std::string& path, const JournalState& state) {
  const std::string beside = path + ".new";
  FileDescriptor fd(::open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640));
  if (fd.get() < 0) return failed("create", beside);
  Bytes bytes;
  for (char c : kMagic) bytes.push_back(static_cast<std::byte>(c));
  put_u32(bytes, kJournalVersion);
  for (const Record& record : compacted(state)) put_records(bytes, std::span(&record, 1));
  if (Status status = write_all(fd.get(), bytes, beside); !status) return tl::unexpected(status.error());
  if (::rename(beside.c_str(), path.c_str()) != 0) return failed("put in place", path);
  if (Status status = sync_directory(directory); !status) return tl::unexpected(status.error());
  return fd;
}

}  // namespace

FileDescriptor::FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (fd_ >= 0 && this != &other) ::close(fd_);
  if (this != &other) fd_ = std::exchange(other.fd_, -1);
  return *this;
}

FileDescriptor::~FileDescriptor() {
  if (fd_ >= 0) ::close(fd_);
}

JournalFile::JournalFile(FileDescriptor lock, FileDescriptor file, std::string directory, JournalState state)
    : lock_(std::move(lock)),
      file_(std::move(file)),
      directory_(std::move(directory)),
      path_(directory_ + "/journal"),
      state_(std::move(state)) {}

Result<JournalFile::Opened> JournalFile::open(const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (error) {
    errno = error.value();
    return failed("create", directory);
  }
  Result<FileDescriptor> locked = lock(directory);
  if (!locked) return tl::unexpected(locked.error());
  const std::string path = directory + "/journal";
  const FileDescriptor old(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (old.get() < 0 && errno != ENOENT) return failed("open", path);
  Bytes bytes;
  if (old.get() >= 0) {
    Result<Bytes> read = read_all(old.get(), path);
    if (!read) return tl::unexpected(read.error());
    bytes = std::move(*read);
  }
  Result<Recovered> recovered = recover(bytes, path);
  if (!recovered) return tl::unexpected(recovered.error());
  Result<FileDescriptor> file = rewrite(directory, path, recovered->state);
  if (!file) return tl::unexpected(file.error());
  return Opened{JournalFile(std::move(*locked), std::move(*file), directory, recovered->state), recovered->state,
                recovered->cut_bytes};
}

Status JournalFile::append(std::span<const Record> records) {
  Bytes bytes;
  put_records(bytes, records);
  for (const Record& record : records) chiefd::apply(state_, record);
  if (Status status = write_all(file_.get(), bytes, path_); !status) return status;
  bytes_ += bytes.size();
  return rewrite_if_far_grown();
}

// A crash on the way leaves the old journal, which has all that the new one has.
Status JournalFile::rewrite_if_far_grown() {
  if (bytes_ < kLeastRewritten || bytes_ / 4 < bytes_when_written_) return {};
  Result<FileDescriptor> file = rewrite(directory_, path_, state_);
  if (!file) return tl::unexpected(file.error());
  file_ = std::move(*file);
  struct stat info {};
  if (::fstat(file_.get(), &info) != 0) return failed("look at", path_);
  bytes_ = bytes_when_written_ = static_cast<std::uint64_t>(info.st_size);
  return {};
}

}  // namespace disttrain::chiefd
