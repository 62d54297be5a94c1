// A daemon's log. It writes lines to stderr as text or JSON, or entries to systemd's journal. It also keeps the last
// lines until they are sent to the chief.
//
// main makes one Log per process and passes it to each part. Any thread may write. Writing never waits for a network.
// It may wait for the journal, and for a second for a stderr that nobody reads (stderr_lines.h).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <source_location>
#include <string>

#include "common/config/cluster_config.h"
#include "common/daemon/log/log_entry.h"
#include "common/ids.h"
#include "common/messages/control.h"

namespace disttrain::daemon {

inline constexpr std::size_t kKeptLogLines = 1000;
inline constexpr std::size_t kMaxLogLineBytes = 4096;  // a longer line is cut and ends with a note

enum class LogForm : std::uint8_t { kText, kJson, kJournal };

class Log {
 public:
  // config.format "auto" means the journal if stderr goes to it, else text. "journal" means text if the host has no
  // journal. Lines below config.level are dropped. The log counts lines for each place: a log call in the code together
  // with a kind of event. If one place writes more than config.rate lines in a second, further lines are dropped and
  // counted, and the next line of this place says how many.
  Log(TaskId task, const LogConfig& config);
  ~Log();

  LogForm form() const;

  // Sets the job that later lines belong to; "" means no job. Any thread may call this.
  void set_job(const std::string& name);
  // Sets the job's step for later lines. It is cheap, so call it at every step.
  void set_step(std::uint64_t step);

  // Applies a new level and rate. The format stays. Any thread may call this.
  void change(const LogConfig& config);

  void write(Level level, const std::string& text, std::source_location place = std::source_location::current()) {
    write(level, text, LogFields(), place);
  }
  // The job and step in `fields` take precedence over set_job() and set_step().
  void write(Level level, const std::string& text, LogFields fields,
             std::source_location place = std::source_location::current());
  void debug(const std::string& text, std::source_location place = std::source_location::current()) {
    write(Level::kDebug, text, place);
  }
  void info(const std::string& text, std::source_location place = std::source_location::current()) {
    write(Level::kInfo, text, place);
  }
  void warn(const std::string& text, std::source_location place = std::source_location::current()) {
    write(Level::kWarn, text, place);
  }
  void error(const std::string& text, std::source_location place = std::source_location::current()) {
    write(Level::kError, text, place);
  }

  // Connects the log to the code that sends lines to the chief. Lines wait until that code calls take(). When a line is
  // written while no other line waits, the writing thread calls `wake`, which should post a call of take() to the loop.
  // An empty function disconnects. If more than kKeptLogLines lines wait, the oldest is dropped.
  void set_listener(std::function<void()> wake);
  // Returns up to `most` waiting lines, the oldest first, and the number of lines dropped since the last call. Call it
  // until it returns no lines, because `wake` isn't called while lines wait.
  LogLines take(std::size_t most);
  // Returns how many lines of each level (debug to error) were written since the start. Lines that were dropped because
  // of config.rate count too, but lines below config.level don't. Any thread may call this.
  std::array<std::uint64_t, 4> counts() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace disttrain::daemon
