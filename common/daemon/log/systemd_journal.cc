#include "common/daemon/log/systemd_journal.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <mutex>

#include "common/daemon/log/journal_socket.h"

namespace disttrain::daemon {

bool stderr_is_journal() {
  const char* const stream = std::getenv("JOURNAL_STREAM");
  struct stat place {};
  if (stream == nullptr || ::fstat(STDERR_FILENO, &place) != 0) return false;
  return stream == std::to_string(place.st_dev) + ":" + std::to_string(place.st_ino);
}

bool journal_is_there() {
  return ::access(kJournalSocket, W_OK) == 0;
}

bool send_to_journal(const JournalFields& fields) {
  static JournalSocket journal;
  static std::once_flag is_open;
  std::call_once(is_open, [] { journal.open(); });
  std::vector<JournalField> entry{{"SYSLOG_IDENTIFIER", program_invocation_short_name}};
  entry.insert(entry.end(), fields.begin(), fields.end());
  return journal.send(entry);
}

}  // namespace disttrain::daemon
