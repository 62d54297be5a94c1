// A pipe holds 64 KiB. A line waits for room for at most 1 s, and a line that finds none is dropped and counted: the
// chief and systemd's journal have the lines anyway. spdlog can't do this.
#include "common/daemon/log/stderr_lines.h"

#include "common/counted.h"

#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace disttrain::daemon {

void StderrLines::write(const std::string& line) {
  const std::lock_guard lock(mutex_);
  if (!has_room()) {
    ++dropped_;
    return;
  }
  std::string text = is_cut_ ? "\n" : "";
  if (dropped_ > 0)
    text += "(" + counted(dropped_, "line") + " of this log " + (dropped_ == 1 ? "was" : "were") +
            " dropped here, because nobody read stderr)\n";
  text += line;
  text += '\n';
  is_cut_ = !write_all(text);
  dropped_ = is_cut_ ? 1 : 0;
}

bool StderrLines::write_all(std::string_view text) {
  while (!text.empty()) {
    if (!has_room()) return false;
    // A pipe that poll() calls writable has room for PIPE_BUF bytes (pipe(7)), so this doesn't block.
    const ssize_t written = ::write(STDERR_FILENO, text.data(), std::min<std::size_t>(text.size(), PIPE_BUF));
    if (written < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (written < 0) return true;  // stderr is closed: there is nobody to tell
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

bool StderrLines::has_room() {
  pollfd fd{STDERR_FILENO, POLLOUT, 0};
  int ready = -1;
  do ready = ::poll(&fd, 1, is_full_ ? 0 : kStderrPatienceMs);
  while (ready < 0 && errno == EINTR);
  is_full_ = ready == 0;
  return !is_full_;
}

}  // namespace disttrain::daemon
