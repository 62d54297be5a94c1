#include "common/config/reader/text_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/os/descriptor.h"

namespace disttrain::config {

namespace {

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

}  // namespace

Result<std::string> read_text_file(const std::string& path, std::size_t most_bytes, const std::string& expected) {
  const auto refuse = [&path, &expected](int error) {
    const ErrorCode code = error == EACCES || error == EPERM ? ErrorCode::kNoPermission : ErrorCode::kNoInput;
    return fail(code, path + ": can't be read: " + std::strerror(error) + "; expected " + expected);
  };
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file) return refuse(errno);
  struct stat about {};
  if (::fstat(file.get(), &about) != 0) return refuse(errno);
  if (!S_ISREG(about.st_mode))
    return fail(ErrorCode::kNoInput,
                path + ": can't be read: it is " + kind_of(about.st_mode) + "; expected " + expected);
  std::string text(most_bytes + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = ::read(file.get(), text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return refuse(errno);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  if (size > most_bytes)
    return fail(ErrorCode::kConfig, path + " is larger than " + std::to_string(most_bytes) + " bytes; expected " +
                                        expected + " of at most this size");
  text.resize(size);
  text.shrink_to_fit();
  return text;
}

}  // namespace disttrain::config
