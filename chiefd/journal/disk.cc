#include "chiefd/journal/disk.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <utility>

#include "common/os/descriptor.h"

namespace disttrain::chiefd {
namespace {

// The end of an error's message, which says what the operator can do.
const char* advice(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return ": free space on that disk; the chief then goes on where it was";
    case EFBIG:
      return ": raise the user's limit on the size of files (`ulimit -f`, or LimitFSIZE in the systemd unit)";
    case EACCES:
    case EPERM:
      return ": give the chief's user access to it, or set chief.state_directory to another folder";
    case EROFS:
      return ": mount its file system for writing (the kernel's log says whether the disk has failed), or set "
             "chief.state_directory to another folder";
    case EIO:
      return ": the disk has failed; see the kernel's log (dmesg)";
    case EISDIR:
      return ": this is a folder, but the chief needs a file there; move the folder away";
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

Status write_piece(int fd, const Piece& piece, const std::string& path) {
  std::span<const std::byte> bytes = piece.bytes;
  auto offset = static_cast<off_t>(piece.offset);
  while (!bytes.empty()) {
    const ssize_t written = ::pwrite(fd, bytes.data(), bytes.size(), offset);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return failed("write", path);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
    offset += written;
  }
  return {};
}

// kFails: a file with more than `most` bytes is an error. kIsCut: read_file() returns its first `most` bytes.
enum class Excess { kFails, kIsCut };

Result<std::optional<std::vector<std::byte>>> read_file(const std::string& path, std::uint64_t most, Excess excess) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0 && errno == ENOENT) return std::nullopt;
  if (fd.get() < 0) return failed("open", path);
  struct stat about {};
  if (::fstat(fd.get(), &about) != 0) return failed("look at", path);
  if (!S_ISREG(about.st_mode))
    return fail(ErrorCode::kConfig,
                path + " isn't a regular file: move it away, or set chief.state_directory to another folder");
  const auto size = static_cast<std::uint64_t>(about.st_size);
  if (size > most && excess == Excess::kFails) return tl::unexpected(too_large_file(path, most));
  std::vector<std::byte> bytes;
  bytes.reserve(std::min(size, most));
  std::array<std::byte, 65536> chunk;
  while (true) {
    const ssize_t got = ::read(fd.get(), chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed("read", path);
    const std::uint64_t taken = std::min(static_cast<std::uint64_t>(got), most - bytes.size());
    const bool is_cut = taken < static_cast<std::uint64_t>(got);
    if (is_cut && excess == Excess::kFails) return tl::unexpected(too_large_file(path, most));
    bytes.insert(bytes.end(), chunk.begin(), chunk.begin() + static_cast<std::ptrdiff_t>(taken));
    if (got == 0 || is_cut) return bytes;
  }
}

Status sync_folder(const std::string& path) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0) return failed("open", path);
  if (::fsync(fd.get()) != 0) return failed("make durable", path);
  return {};
}

// Makes the folder and its missing parents, and makes their names durable.
Status make_folder(const std::string& directory) {
  std::error_code error;
  const std::filesystem::path path = std::filesystem::path(directory).lexically_normal();
  std::vector<std::filesystem::path> parents;
  for (std::filesystem::path at = path; !at.empty() && !std::filesystem::exists(at, error); at = at.parent_path())
    parents.push_back(at.has_parent_path() ? at.parent_path() : std::filesystem::path("."));
  std::filesystem::create_directories(path, error);
  if (error) {
    errno = error.value();
    return failed("create", directory);
  }
  for (const std::filesystem::path& parent : parents)
    if (Status synced = sync_folder(parent.string()); !synced) return synced;
  return {};
}

class LocalDisk final : public JournalDisk {
 public:
  LocalDisk(std::string directory, Descriptor lock) : directory_(std::move(directory)), lock_(std::move(lock)) {}

  Result<std::optional<std::vector<std::byte>>> read(const std::string& name, std::uint64_t most) override {
    return read_file(path_of(name), most, Excess::kFails);
  }

  Result<std::optional<std::vector<std::byte>>> read_first(const std::string& name, std::uint64_t most) override {
    return read_file(path_of(name), most, Excess::kIsCut);
  }

  Status create(const std::string& name, std::span<const std::byte> bytes) override {
    const std::string path = path_of(name);
    remove(name);
    Descriptor fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0640));
    if (fd.get() < 0) return failed("create", path);
    if (Status written = write_piece(fd.get(), Piece{0, bytes}, path); !written) return written;
    if (::fsync(fd.get()) != 0) return failed("make durable", path);
    files_[name] = std::move(fd);
    return {};
  }

  Status write(const std::string& name, std::span<const Piece> pieces) override {
    const std::string path = path_of(name);
    const auto file = files_.find(name);
    if (file == files_.end()) return fail(ErrorCode::kSoftware, path + " isn't open for writing");
    for (const Piece& piece : pieces)
      if (Status written = write_piece(file->second.get(), piece, path); !written) return written;
    if (::fdatasync(file->second.get()) != 0) return failed("make durable", path);
    return {};
  }

  Status rename(const std::string& from, const std::string& to) override {
    if (::rename(path_of(from).c_str(), path_of(to).c_str()) != 0) return failed("put in place", path_of(to));
    auto file = files_.extract(from);
    files_.erase(to);
    if (file.empty()) return {};
    file.key() = to;
    files_.insert(std::move(file));
    return {};
  }

  void remove(const std::string& name) override {
    files_.erase(name);
    ::unlink(path_of(name).c_str());
  }

  Status sync_names() override { return sync_folder(directory_); }

  std::string path_of(const std::string& name) const override { return directory_ + "/" + name; }

 private:
  const std::string directory_;
  const Descriptor lock_;
  std::map<std::string, Descriptor> files_;  // open for writing
};

// Names the chief that holds the lock. That chief has written its process number into the lock file.
std::string holder_of(int lock) {
  std::array<char, 32> text{};
  const ssize_t got = ::pread(lock, text.data(), text.size() - 1, 0);
  const std::string number(text.data(), got > 0 ? std::strspn(text.data(), "0123456789") : 0);
  return number.empty() ? "another chief" : "another chief (process " + number + ")";
}

Result<Descriptor> lock(const std::string& directory) {
  const std::string path = directory + "/lock";
  Descriptor fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640));
  if (fd.get() < 0) return failed("open", path);
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return failed("lock", path);
    return fail(ErrorCode::kConfig, holder_of(fd.get()) + " keeps its journal in " + directory +
                                        ": stop that chief, or set another chief.state_directory for this one");
  }
  const std::string number = std::to_string(::getpid()) + "\n";
  // Ignore a failure to write the number, because the number is only for messages. So a chief can take the lock even if
  // its disk is full.
  if (::ftruncate(fd.get(), 0) == 0) (void)!::pwrite(fd.get(), number.data(), number.size(), 0);
  return fd;
}

}  // namespace

Error too_large_file(const std::string& path, std::uint64_t most) {
  return Error{ErrorCode::kConfig, path + " has more than the " + std::to_string(most) +
                                       " bytes that such a file of a chief may have: move it away and put back a copy "
                                       "of the chief's own file, or set chief.state_directory to another folder"};
}

Result<std::unique_ptr<JournalDisk>> open_journal_disk(const std::string& directory) {
  if (Status made = make_folder(directory); !made) return tl::unexpected(made.error());
  Result<Descriptor> locked = lock(directory);
  if (!locked) return tl::unexpected(locked.error());
  return std::make_unique<LocalDisk>(directory, std::move(*locked));
}

}  // namespace disttrain::chiefd
