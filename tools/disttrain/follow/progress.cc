#include "tools/disttrain/follow/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <string_view>
#include <utility>

#include "common/printable.h"
#include "tools/disttrain/follow/follow_job.h"
#include "tools/disttrain/printable_output.h"
#include "tools/disttrain/terminal.h"

namespace disttrain::cli {

namespace {

constexpr std::chrono::seconds kLineEvery(3);

// Returns the share of the job's steps that is done, or NaN if their total isn't known yet.
double share_of(const Json& status) {
  const double target = number_of(status, "steps_target");
  return target > 0 ? number_of(status, "global_step") / target : std::nan("");
}

// The one of a trainer's last lines that says most: the last one. If the interpreter has crashed, the innermost line of
// the stack that it printed, if it printed only one.
std::string telling_line(const std::string& lines) {
  constexpr std::string_view kStack = "(most recent call first)";
  std::size_t begin = lines.rfind('\n') + 1;
  const std::size_t stack = lines.find(kStack);
  const bool is_only_one = stack != std::string::npos && stack == lines.rfind(kStack);
  if (const std::size_t end = is_only_one ? lines.find('\n', stack) : std::string::npos; end != std::string::npos)
    begin = end + 1;
  const std::string line = lines.substr(begin, lines.find('\n', begin) - begin);
  const std::size_t text = line.find_first_not_of(' ');
  return text == std::string::npos ? "" : line.substr(text);
}

}  // namespace

std::string headline(const std::string& text) {
  constexpr std::string_view kLastLines = "; its last lines:";
  const std::string lines = unfolded(text);
  std::string first = lines.substr(0, lines.find('\n'));
  if (!first.ends_with(kLastLines)) return first;
  first.resize(first.size() - kLastLines.size());
  const std::string line = lines.find('\n') == std::string::npos ? "" : telling_line(lines);
  return line.empty() ? first : first + ": " + line;
}

std::size_t first_new_warning(const std::vector<std::string>& before, const std::vector<std::string>& now) {
  // The usual case: the end of `before` is the beginning of `now`.
  for (std::size_t shared = std::min(before.size(), now.size()); shared > 0; --shared)
    if (std::equal(now.begin(), now.begin() + static_cast<std::ptrdiff_t>(shared),
                   before.end() - static_cast<std::ptrdiff_t>(shared)))
      return shared;
  // The chief has lost the end of `before`.
  const auto [differs, unused] = std::mismatch(now.begin(), now.end(), before.begin(), before.end());
  return static_cast<std::size_t>(differs - now.begin());
}

void say_below_bar(const std::string& line) {
  std::cerr << (isatty(STDERR_FILENO) != 0 ? "\n" : "") << line << '\n' << std::flush;
}

std::string bar(double share, std::size_t width) {
  const double within = std::clamp(std::isnan(share) ? 0.0 : share, 0.0, 1.0);
  const auto full = static_cast<std::size_t>(std::lround(within * static_cast<double>(width)));
  return "[" + std::string(full, '#') + std::string(width - full, '-') + "]";
}

std::string clock_text(double seconds) {
  const auto whole = static_cast<long long>(std::max(0.0, std::ceil(seconds)));
  char text[40];
  if (whole >= 3600)
    std::snprintf(text, sizeof(text), "%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60, whole % 60);
  else
    std::snprintf(text, sizeof(text), "%lld:%02lld", whole / 60, whole % 60);
  return text;
}

std::string with_commas(double value) {
  if (!std::isfinite(value)) return "-";
  std::string digits = std::to_string(std::llround(value));
  for (std::size_t i = digits.size(); i > 3 + (digits.front() == '-' ? 1 : 0);) digits.insert(i -= 3, ",");
  return digits;
}

std::string progress_line(const Json& status) {
  const double step = number_of(status, "global_step");
  const double target = number_of(status, "steps_target");
  const double rate = number_of(status, "steps_per_second");
  const double loss = number_of(status, "loss");
  std::string line = text_of(status, "state") + "  step " + with_commas(step);
  if (target > 0) {
    line += "/" + with_commas(target) + " (" + std::to_string(static_cast<int>(100 * step / target)) + "%)";
  }
  if (number_of(status, "examples_per_second") > 0)
    line += "  " + with_commas(number_of(status, "examples_per_second")) + " examples/s";
  if (std::isfinite(loss)) {
    char text[32];
    std::snprintf(text, sizeof(text), "  loss %.4f", loss);
    line += text;
  }
  if (const double recoveries = number_of(status, "recoveries"); recoveries > 0)
    line += "  " + with_commas(recoveries) + (recoveries == 1 ? " recovery" : " recoveries");
  if (const double skipped = number_of(status, "skipped"); skipped > 0)
    line += "  " + with_commas(skipped) + " skipped";
  if (target > 0 && rate > 0 && step < target) line += "  ETA " + clock_text((target - step) / rate);
  return line;
}

std::string skipped_text(const Json& status) {
  const double skipped = number_of(status, "skipped");
  if (!(skipped > 0)) return "";
  const std::string why = with_commas(skipped) + (skipped == 1 ? " step was" : " steps were") +
                          " skipped, because a loss, a gradient, a state variable or an update was NaN or infinite; ";
  if (skipped < number_of(status, "global_step")) return why + "a lower learning rate or [train.clip] may help";
  // No update has changed the parameters, so the learning rate is hardly the cause.
  const bool has_ended = is_final_state(text_of(status, "state"));
  return (has_ended ? "nothing was trained, as no step was applied: " : "no step was applied so far: ") + why +
         "most likely the data, the initial values or the loss has such values";
}

Progress::Progress(std::ostream& out) : out_(out), is_terminal_(isatty(STDERR_FILENO) != 0) {}

void Progress::show(const Json& status) {
  const std::string state = text_of(status, "state");
  const auto time = std::chrono::steady_clock::now();
  const std::string reason = text_of(status, "reason");
  if (const std::string skipped = skipped_text(status); !skipped.empty() && !std::exchange(has_told_skipped_, true))
    warn(skipped);
  show_warnings(status);
  // While the job makes no steps, shows the reason instead of the figures.
  const bool is_moving = state == "running" || state == "evaluating";
  const std::string line = is_moving || reason.empty() ? progress_line(status) : state + ": " + headline(reason);
  if (is_terminal_) {
    const std::size_t width = terminal_size(STDERR_FILENO).columns;
    const double share = share_of(status);
    std::string text = std::isnan(share) ? line : bar(share, std::min<std::size_t>(20, width / 4)) + " " + line;
    if (text.size() >= width) text.resize(width - 1);
    write_codes(out_, "\r");
    out_ << text;
    write_codes(out_, "\x1b[K");
    out_ << std::flush;
    is_bar_open_ = true;
  } else if (time >= next_line_ || state != last_state_) {
    out_ << line << '\n' << std::flush;
    next_line_ = time + kLineEvery;
  }
  last_state_ = state;
}

void Progress::warn(const std::string& text) {
  end();
  out_ << "warning: " << text << '\n' << std::flush;
}

void Progress::show_warnings(const Json& status) {
  std::vector<std::string> now;
  for (const Json& warning : list_of(status, "warnings"))
    if (warning.is_string()) now.push_back(warning.get<std::string>());
  for (std::size_t i = first_new_warning(warnings_, now); i < now.size(); ++i) warn(headline(now[i]));
  warnings_ = std::move(now);
}

void Progress::say(const std::string& line) {
  if (is_bar_open_) write_codes(out_, "\r\x1b[K");  // the next show() draws the bar again
  is_bar_open_ = false;
  out_ << line << '\n' << std::flush;
}

void Progress::end() {
  if (is_bar_open_) out_ << '\n' << std::flush;
  is_bar_open_ = false;
}

}  // namespace disttrain::cli
