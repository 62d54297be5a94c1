// What a daemon says: lines to stderr, as text or as JSON, and the last of them kept for the chief.
//
// One Log per process, made by main and handed to each part. Any thread may write. Writing never waits for a network;
// it may wait for stderr.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <source_location>
#include <string>

#include "common/config/cluster_config.h"
#include "common/ids.h"
#include "common/messages/control.h"

namespace disttrain::daemon {

// As in LogLine::level.
enum class Level : std::uint8_t { kDebug, kInfo, kWarn, kError };
const char* to_string(Level level);

inline constexpr std::size_t kKeptLogLines = 1000;
inline constexpr std::size_t kMaxLogLineBytes = 4096;  // longer ones are cut, and say so

// "2026-11-20 23:45:01.123 info  ps/1 text": how a line looks on stderr and in `disttrain logs`. Bytes that would
// command a terminal are shown as \xNN.
std::string to_text(const LogLine& line);
// {"time": "2026-11-20T23:45:01.123456Z", "level": "info", "task": "ps/1", "message": "text"}
std::string to_json(const LogLine& line);

class Log {
 public:
  // Lines below config.level go nowhere. More than config.rate lines in a second from one place (file and line of the
  // call) are left out and counted; the place's next line says how many.
  Log(TaskId task, const LogConfig& config);
  ~Log();

  // Takes level and rate; the format stays. Any thread.
  void change(const LogConfig& config);

  void write(Level level, const std::string& text, std::source_location place = std::source_location::current());
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
