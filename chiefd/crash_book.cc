// Bytes of a job, such as its checkpoint's files, may crash the chief. A mark in the journal before each piece of work
// was rejected: a chief that is killed in the middle of a long piece of work, as in a restart by an operator, would
// look like a crash. Instead the handler of a crash adds the number of the job for which its thread works. It adds
// nothing if a process sent the signal, as systemd's watchdog does.
#include "chiefd/crash_book.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>
#include <utility>

namespace disttrain::chiefd {
namespace {

// The file grows by some bytes for each crash. A longer file is emptied.
constexpr std::size_t kMostBytes = std::size_t{64} << 10;

}  // namespace

Result<CrashBook> CrashBook::open(const std::string& state_directory, JournalId journal) {
  const std::string path = state_directory + "/crashes";
  const auto failed = [&path](const char* doing) {
    return fail(ErrorCode::kFailed, std::string("can't ") + doing + " " + path + ": " + std::strerror(errno));
  };
  Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0600));
  if (file.get() < 0) return failed("open");
  std::string text(kMostBytes + 1, '\0');
  const ssize_t got = ::pread(file.get(), text.data(), text.size(), 0);
  if (got < 0) return failed("read");
  text.resize(static_cast<std::size_t>(got));

  CrashBook book(std::move(file));
  const std::string first_line = "journal " + std::to_string(journal.value) + "\n";
  if (!text.starts_with(first_line) || text.size() > kMostBytes) {
    const bool is_new =
        ::ftruncate(book.file(), 0) == 0 &&
        ::write(book.file(), first_line.data(), first_line.size()) == static_cast<ssize_t>(first_line.size());
    if (!is_new) return failed("write");
    return book;
  }
  std::string_view rest = std::string_view(text).substr(first_line.size());
  for (std::size_t end; (end = rest.find('\n')) != std::string_view::npos; rest.remove_prefix(end + 1)) {
    std::uint32_t job = 0;
    const auto [stop, error] = std::from_chars(rest.data(), rest.data() + end, job);
    if (error == std::errc() && stop == rest.data() + end) ++book.crashes_[JobId(job)];
  }
  return book;
}

}  // namespace disttrain::chiefd
