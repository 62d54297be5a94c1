#include "input/index_builder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "common/os/regular_file.h"
#include "input/decompressor.h"
#include "input/file_reader.h"
#include "input/read_parallel.h"
#include "input/record_stream.h"

namespace disttrain::input {

namespace {

Result<BuiltFile> find_records(const IndexOptions& options, const std::string& folder, const RecordFormat& format,
                               const std::string& path) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0)
    return fail(ErrorCode::kNoInput, path + ": can't be read: " + std::strerror(errno));
  BuiltFile built{
      .file = {.path = path, .bytes = static_cast<std::uint64_t>(about.st_size), .modified_ns = modified_ns(about)},
      .places = PlacesOfFile(folder)};
  if (options.is_cancelled && options.is_cancelled())
    return fail(ErrorCode::kTemporary, path + ": reading it was cancelled");
  // The size of a file that is one record says all. To read thousands of images would take long.
  if (format.is_file_record() && S_ISREG(about.st_mode) && built.file.bytes > 0 &&
      compression_by_name(path) == Compression::kNone && ::access(path.c_str(), R_OK) == 0) {
    built.file.content_bytes = built.file.bytes;
    built.file.records = 1;
    Status added = built.places.add({0, built.file.bytes});
    return added ? Result<BuiltFile>(std::move(built)) : tl::unexpected(std::move(added.error()));
  }
  Result<std::unique_ptr<FileReader>> file = FileReader::open(path, options.is_cancelled, options.max_expansion);
  if (!file) return tl::unexpected(std::move(file.error()));
  built.file.is_packed = (*file)->packed();
  RecordStream stream(**file, format);
  for (;;) {
    const Result<bool> more = stream.next();
    if (!more.has_value()) return tl::unexpected(more.error());
    if (!*more) break;
    for (const RecordPlace& place : stream.records()) {
      Status added = built.places.add({stream.block().offset + place.begin, place.bytes});
      if (!added) return tl::unexpected(std::move(added.error()));
    }
    built.file.content_bytes = stream.block().offset + stream.block().bytes.size();
  }
  built.file.records = built.places.records();
  if (built.file.records == 0)
    return fail(ErrorCode::kData, path + ": has no records, expected at least one: fetch it again or leave it out");
  return built;
}

}  // namespace

Status PlacesOfFile::add(const IndexedPlace& place) {
  places_.push_back(place);
  return places_.size() < kMostInMemory ? Status() : spool();
}

Status PlacesOfFile::spool() {
  const auto failed = [this] {
    return fail(ErrorCode::kNoInput,
                folder_ + ": can't write a temporary file for the index of the data: " + std::strerror(errno) +
                    "; free some space, or set data.index to another folder");
  };
  if (!file_) {
    file_ = open_temporary_file(folder_);
    if (!file_) return failed();
  }
  const auto bytes = std::as_bytes(std::span(places_));
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t wrote = ::write(file_.get(), bytes.data() + done, bytes.size() - done);
    if (wrote < 0 && errno != EINTR) return failed();
    done += wrote > 0 ? static_cast<std::size_t>(wrote) : 0;
  }
  spooled_ += places_.size();
  places_.clear();
  return {};
}

Result<std::size_t> PlacesOfFile::read_back(std::uint64_t first, std::vector<IndexedPlace>& to) const {
  to.resize(std::min<std::uint64_t>(kMostInMemory, spooled_ - first));
  const auto bytes = std::as_writable_bytes(std::span(to));
  for (std::size_t done = 0; done < bytes.size();) {
    const auto at = static_cast<off_t>(first * sizeof(IndexedPlace) + done);
    const ssize_t got = ::pread(file_.get(), bytes.data() + done, bytes.size() - done, at);
    if (got <= 0 && errno != EINTR)
      return fail(ErrorCode::kNoInput,
                  folder_ + ": can't read the temporary file of the index: " + std::strerror(errno));
    done += got > 0 ? static_cast<std::size_t>(got) : 0;
  }
  return to.size();
}

Descriptor open_temporary_file(const std::string& folder) {
  Descriptor file(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  // NFS and some other file systems lack O_TMPFILE.
  if (!file && (errno == EOPNOTSUPP || errno == EISDIR)) {
    std::string name = folder + "/.disttrain-XXXXXX";
    file = Descriptor(::mkostemp(name.data(), O_CLOEXEC));
    if (file) ::unlink(name.c_str());
  }
  return file;
}

Status find_all_records(const IndexOptions& options, const std::string& folder, const RecordFormat& format,
                        const std::function<Status(BuiltFile&&)>& use) {
  return read_in_groups<BuiltFile>(
      options.paths, kFilesOfGroup,
      [&](const std::string& path) { return find_records(options, folder, format, path); }, use);
}

}  // namespace disttrain::input
