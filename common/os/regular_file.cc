#include "common/os/regular_file.h"

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace disttrain {

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

std::int64_t modified_ns(const struct stat& about) {
  return about.st_mtim.tv_sec * 1'000'000'000LL + about.st_mtim.tv_nsec;
}

RegularFile open_regular_file(const std::string& path) {
  RegularFile opened;
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat about {};
  if (!file || ::fstat(file.get(), &about) != 0) {
    opened.error = errno;
    opened.problem = std::strerror(errno);
    // open() of a socket gives this error.
    if (opened.error == ENXIO) opened.problem = "it is a socket, or a device that isn't there";
  } else if (!S_ISREG(about.st_mode)) {
    opened.problem = std::string("it is ") + kind_of(about.st_mode);
  } else {
    opened.file = std::move(file);
    opened.bytes = static_cast<std::uint64_t>(about.st_size);
    opened.modified_ns = modified_ns(about);
  }
  return opened;
}

}  // namespace disttrain
