#include "workerd/input/index_builder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "workerd/input/file_reader.h"
#include "workerd/input/read_parallel.h"
#include "workerd/input/record_stream.h"

namespace disttrain::input {

namespace {

Result<BuiltFile> find_records(const IndexOptions& options, const std::string& folder, const RecordFormat& format,
                               const std::string& path) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0)
    return fail(ErrorCode::kNoInput, path + ": can't be read: " + std::strerror(errno));
  Result<std::unique_ptr<FileReader>> file = FileReader::open(path, options.is_cancelled);
  if (!file) return tl::unexpected(std::move(file.error()));
  BuiltFile built{.file = {.path = path,
                           .bytes = static_cast<std::uint64_t>(about.st_size),
                           .modified_ns = about.st_mtim.tv_sec * 1'000'000'000LL + about.st_mtim.tv_nsec,
                           .is_packed = (*file)->packed()},
                  .places = PlacesOfFile(folder)};
  if (format.is_file_record() && built.file.bytes > 0) {
    built.file.content_bytes = built.file.bytes;
    built.file.records = 1;
    Status added = built.places.add({0, built.file.bytes});
    return added ? Result<BuiltFile>(std::move(built)) : tl::unexpected(std::move(added.error()));
  }
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
    file_ = Descriptor(::open(folder_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
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

Result<std::vector<BuiltFile>> find_all_records(const IndexOptions& options, const std::string& folder,
                                                const RecordFormat& format) {
  return read_parallel<BuiltFile>(options.paths,
                                  [&](const std::string& path) { return find_records(options, folder, format, path); });
}

}  // namespace disttrain::input
