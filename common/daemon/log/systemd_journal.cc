#include "common/daemon/log/systemd_journal.h"

#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#define SD_JOURNAL_SUPPRESS_LOCATION  // so that CODE_FILE and CODE_LINE name the log call
#include <systemd/sd-journal.h>

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
  std::vector<std::string> entries{std::string("SYSLOG_IDENTIFIER=") + program_invocation_short_name};
  for (const auto& [name, value] : fields) entries.push_back(name + "=" + value);
  std::vector<iovec> parts;
  for (std::string& entry : entries) parts.push_back({entry.data(), entry.size()});
  // Check this first, because libsystemd reports no error if there is no journal.
  return journal_is_there() && ::sd_journal_sendv(parts.data(), static_cast<int>(parts.size())) >= 0;
}

}  // namespace disttrain::daemon
