#include "common/config/reader/text_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "common/os/regular_file.h"

namespace disttrain::config {

Result<std::string> read_text_file(const std::string& path, std::size_t most_bytes, const std::string& expected) {
  const auto refuse = [&path, &expected](int error, const std::string& problem) {
    const ErrorCode code = error == EACCES || error == EPERM ? ErrorCode::kNoPermission : ErrorCode::kNoInput;
    return fail(code, path + ": can't be read: " + problem + "; expected " + expected);
  };
  const RegularFile opened = open_regular_file(path);
  if (!opened.file) return refuse(opened.error, opened.problem);
  std::string text(most_bytes + 1, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t got = ::read(opened.file.get(), text.data() + size, text.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return refuse(errno, std::strerror(errno));
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
