#include "common/daemon/log/log.h"

#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "common/daemon/clock.h"
#include "common/daemon/log/stderr_lines.h"
#include "common/daemon/log/systemd_journal.h"
#include "common/printable.h"

namespace disttrain::daemon {

namespace {

Level level_of(const std::string& name) {
  if (name == "debug") return Level::kDebug;
  if (name == "warn") return Level::kWarn;
  if (name == "error") return Level::kError;
  return Level::kInfo;
}

LogForm form_of(const std::string& format) {
  if (format == "json") return LogForm::kJson;
  const bool wants_journal = format == "journal" || (format == "auto" && stderr_is_journal());
  return wants_journal && journal_is_there() ? LogForm::kJournal : LogForm::kText;
}

// Drops lines if one place in the code writes too many in a second.
class RateLimit {
 public:
  explicit RateLimit(std::uint32_t lines_per_second) : lines_per_second_(lines_per_second) {}

  void change(std::uint32_t lines_per_second) { lines_per_second_ = lines_per_second; }

  struct Verdict {
    bool passes = false;
    std::uint64_t left_out_before = 0;  // number of lines of this place that were dropped since its last written line
  };
  Verdict pass(const std::source_location& where, const std::string& kind, Instant time) {
    Place& place = places_[{where.file_name(), where.line(), kind}];
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
  // The map can't grow without limit: it has one entry for each pair of a log call in the code and a kind of event.
  std::map<std::tuple<const char*, std::uint_least32_t, std::string>, Place> places_;
};

}  // namespace

struct Log::State {
  State(TaskId t, const LogConfig& config)
      : task(t), least(level_of(config.level)), form(form_of(config.format)), limit(config.rate) {}

  void show(const LogEntry& entry);

  const TaskId task;
  std::atomic<Level> least;
  const LogForm form;
  std::atomic<std::uint64_t> step = 0;
  StderrLines lines;
  std::array<std::atomic<std::uint64_t>, 4> counts{};

  std::mutex mutex;  // guards the members below; never held while writing a line or calling `wake`
  RateLimit limit;
  std::string job;
  std::deque<LogLine> waiting;
  std::uint64_t left_out = 0;
  std::function<void()> wake;
};

Log::Log(TaskId task, const LogConfig& config) : state_(std::make_unique<State>(task, config)) {}

Log::~Log() = default;

LogForm Log::form() const {
  return state_->form;
}

void Log::set_job(const std::string& name) {
  state_->step = 0;
  const std::lock_guard lock(state_->mutex);
  state_->job = name;
}

void Log::set_step(std::uint64_t step) {
  state_->step.store(step, std::memory_order_relaxed);
}

void Log::change(const LogConfig& config) {
  state_->least = level_of(config.level);
  const std::lock_guard lock(state_->mutex);
  state_->limit.change(config.rate);
}

void Log::write(Level level, const std::string& text, LogFields fields, std::source_location place) {
  if (level < state_->least) return;
  state_->counts[static_cast<std::size_t>(level)].fetch_add(1, std::memory_order_relaxed);
  LogEntry entry{{wall_nanoseconds(), state_->task, static_cast<std::uint8_t>(level), text}, std::move(fields), place};
  LogLine& line = entry.line;
  if (line.text.size() > kMaxLogLineBytes - 128) {
    // Leave room for the suffixes: the whole text must not exceed kMaxTextBytes, the wire's limit.
    line.text = cut_text(line.text, kMaxLogLineBytes - 128);
    line.text += "... (cut)";
  }
  std::function<void()> wake;
  {
    const std::lock_guard lock(state_->mutex);
    const RateLimit::Verdict verdict = state_->limit.pass(place, entry.fields.kind, now());
    if (!verdict.passes) {
      ++state_->left_out;
      return;
    }
    if (verdict.left_out_before != 0)
      line.text += " (" + std::to_string(verdict.left_out_before) + " such lines before this one were dropped)";
    if (entry.fields.job.empty() && !state_->job.empty()) {
      entry.fields.job = state_->job;
      entry.fields.step = state_->step.load(std::memory_order_relaxed);
    }
    if (state_->waiting.empty()) wake = state_->wake;
    state_->waiting.push_back(line);
    if (state_->waiting.size() > kKeptLogLines) {
      state_->waiting.pop_front();
      ++state_->left_out;
    }
  }
  state_->show(entry);
  if (wake) wake();
}

void Log::State::show(const LogEntry& entry) {
  if (form == LogForm::kJournal && send_to_journal(to_journal(entry))) return;
  lines.write(form == LogForm::kJson ? to_json(entry) : to_text(entry.line));
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
