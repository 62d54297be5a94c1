#include "input/file_reader.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "common/os/regular_file.h"

namespace disttrain::input {

namespace {

constexpr std::uint64_t kMostReadAheadBytes = 256 * 1024;

Error system_error(const std::string& path, const std::string& what, int number) {
  const ErrorCode code = number == EACCES || number == EPERM ? ErrorCode::kNoPermission : ErrorCode::kNoInput;
  return Error{code, path + ": " + what + ": " + std::strerror(number)};
}

}  // namespace

FileReader::FileReader(std::string path, Descriptor file, std::uint64_t file_bytes, std::function<bool()> is_cancelled,
                       std::uint64_t max_expansion)
    : path_(std::move(path)),
      file_(std::move(file)),
      file_bytes_(file_bytes),
      is_cancelled_(std::move(is_cancelled)),
      max_expansion_(max_expansion),
      buffer_bytes_(std::min(kMostReadAheadBytes, file_bytes + 1)),
      buffer_(std::make_unique_for_overwrite<std::byte[]>(buffer_bytes_)) {}

FileReader::~FileReader() = default;

Result<std::unique_ptr<FileReader>> FileReader::open(const std::string& path, std::function<bool()> is_cancelled,
                                                     std::uint64_t max_expansion, bool may_be_zip) {
  RegularFile opened = open_regular_file(path);
  if (!opened.file && opened.error != 0)
    return tl::unexpected(system_error(path, "can't open this data file", opened.error));
  if (!opened.file)
    return fail(ErrorCode::kNoInput,
                path + ": " + opened.problem +
                    ", expected a data file: change the pattern or path so that it names only files");
  std::unique_ptr<FileReader> reader(
      new FileReader(path, std::move(opened.file), opened.bytes, std::move(is_cancelled), max_expansion));
  if (Status filled = reader->refill(); !filled) return tl::unexpected(filled.error());
  const std::span<const std::byte> begin(reader->buffer_.get(), reader->end_);
  reader->compression_ = compression_of(begin);
  if (const char* const unread = unread_compression(begin); unread != nullptr) {
    const bool is_zip = std::string_view(unread) == "zip";
    if (!is_zip || !may_be_zip)
      return fail(ErrorCode::kData, path + ": the file is " +
                                        (is_zip ? "a zip archive" : "compressed by " + std::string(unread)) +
                                        ", but disttrain reads gzip and zstd: decompress the file" +
                                        (is_zip ? ", or set data.format = \"npz\" if NumPy wrote it" : ""));
  }
  const Compression named = compression_by_name(path);
  if (reader->packed()) {
    reader->decompressor_ = Decompressor::make(reader->compression_);
    if (reader->decompressor_ == nullptr)
      return fail(ErrorCode::kConfig, path + ": not enough memory to decompress it");
  } else if (named != Compression::kNone) {
    const bool is_gzip = named == Compression::kGzip;
    return fail(ErrorCode::kData, path + ": its name ends in " + (is_gzip ? ".gz" : ".zst") + ", but it " +
                                      (reader->end_ == 0 ? "is empty"
                                       : is_gzip         ? "doesn't begin with gzip's bytes 1f 8b"
                                                         : "doesn't begin with zstd's bytes 28 b5 2f fd") +
                                      ": fetch it again, or rename it if it isn't compressed");
  }
  return reader;
}

bool FileReader::packed() const {
  return compression_ != Compression::kNone;
}

std::uint64_t FileReader::most_content_bytes() const {
  return file_bytes_ * largest_ratio(compression_);
}

Status FileReader::refill() {
  if (is_cancelled_ && is_cancelled_()) return fail(ErrorCode::kTemporary, path_ + ": reading it was cancelled");
  while (!file_ended_) {
    const ssize_t got = ::read(file_.get(), buffer_.get(), buffer_bytes_);
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
  std::size_t done = 0;
  const auto bad = [this, &done](const std::string& what) {
    return fail(ErrorCode::kData, path_ + ": " + what + " after " + std::to_string(content_bytes_ + done) +
                                      " decompressed bytes: the file is damaged, fetch or copy it again");
  };
  while (done < out.size() && !has_ended_) {
    if (begin_ == end_ && !may_have_more_) {
      if (Status filled = refill(); !filled) return tl::unexpected(filled.error());
      if (file_ended_ && decompressor_->is_between_parts()) {
        has_ended_ = true;
        break;
      }
      if (file_ended_) return bad(std::string(to_string(compression_)) + " data ends too early (truncated)");
    }
    const Decompressor::Step step = decompressor_->step({buffer_.get() + begin_, end_ - begin_}, out.subspan(done));
    begin_ += step.taken;
    done += step.given;
    may_have_more_ = step.given > 0 && done == out.size();
    if (step.no_memory) return fail(ErrorCode::kConfig, path_ + ": not enough memory to decompress it");
    if (content_bytes_ + done > most_content(file_bytes_, max_expansion_))
      return tl::unexpected(expansion_error(path_, file_bytes_, max_expansion_));
    if (step.problem) return bad("corrupt " + std::string(to_string(compression_)) + " data (" + *step.problem + ")");
  }
  return done;
}

}  // namespace disttrain::input
