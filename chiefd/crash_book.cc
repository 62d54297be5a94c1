#include "chiefd/crash_book.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>

namespace disttrain::chiefd {
namespace {

// The most bytes that are read. The file grows by some bytes for each crash. Older lines don't count.
constexpr std::size_t kMostBytes = std::size_t{64} << 10;

}  // namespace

Result<CrashBook> CrashBook::open(const std::string& state_directory) {
  const std::string path = state_directory + "/crashes";
  const auto failed = [&path](const char* doing) {
    return fail(ErrorCode::kFailed, std::string("can't ") + doing + " " + path + ": " + std::strerror(errno));
  };
  Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0600));
  if (file.get() < 0) return failed("open");
  const off_t size = ::lseek(file.get(), 0, SEEK_END);
  if (size < 0) return failed("read");
  std::string text(std::min<std::size_t>(static_cast<std::size_t>(size), kMostBytes), '\0');
  const ssize_t got = ::pread(file.get(), text.data(), text.size(), size - static_cast<off_t>(text.size()));
  if (got < 0) return failed("read");
  CrashBook book(std::move(file));
  std::string_view rest(text.data(), static_cast<std::size_t>(got));
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    std::uint32_t job = 0;
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), job);
    if (error == std::errc() && end == line.data() + line.size() && job != 0) ++book.crashes_[JobId(job)];
  }
  return book;
}

}  // namespace disttrain::chiefd
