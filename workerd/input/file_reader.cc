#include "workerd/input/file_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace disttrain::input {

namespace {

constexpr std::size_t kReadAheadBytes = 256 * 1024;
// The highest compression ratio of deflate (RFC 1951): 2 bits can stand for 258 bytes of content.
constexpr std::uint64_t kMaxDeflateRatio = 1032;

Error system_error(const std::string& path, const std::string& what, int number) {
  const ErrorCode code = number == EACCES || number == EPERM ? ErrorCode::kNoPermission : ErrorCode::kNoInput;
  return Error{code, path + ": " + what + ": " + std::strerror(number)};
}

bool ends_with_gz(const std::string& path) {
  return path.size() > 3 && path.compare(path.size() - 3, 3, ".gz") == 0;
}

}  // namespace

// A zlib stream that decompresses a gzip file. Such a file consists of one or more gzip members.
class FileReader::Inflater {
 public:
  Inflater() { ready_ = inflateInit2(&stream_, 15 + 16) == Z_OK; }  // 16: gzip, not zlib
  ~Inflater() {
    if (ready_) inflateEnd(&stream_);
  }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  bool ready() const { return ready_; }
  z_stream& stream() { return stream_; }
  bool between_members = true;
  bool ended = false;  // the last member is complete and the file has ended

 private:
  z_stream stream_{};
  bool ready_ = false;
};

FileReader::FileReader(std::string path, Descriptor file, std::uint64_t file_bytes, std::function<bool()> is_cancelled)
    : path_(std::move(path)),
      file_(std::move(file)),
      file_bytes_(file_bytes),
      is_cancelled_(std::move(is_cancelled)),
      buffer_(std::make_unique_for_overwrite<std::byte[]>(kReadAheadBytes)) {}

FileReader::~FileReader() = default;

Result<std::unique_ptr<FileReader>> FileReader::open(const std::string& path, std::function<bool()> is_cancelled) {
  // If the path names a pipe, open() without O_NONBLOCK would block until another process writes to it.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return tl::unexpected(system_error(path, "can't open this data file", errno));
  auto file = Descriptor(fd);
  struct stat about {};
  if (::fstat(fd, &about) != 0) return tl::unexpected(system_error(path, "can't read this data file", errno));
  if (!S_ISREG(about.st_mode)) {
    return fail(ErrorCode::kNoInput, path + ": is " + (S_ISDIR(about.st_mode) ? "a folder" : "not a regular file") +
                                         ", expected a data file: change the pattern so that it matches only files");
  }
  std::unique_ptr<FileReader> reader(
      new FileReader(path, std::move(file), static_cast<std::uint64_t>(about.st_size), std::move(is_cancelled)));
  if (Status filled = reader->refill(); !filled) return tl::unexpected(filled.error());
  const bool gzip = reader->end_ >= 2 && reader->buffer_[0] == std::byte{0x1f} && reader->buffer_[1] == std::byte{0x8b};
  if (gzip) {
    reader->inflater_ = std::make_unique<Inflater>();
    if (!reader->inflater_->ready()) return fail(ErrorCode::kConfig, path + ": not enough memory to decompress it");
  } else if (ends_with_gz(path)) {
    return fail(ErrorCode::kData, path + ": its name ends in .gz, but it " +
                                      (reader->end_ == 0 ? "is empty" : "doesn't begin with gzip's bytes 1f 8b") +
                                      ": fetch it again, or rename it if it isn't compressed");
  }
  return reader;
}

bool FileReader::packed() const {
  return inflater_ != nullptr;
}

std::uint64_t FileReader::most_content_bytes() const {
  return packed() ? file_bytes_ * kMaxDeflateRatio : file_bytes_;
}

Status FileReader::refill() {
  if (is_cancelled_ && is_cancelled_()) return fail(ErrorCode::kTemporary, path_ + ": reading it was cancelled");
  while (!file_ended_) {
    const ssize_t got = ::read(file_.get(), buffer_.get(), kReadAheadBytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return tl::unexpected(system_error(path_, "reading it failed", errno));
    begin_ = 0;
    end_ = static_cast<std::size_t>(got);
    if (got == 0) file_ended_ = true;
    break;
  }
  return {};
}

Result<std::size_t> FileReader::read(std::span<std::byte> out) {
  Result<std::size_t> got = packed() ? read_packed(out) : read_plain(out);
  if (got) content_bytes_ += *got;
  return got;
}

Result<std::size_t> FileReader::read_plain(std::span<std::byte> out) {
  std::size_t done = 0;
  while (done < out.size()) {
    if (begin_ == end_) {
      if (Status filled = refill(); !filled) return tl::unexpected(filled.error());
      if (file_ended_) break;
    }
    const std::size_t count = std::min(out.size() - done, end_ - begin_);
    std::memcpy(out.data() + done, buffer_.get() + begin_, count);
    begin_ += count;
    done += count;
  }
  return done;
}

Result<std::size_t> FileReader::read_packed(std::span<std::byte> out) {
  z_stream& stream = inflater_->stream();
  std::size_t done = 0;
  const auto bad = [this, &done](const std::string& what) {
    return fail(ErrorCode::kData, path_ + ": " + what + " after " + std::to_string(content_bytes_ + done) +
                                      " decompressed bytes: the file is damaged, fetch or copy it again");
  };
  while (done < out.size() && !inflater_->ended) {
    if (begin_ == end_) {
      if (Status filled = refill(); !filled) return tl::unexpected(filled.error());
      if (file_ended_ && inflater_->between_members) {
        inflater_->ended = true;
        break;
      }
      if (file_ended_) return bad("gzip data ends too early (truncated)");
    }
    // A gzip file may have several members, for example after `cat a.gz b.gz`. zlib checks the header of each.
    inflater_->between_members = false;
    stream.next_in = reinterpret_cast<Bytef*>(buffer_.get() + begin_);
    stream.avail_in = static_cast<uInt>(end_ - begin_);
    const std::size_t room = std::min<std::size_t>(out.size() - done, 1u << 30);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + done);
    stream.avail_out = static_cast<uInt>(room);
    const int answer = inflate(&stream, Z_NO_FLUSH);
    begin_ = end_ - stream.avail_in;
    done += room - stream.avail_out;
    if (answer == Z_STREAM_END) {
      inflater_->between_members = true;
      inflateReset(&stream);
    } else if (answer == Z_MEM_ERROR) {
      return fail(ErrorCode::kConfig, path_ + ": not enough memory to decompress it");
    } else if (answer != Z_OK && answer != Z_BUF_ERROR) {
      return bad(std::string("corrupt gzip data (zlib: ") + (stream.msg != nullptr ? stream.msg : "no reason given") +
                 ")");
    }
  }
  return done;
}

}  // namespace disttrain::input
