// What a daemon says: lines to stderr, as text or as JSON, or entries of the journal, and the last of them kept for the
// chief.
//
// One Log per process, made by main and handed to each part. Any thread may write. Writing never waits for a network;
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
inline constexpr std::size_t kMaxLogLineBytes = 4096;  // longer ones are cut, and say so

enum class LogForm : std::uint8_t { kText, kJson, kJournal };

class Log {
 public:
  // What config.format asks for; "auto" is the journal where stderr goes there, else text; without a journal on this
  // host "journal" is text, too. Lines below config.level go nowhere. More than config.rate lines in a second from one
  // place (file and line of the call, and kind of event) are left out and counted; its next line says how many.
  Log(TaskId task, const LogConfig& config);
  ~Log();

  LogForm form() const;

  // What lines are about from now on, for their fields; "": no job. Any thread.
  void set_job(const std::string& name);
  // As often as one likes; it costs nothing.
  void set_step(std::uint64_t step);

  // Takes level and rate; the format stays. Any thread.
  void change(const LogConfig& config);

  void write(Level level, const std::string& text, std::source_location place = std::source_location::current()) {
    write(level, text, LogFields(), place);
  }
  // What `fields` doesn't say is as set_job() and set_step() said.
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

  // The control connection: `wake` is called, by whichever thread writes, when lines begin to wait; it should post to
  // its loop, which calls take(). An empty function ends it. The last kKeptLogLines are kept while nobody takes them.
  void set_listener(std::function<void()> wake);
  // The oldest waiting lines, at most `most`, and how many were left out since the last call. Call until none are left:
  // only then is the next line a reason to wake.
  LogLines take(std::size_t most);
  // Lines of each level (debug to error) since the start that were not below config.level, left out by the rate or
  // not. Any thread.
  std::array<std::uint64_t, 4> counts() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace disttrain::daemon
