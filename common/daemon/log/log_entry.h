// A line of a daemon's log with its context: the fields beside the text in JSON lines and the journal.
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

// Syslog's, as the journal counts: 7 debug, 6 info, 4 warning, 3 error.
int priority_of(Level level);

struct LogFields {
  std::string kind{};                   // of an event: message_ids.h, docs/json.md; "": an ordinary line
  std::string job{};                    // the job's name; "": no job
  std::optional<std::uint64_t> step{};  // of that job, as far as the writer knows
};

struct LogEntry {
  LogLine line;
  LogFields fields;
  std::source_location place;
};

// "2026-11-20 23:45:01.123 info  ps/1 text": a line on stderr and in `disttrain logs`. Bytes that a terminal would
// interpret are shown as \xNN.
std::string to_text(const LogLine& line);
// {"time": "2026-11-20T23:45:01.123456Z", "level": "info", "task": "ps/1", "message": "text", "code": "psd/main.cc:28"}
// and, if known, "job", "step" and "event".
std::string to_json(const LogEntry& entry);
// MESSAGE, PRIORITY, DISTTRAIN_TASK, CODE_FILE, CODE_LINE, CODE_FUNC and, if known, DISTTRAIN_JOB, DISTTRAIN_STEP,
// DISTTRAIN_EVENT and MESSAGE_ID.
JournalFields to_journal(const LogEntry& entry);

}  // namespace disttrain::daemon
