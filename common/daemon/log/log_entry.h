// A line of a daemon's log, and the fields that JSON lines and journal entries have beside the text.
#pragma once

#include <cstdint>
#include <optional>
#include <source_location>
#include <string>

#include "common/daemon/log/systemd_journal.h"
#include "common/messages/control.h"

namespace disttrain::daemon {

// As in LogLine::level.
enum class Level : std::uint8_t { kDebug, kInfo, kWarn, kError };
const char* to_string(Level level);

// The syslog priority of a level, which the journal uses: 7 debug, 6 info, 4 warning, 3 error.
int priority_of(Level level);

struct LogFields {
  std::string kind{};                   // kind of event (message_ids.h, docs/json.md); "" = an ordinary line
  std::string job{};                    // the job's name; "": no job
  std::optional<std::uint64_t> step{};  // step of that job, if the writer knows it
};

struct LogEntry {
  LogLine line;
  LogFields fields;
  std::source_location place;
};

// Formats a line as "2026-11-20 23:45:01.123 info  ps/1 text", for stderr and `disttrain logs`. Writes \xNN instead of
// a byte that a terminal would interpret.
std::string to_text(const LogLine& line);
// Formats a line as {"time": "2026-11-20T23:45:01.123456Z", "level": "info", "task": "ps/1", "message": "text", "code":
// "psd/main.cc:28"}, with "job", "step" and "event" if they are known.
std::string to_json(const LogEntry& entry);
// Returns the journal's fields: MESSAGE, PRIORITY, DISTTRAIN_TASK, CODE_FILE, CODE_LINE, CODE_FUNC. If they are known,
// also DISTTRAIN_JOB, DISTTRAIN_STEP, DISTTRAIN_EVENT and MESSAGE_ID.
JournalFields to_journal(const LogEntry& entry);

}  // namespace disttrain::daemon
