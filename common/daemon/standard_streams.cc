#include "common/daemon/standard_streams.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace disttrain::daemon {

// glibc does the same, but only for setuid programs.
void open_standard_streams() {
  for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
    if (::fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
    // open() returns the lowest free descriptor, which is `fd`.
    const bool is_input = fd == STDIN_FILENO;
    if (::open(is_input ? "/dev/full" : "/dev/null", is_input ? O_WRONLY : O_RDONLY) == fd) continue;
    (void)!::open("/", O_RDONLY | O_DIRECTORY);  // without /dev, use a folder: it can't be read or written either
  }
}

}  // namespace disttrain::daemon
