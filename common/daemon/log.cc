#include "common/daemon/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <atomic>
#include <ctime>
#include <deque>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/daemon/clock.h"

namespace disttrain::daemon {

namespace {

Level level_of(const std::string& name) {
  if (name == "debug") return Level::kDebug;
  if (name == "warn") return Level::kWarn;
  if (name == "error") return Level::kError;
  return Level::kInfo;
}

std::string time_text(std::int64_t wall_nanoseconds, char between, int digits) {
  const std::time_t seconds = wall_nanoseconds / 1'000'000'000;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char text[40];
  const std::size_t length = std::strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &utc);
  text[10] = between;
  std::string fraction = std::to_string(1'000'000'000 + wall_nanoseconds % 1'000'000'000);
  return std::string(text, length) + "." + fraction.substr(1, static_cast<std::size_t>(digits));
}

std::string printable(const std::string& text) {
  std::string result;
  for (unsigned char c : text) {
    if ((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f) {
      constexpr char kHex[] = "0123456789abcdef";
      result += std::string("\\x") + kHex[c >> 4] + kHex[c & 15];
    } else {
      result += static_cast<char>(c);
    }
  }
  return result;
}

// Leaves lines out when one place writes too many of them in a second.
class RateLimit {
 public:
  explicit RateLimit(std::uint32_t lines_per_second) : lines_per_second_(lines_per_second) {}

  void change(std::uint32_t lines_per_second) { lines_per_second_ = lines_per_second; }

  struct Verdict {
    bool passes = false;
    std::uint64_t left_out_before = 0;  // of this place, since its last line that passed
  };
  Verdict pass(const std::source_location& where, Instant time) {
    Place& place = places_[{where.file_name(), where.line()}];
    if (time - place.window >= std::chrono::seconds(1)) {
      place.window = time;
      place.lines = 0;
    }
    if (place.lines >= lines_per_second_) {
      ++place.left_out;
      return {};
    }
    ++place.lines;
    return {true, std::exchange(place.left_out, 0)};
  }

 private:
  struct Place {
    Instant window{};
    std::uint32_t lines = 0;
    std::uint64_t left_out = 0;
  };
  std::uint32_t lines_per_second_;
  std::map<std::pair<const char*, std::uint_least32_t>, Place> places_;  // bounded by the calls in the program
};

}  // namespace

const char* to_string(Level level) {
  switch (level) {
    case Level::kDebug:
      return "debug";
    case Level::kInfo:
      return "info";
    case Level::kWarn:
      return "warn";
    case Level::kError:
      break;
  }
  return "error";
}

std::string to_text(const LogLine& line) {
  std::string level = to_string(static_cast<Level>(line.level));
  level.resize(5, ' ');
  return time_text(line.wall_nanoseconds, ' ', 3) + " " + level + " " + to_string(line.task) + " " +
         printable(line.text);
}

std::string to_json(const LogLine& line) {
  nlohmann::ordered_json json;
  json["time"] = time_text(line.wall_nanoseconds, 'T', 6) + "Z";
  json["level"] = to_string(static_cast<Level>(line.level));
  json["task"] = to_string(line.task);
  json["message"] = line.text;
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

struct Log::State {
  State(TaskId t, const LogConfig& config)
      : task(t), least(level_of(config.level)), is_json(config.format == "json"), limit(config.rate) {}

  const TaskId task;
  std::atomic<Level> least;
  const bool is_json;
  spdlog::sinks::stderr_sink_mt sink;
  std::array<std::atomic<std::uint64_t>, 4> counts{};

  std::mutex mutex;  // guards what follows; never held while writing to the sink or waking
  RateLimit limit;
  std::deque<LogLine> waiting;
  std::uint64_t left_out = 0;
  std::function<void()> wake;
};

Log::Log(TaskId task, const LogConfig& config) : state_(std::make_unique<State>(task, config)) {
  state_->sink.set_pattern("%v");
}

Log::~Log() = default;

void Log::change(const LogConfig& config) {
  state_->least = level_of(config.level);
  const std::lock_guard lock(state_->mutex);
  state_->limit.change(config.rate);
}

void Log::write(Level level, const std::string& text, std::source_location place) {
  if (level < state_->least) return;
  state_->counts[static_cast<std::size_t>(level)].fetch_add(1, std::memory_order_relaxed);
  LogLine line{wall_nanoseconds(), state_->task, static_cast<std::uint8_t>(level), text};
  if (line.text.size() > kMaxLogLineBytes) {
    line.text.resize(kMaxLogLineBytes);
    line.text += "... (cut)";
  }
  std::function<void()> wake;
  {
    const std::lock_guard lock(state_->mutex);
    const RateLimit::Verdict verdict = state_->limit.pass(place, now());
    if (!verdict.passes) {
      ++state_->left_out;
      return;
    }
    if (verdict.left_out_before != 0)
      line.text += " (" + std::to_string(verdict.left_out_before) + " such lines before it were left out)";
    if (state_->waiting.empty()) wake = state_->wake;
    state_->waiting.push_back(line);
    if (state_->waiting.size() > kKeptLogLines) {
      state_->waiting.pop_front();
      ++state_->left_out;
    }
  }
  const std::string shown = state_->is_json ? to_json(line) : to_text(line);
  state_->sink.log(spdlog::details::log_msg("", spdlog::level::info, shown));
  state_->sink.flush();
  if (wake) wake();
}

void Log::set_listener(std::function<void()> wake) {
  {
    const std::lock_guard lock(state_->mutex);
    state_->wake = wake;
    if (state_->waiting.empty()) return;
  }
  if (wake) wake();
}

LogLines Log::take(std::size_t most) {
  const std::lock_guard lock(state_->mutex);
  LogLines lines;
  while (!state_->waiting.empty() && lines.lines.size() < most) {
    lines.lines.push_back(std::move(state_->waiting.front()));
    state_->waiting.pop_front();
  }
  lines.dropped = std::exchange(state_->left_out, 0);
  return lines;
}

std::array<std::uint64_t, 4> Log::counts() const {
  std::array<std::uint64_t, 4> counts{};
  for (std::size_t i = 0; i < counts.size(); ++i) counts[i] = state_->counts[i].load(std::memory_order_relaxed);
  return counts;
}

}  // namespace disttrain::daemon
