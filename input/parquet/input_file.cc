#include "input/parquet/input_file.h"

#include <arrow/buffer.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "common/os/regular_file.h"

namespace disttrain::input {

Result<std::shared_ptr<InputFile>> InputFile::open(const std::string& path, ReadCounts counts) {
  RegularFile opened = open_regular_file(path);
  if (!opened.file)
    return fail(opened.error == EACCES || opened.error == EPERM ? ErrorCode::kNoPermission : ErrorCode::kNoInput,
                path + ": can't be read: " + opened.problem);
  return std::shared_ptr<InputFile>(new InputFile(std::move(opened.file), counts));
}

FileStamp InputFile::stamp() const {
  struct stat about {};
  if (::fstat(file_.get(), &about) != 0) return {};
  return {static_cast<std::uint64_t>(about.st_size), modified_ns(about)};
}

arrow::Status InputFile::Close() {
  file_ = Descriptor();
  return arrow::Status::OK();
}

bool InputFile::closed() const {
  return !file_;
}

arrow::Result<std::int64_t> InputFile::Tell() const {
  return position_;
}

arrow::Status InputFile::Seek(std::int64_t position) {
  if (position < 0) return arrow::Status::IOError("seek to a negative position");
  position_ = position;
  return arrow::Status::OK();
}

arrow::Result<std::int64_t> InputFile::GetSize() {
  return static_cast<std::int64_t>(stamp().bytes);
}

arrow::Result<std::int64_t> InputFile::Read(std::int64_t bytes, void* out) {
  arrow::Result<std::int64_t> got = ReadAt(position_, bytes, out);
  if (got.ok()) position_ += *got;
  return got;
}

arrow::Result<std::shared_ptr<arrow::Buffer>> InputFile::Read(std::int64_t bytes) {
  arrow::Result<std::shared_ptr<arrow::Buffer>> got = ReadAt(position_, bytes);
  if (got.ok()) position_ += (*got)->size();
  return got;
}

arrow::Result<std::int64_t> InputFile::ReadAt(std::int64_t position, std::int64_t bytes, void* out) {
  if (position < 0 || bytes < 0) return arrow::Status::IOError("a negative position or length");
  const auto begin = std::chrono::steady_clock::now();
  std::int64_t done = 0;
  while (done < bytes) {
    const ssize_t got = ::pread(file_.get(), static_cast<char*>(out) + done, static_cast<std::size_t>(bytes - done),
                                static_cast<off_t>(position + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return arrow::Status::IOError(std::strerror(errno));
    if (got == 0) break;
    done += got;
  }
  const auto took = std::chrono::steady_clock::now() - begin;
  if (counts_.read_ns != nullptr)
    counts_.read_ns->fetch_add(static_cast<std::uint64_t>(std::chrono::nanoseconds(took).count()),
                               std::memory_order_relaxed);
  if (counts_.bytes_read != nullptr && counts_bytes_)
    counts_.bytes_read->fetch_add(static_cast<std::uint64_t>(done), std::memory_order_relaxed);
  return done;
}

// A damaged file may name a huge length. Only as much memory is taken as the file has bytes.
arrow::Result<std::shared_ptr<arrow::Buffer>> InputFile::ReadAt(std::int64_t position, std::int64_t bytes) {
  const auto size = static_cast<std::int64_t>(stamp().bytes);
  if (position < 0 || bytes < 0 || position > size) return arrow::Status::IOError("a place behind the end of the file");
  ARROW_ASSIGN_OR_RAISE(std::unique_ptr<arrow::ResizableBuffer> buffer,
                        arrow::AllocateResizableBuffer(std::min(bytes, size - position)));
  ARROW_ASSIGN_OR_RAISE(const std::int64_t got, ReadAt(position, buffer->size(), buffer->mutable_data()));
  ARROW_RETURN_NOT_OK(buffer->Resize(got));
  return std::shared_ptr<arrow::Buffer>(std::move(buffer));
}

}  // namespace disttrain::input
