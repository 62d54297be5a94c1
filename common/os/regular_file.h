// Opens a file whose path a user chose, to read it.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>

#include "common/os/descriptor.h"

namespace disttrain {

struct RegularFile {
  Descriptor file;      // none: it can't be read
  int error = 0;        // the errno if the system refused
  std::string problem;  // why it can't be read: "No such file or directory", "it is a pipe"
  std::uint64_t bytes = 0;
  std::int64_t modified_ns = 0;  // the time of its last modification
};

// Never blocks: an open() without O_NONBLOCK of a pipe waits until another process writes to it, maybe for ever. So
// only a regular file, or a link to one, is opened. Any thread may call it.
RegularFile open_regular_file(const std::string& path);

// "a folder", "a pipe", "a socket" or "a device"
const char* kind_of(mode_t mode);
std::int64_t modified_ns(const struct stat& about);

}  // namespace disttrain
