#include "common/checkpoint/disk_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>
#include <utility>

#include "common/os/descriptor.h"
#include "common/os/regular_file.h"

namespace disttrain::checkpoint {
namespace {

// Returns advice for the user about this errno.
const char* advice(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return ": free space on that disk, or keep fewer checkpoints";
    case EFBIG:
      return ": raise this user's limit on the size of files (`ulimit -f`, LimitFSIZE of the unit)";
    case EACCES:
    case EPERM:
    case EROFS:
      return ": give the user of this program access, or choose another folder (checkpoint.directory)";
    case ENOENT:
    case ENOTDIR:
      return ": check that it exists and is mounted on this host";
    case EIO:
      return ": the disk has failed; see the kernel's log (dmesg)";
    default:
      return "";
  }
}

ErrorCode code_of(int error) {
  if (error == ENOENT || error == ENOTDIR || error == ELOOP) return ErrorCode::kNoInput;
  if (error == EACCES || error == EPERM || error == EROFS) return ErrorCode::kNoPermission;
  return ErrorCode::kFailed;
}

tl::unexpected<Error> failed(const std::string& doing, const std::string& path, int error) {
  return fail(code_of(error), "can't " + doing + " " + path + ": " + std::strerror(error) + advice(error));
}

// Direct I/O (O_DIRECT) needs addresses, offsets and sizes that are multiples of this number.
constexpr std::size_t kAlignment = 4096;
constexpr std::size_t kBufferBytes = 4 << 20;

// Writes with direct I/O if the file system can, so that the data bypasses the page cache. A checkpoint isn't read
// soon, and filling the page cache with it would slow the training on this host by a sixth.
class DiskOutput final : public OutputFile {
 public:
  DiskOutput(std::string path, Descriptor fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  Status reserve(std::uint64_t bytes) override {
    if (bytes == 0) return {};
    const int error = ::posix_fallocate(fd_.get(), 0, static_cast<off_t>(bytes));
    if (error == 0 || error == EOPNOTSUPP || error == EINVAL) return {};  // some file systems can't reserve space
    return failed("reserve " + std::to_string(bytes) + " bytes for", path_, error);
  }
  Status append(Bytes bytes) override {
    // A small file isn't worth a buffer.
    if (buffer_ == nullptr && bytes.size() < kAlignment) return write_all(bytes);
    if (buffer_ == nullptr) begin_buffer();
    while (!bytes.empty()) {
      if (can_go_straight(bytes)) {
        const std::size_t aligned = bytes.size() / kAlignment * kAlignment;
        Status written = write_buffer();
        if (written) written = write_all(bytes.first(aligned));
        if (!written) return written;
        bytes = bytes.subspan(aligned);
        continue;
      }
      const std::size_t count = std::min(bytes.size(), kBufferBytes - buffered_);
      std::memcpy(buffer_.get() + buffered_, bytes.data(), count);
      buffered_ += count;
      bytes = bytes.subspan(count);
      if (buffered_ == kBufferBytes)
        if (Status written = write_buffer(); !written) return written;
    }
    return {};
  }
  Status sync() override {
    if (buffered_ > 0) {
      // Direct I/O can't write the unaligned rest, so turn direct I/O off.
      ::fcntl(fd_.get(), F_SETFL, O_WRONLY);
      if (Status written = write_buffer(); !written) return written;
    }
    if (::fsync(fd_.get()) != 0) return failed("sync", path_, errno);
    return {};
  }

 private:
  struct Free {
    void operator()(std::byte* bytes) const { std::free(bytes); }
  };

  // Returns true if `bytes` can be written directly from the caller's memory, without a copy into the buffer.
  bool can_go_straight(Bytes bytes) const {
    return bytes.size() >= kBufferBytes / 4 && buffered_ % kAlignment == 0 &&
           reinterpret_cast<std::uintptr_t>(bytes.data()) % kAlignment == 0;
  }
  void begin_buffer() {
    buffer_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, kBufferBytes)));
    if (buffer_ == nullptr) throw std::bad_alloc();
    // Turns on direct I/O, but only if nothing is written yet. If the file system doesn't support direct I/O, fcntl()
    // fails and changes nothing.
    if (::lseek(fd_.get(), 0, SEEK_CUR) == 0) ::fcntl(fd_.get(), F_SETFL, O_WRONLY | O_DIRECT);
  }
  Status write_buffer() { return write_all(Bytes(buffer_.get(), std::exchange(buffered_, 0))); }
  Status write_all(Bytes bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(fd_.get(), bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      // Some file systems accept O_DIRECT but then refuse the write. Retry without O_DIRECT.
      if (written < 0 && errno == EINVAL && (::fcntl(fd_.get(), F_GETFL) & O_DIRECT) != 0 &&
          ::fcntl(fd_.get(), F_SETFL, O_WRONLY) == 0)
        continue;
      if (written < 0) return failed("write", path_, errno);
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
    return {};
  }

  const std::string path_;
  const Descriptor fd_;
  std::unique_ptr<std::byte, Free> buffer_;
  std::size_t buffered_ = 0;
};

class DiskInput final : public InputFile {
 public:
  DiskInput(std::string path, Descriptor fd, std::uint64_t size)
      : path_(std::move(path)), fd_(std::move(fd)), size_(size) {}

  std::uint64_t size() const override { return size_; }
  Status read_at(std::uint64_t offset, MutableBytes out) override {
    while (!out.empty()) {
      const ssize_t got = ::pread(fd_.get(), out.data(), out.size(), static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return failed("read", path_, errno);
      if (got == 0)
        return fail(ErrorCode::kData, path_ + " ends at byte " + std::to_string(offset) + "; expected " +
                                          std::to_string(out.size()) + " bytes more: the file is truncated");
      offset += static_cast<std::uint64_t>(got);
      out = out.subspan(static_cast<std::size_t>(got));
    }
    return {};
  }
  // NFS gives an exclusive lock only on a file that is open for writing (flock(2)), so this function re-opens the file
  // for writing. If that fails, the function tries the lock on the file as it is, because other file systems don't have
  // this rule.
  Result<bool> try_lock(LockKind kind) override {
    const bool is_shared = kind == LockKind::kShared;
    if (!is_shared && !writable_) {
      writable_ = std::make_unique<Descriptor>(
          ::open(("/proc/self/fd/" + std::to_string(fd_.get())).c_str(), O_RDWR | O_CLOEXEC));
      if (writable_->get() < 0) writable_.reset();
    }
    const int fd = !is_shared && writable_ ? writable_->get() : fd_.get();
    while (::flock(fd, (is_shared ? LOCK_SH : LOCK_EX) | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno == EWOULDBLOCK) return false;
      return failed("lock", path_, errno);
    }
    return true;
  }
  Status make_private() override {
    if (::fchmod(fd_.get(), 0600) != 0) return failed("change the permissions of", path_, errno);
    return {};
  }

 private:
  const std::string path_;
  const Descriptor fd_;
  const std::uint64_t size_;
  std::unique_ptr<Descriptor> writable_;  // second descriptor of the file, open for writing; holds the exclusive lock
};

}  // namespace

Result<std::unique_ptr<OutputFile>> DiskFiles::create(const std::string& path) {
  Descriptor fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (fd.get() < 0) return failed("create", path, errno);
  return std::make_unique<DiskOutput>(path, std::move(fd));
}

Result<std::unique_ptr<OutputFile>> DiskFiles::create_private(const std::string& path) {
  Descriptor fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (fd.get() < 0) return failed("create", path, errno);
  return std::make_unique<DiskOutput>(path, std::move(fd));
}

Result<EntryKind> DiskFiles::kind_of(const std::string& path) {
  struct stat about {};
  if (::lstat(path.c_str(), &about) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return EntryKind::kNone;
    return failed("look at", path, errno);
  }
  if (S_ISREG(about.st_mode)) return EntryKind::kFile;
  if (S_ISDIR(about.st_mode)) return EntryKind::kFolder;
  return S_ISLNK(about.st_mode) ? EntryKind::kLink : EntryKind::kOther;
}

Result<std::unique_ptr<InputFile>> DiskFiles::open(const std::string& path) {
  RegularFile opened = open_regular_file(path);
  if (!opened.file && opened.error != 0) return failed("open", path, opened.error);
  if (!opened.file) return fail(ErrorCode::kData, path + " isn't a file: " + opened.problem);
  return std::make_unique<DiskInput>(path, std::move(opened.file), opened.bytes);
}

Status DiskFiles::make_directory(const std::string& path) {
  if (::mkdir(path.c_str(), 0755) == 0 || errno == EEXIST) return {};
  return failed("make the folder", path, errno);
}

Result<std::vector<std::string>> DiskFiles::list(const std::string& path) {
  DIR* folder = ::opendir(path.c_str());
  if (folder == nullptr) return failed("list", path, errno);
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(folder)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
    errno = 0;
  }
  const int error = errno;
  ::closedir(folder);
  if (error != 0) return failed("list", path, error);
  std::sort(names.begin(), names.end());
  return names;
}

Status DiskFiles::rename(const std::string& from, const std::string& to) {
  // Check first, because rename(2) would replace an existing empty folder.
  if (::access(to.c_str(), F_OK) == 0) return failed("rename " + from + " to", to, EEXIST);
  return replace(from, to);
}

Status DiskFiles::replace(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return failed("rename " + from + " to", to, errno);
  return {};
}

Status DiskFiles::remove_file(const std::string& path) {
  if (::unlink(path.c_str()) != 0) return failed("remove", path, errno);
  return {};
}

Status DiskFiles::remove_directory(const std::string& path) {
  if (::rmdir(path.c_str()) != 0) return failed("remove the folder", path, errno);
  return {};
}

Status DiskFiles::sync_directory(const std::string& path) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0) return failed("open the folder", path, errno);
  if (::fsync(fd.get()) != 0) return failed("sync the folder", path, errno);
  return {};
}

Result<std::string> DiskFiles::follow_links(const std::string& path) {
  constexpr int kMostLinks = 40;  // as the kernel's
  std::filesystem::path at = path;
  if (!at.has_filename()) at = at.parent_path();  // for a name that ends in "/"
  for (int links = 0; links < kMostLinks; ++links) {
    std::error_code error;
    const std::filesystem::file_status status = std::filesystem::symlink_status(at, error);
    if (error) return failed("look at", at.string(), error.value());
    if (status.type() != std::filesystem::file_type::symlink) return at.string();
    const std::filesystem::path target = std::filesystem::read_symlink(at, error);
    if (error) return failed("read the link", at.string(), error.value());
    at = (at.parent_path() / target).lexically_normal();
    if (!at.has_filename()) at = at.parent_path();
  }
  return failed("follow the links of", path, ELOOP);
}

}  // namespace disttrain::checkpoint
