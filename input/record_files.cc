#include "input/record_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "common/os/regular_file.h"

namespace disttrain::input {

namespace {

tl::unexpected<Error> cant_read(const IndexedFile& file, int number, const std::string& problem) {
  const ErrorCode code = number == EACCES || number == EPERM ? ErrorCode::kNoPermission : ErrorCode::kNoInput;
  return fail(code, file.path + ": can't be read: " + problem +
                        "; the file was there when the job's data was indexed: put it back and start the job again");
}
tl::unexpected<Error> cant_read(const IndexedFile& file, int number) {
  return cant_read(file, number, std::strerror(number));
}

Status check_same(const IndexedFile& file, const struct stat& now) {
  const auto bytes = static_cast<std::uint64_t>(now.st_size);
  if (bytes == file.bytes && modified_ns(now) == file.modified_ns) return {};
  return fail(ErrorCode::kData, file.path + ": was changed while the job uses it: it has " + std::to_string(bytes) +
                                    " bytes" + (bytes == file.bytes ? " and another time of modification" : "") +
                                    ", expected " + std::to_string(file.bytes) +
                                    " as when the data was indexed: start the job again when the file is complete");
}

}  // namespace

Result<RecordFiles::File> RecordFiles::open(std::size_t file) const {
  const std::lock_guard lock(mutex_);
  if (const auto found = places_.find(file); found != places_.end()) {
    open_.splice(open_.begin(), open_, found->second);
    return open_.front().descriptor;
  }
  const IndexedFile& about = index_.files()[file];
  RegularFile opened = open_regular_file(about.path);
  if (!opened.file) return cant_read(about, opened.error, opened.problem);
  if (open_.size() == kMostOpen) {
    places_.erase(open_.back().file);
    open_.pop_back();
  }
  open_.push_front({file, std::make_shared<const Descriptor>(std::move(opened.file))});
  places_[file] = open_.begin();
  return open_.front().descriptor;
}

Status RecordFiles::check_unchanged(std::size_t file) const {
  const IndexedFile& about = index_.files()[file];
  struct stat now {};
  if (::stat(about.path.c_str(), &now) != 0) return cant_read(about, errno);
  return check_same(about, now);
}

Status RecordFiles::read(std::size_t file, std::uint64_t offset, std::span<std::byte> out) const {
  const IndexedFile& about = index_.files()[file];
  const Result<File> descriptor = open(file);
  if (!descriptor) return tl::unexpected(descriptor.error());
  const int fd = (*descriptor)->get();
  struct stat now {};
  if (::fstat(fd, &now) != 0) return cant_read(about, errno);
  if (Status same = check_same(about, now); !same) return same;
  for (std::size_t done = 0; done < out.size();) {
    const ssize_t got = ::pread(fd, out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return cant_read(about, errno);
    if (got == 0) {
      // The file may have become shorter since it was compared.
      if (Status same = check_unchanged(file); !same) return same;
      return fail(ErrorCode::kData, about.path + ": ends at byte " + std::to_string(offset + done) +
                                        ", but its index has a record there: remove the index (.disttrain-*.index)");
    }
    done += static_cast<std::size_t>(got);
  }
  return {};
}

}  // namespace disttrain::input
