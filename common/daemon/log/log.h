// A daemon's log: lines to stderr as text or JSON, or entries of the journal. Keeps the last lines for the chief.
//
// One Log per process, made by main and passed to each part. Any thread may write. Writing never waits for a network;
// it may wait for stderr or the journal.
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
inline constexpr std::size_t kMaxLogLineBytes = 4096;  // longer lines are cut, with a note

enum class LogForm : std::uint8_t { kText, kJson, kJournal };

class Log {
 public:
  // config.format "auto" is the journal if stderr goes there, else text; on a host without a journal, "journal" is text
  // too. Lines below config.level are dropped. From one place (file and line of the call, and kind of event) more than
  // config.rate lines in a second are dropped and counted; its next line gives their number.
  Log(TaskId task, const LogConfig& config);
  ~Log();

  LogForm form() const;

  // Sets the job of later lines; "": no job. Any thread.
  void set_job(const std::string& name);
  // Cheap: call it as often as you like.
  void set_step(std::uint64_t step);

  // Takes level and rate; the format stays. Any thread.
  void change(const LogConfig& config);

  void write(Level level, const std::string& text, std::source_location place = std::source_location::current()) {
    write(level, text, LogFields(), place);
  }
  // `fields` overrides set_job() and set_step().
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

  // For the control connection. When lines begin to wait, the writing thread calls `wake`, which should post to the
  // loop that calls take(). An empty function ends this. While nobody takes lines, the last kKeptLogLines are kept.
  void set_listener(std::function<void()> wake);
  // The oldest waiting lines, at most `most`, and the number dropped since the last call. Call it until it returns
  // none: only then does the next line call `wake`.
  LogLines take(std::size_t most);
  // Lines of each level (debug to error) since the start that weren't below config.level, including those dropped by
  // the rate. Any thread.
  std::array<std::uint64_t, 4> counts() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace disttrain::daemon
