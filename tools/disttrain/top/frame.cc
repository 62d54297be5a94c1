#include "tools/disttrain/top/frame.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <tuple>
#include <vector>

#include "tools/disttrain/columns.h"
#include "tools/disttrain/events.h"
#include "tools/disttrain/follow/follow_job.h"
#include "tools/disttrain/follow/progress.h"
#include "tools/disttrain/table.h"
#include "tools/disttrain/top/sparkline.h"
#include "tools/disttrain/units.h"

namespace disttrain::cli {

namespace {

using Lines = std::vector<std::string>;

constexpr std::size_t kBarColumns = 20;
constexpr std::size_t kEventsShown = 3;
constexpr std::size_t kLeastTasks = 3;  // this many tasks are shown even if curves and events must be dropped for them
constexpr std::size_t kLeastSpark = 4;
constexpr std::size_t kMostSpark = 30;

Lines lines_of(const std::string& text) {
  Lines lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// Returns the first lines: the cluster, the job, its progress, and what it waits for.
Lines head(const TopView& view) {
  const Json& status = view.status;
  std::string title = "cluster " + view.cluster;
  const std::string state = status.is_object() ? text_of(status, "state") : "";
  if (!state.empty())
    title +=
        "  job " + with_commas(number_of(status, "id")) + " " + text_of(status, "job") + ", " + text_of(status, "mode");
  Lines lines{title};
  if (!view.problem.empty()) lines.push_back(view.problem + "; trying again");
  if (state.empty()) {
    if (status.is_object()) lines.emplace_back("no job was submitted yet");
    return lines;
  }
  Json shown = status;  // the status without speed and loss, which the curves show
  shown["examples_per_second"] = shown["loss"] = nullptr;
  if (is_final_state(state)) shown["steps_per_second"] = nullptr;  // no ETA
  const double target = number_of(status, "steps_target");
  const std::string progress = progress_line(shown);
  lines.push_back(target > 0 ? bar(number_of(status, "global_step") / target, kBarColumns) + " " + progress : progress);
  if (const std::string reason = text_of(status, "reason"); !reason.empty()) lines.push_back("  " + headline(reason));
  return lines;
}

// Adds two lines: "loss now 0.3121, min 0.2500, max 2.3021", and the curve.
void add_curve(Lines& lines, const std::string& name, const std::vector<double>& series, std::string (*text)(double),
               std::size_t columns, Lowest lowest, bool utf8) {
  double least = std::nan("");
  double most = std::nan("");
  for (const double value : series) {
    least = std::fmin(least, value);
    most = std::fmax(most, value);
  }
  const double newest = series.empty() ? std::nan("") : series.back();
  lines.push_back(name + " now " + text(newest) + ", min " + text(least) + ", max " + text(most));
  lines.push_back(sparkline(series, std::min({columns, series.size(), TopHistory::kMost}), lowest, utf8));
}

Lines curves(const TopView& view, std::size_t columns, bool utf8) {
  Lines lines;
  if (!view.status.is_object() || text_of(view.status, "state").empty()) return lines;
  add_curve(lines, "examples/s", view.history.examples_per_second(), with_commas, columns, Lowest::kZero, utf8);
  add_curve(lines, "loss", view.history.loss(), loss_text, columns, Lowest::kLeast, utf8);
  return lines;
}

Lines events(const TopView& view) {
  Lines lines;
  if (!view.events.is_array() || view.events.empty()) return lines;
  lines.emplace_back();
  for (std::size_t i = view.events.size() - std::min(view.events.size(), kEventsShown); i < view.events.size(); ++i)
    lines.push_back(event_line(view.events[i]));
  return lines;
}

bool is_ill(const Json& task) {
  const std::string state = text_of(task, "state");
  return (state != "ready" && state != "running") || !text_of(task, "reason").empty();
}

// Sorts tasks: first those in trouble, then those that lag most.
void put_noteworthy_first(std::vector<Json>& tasks) {
  const auto rank = [](const Json& task) {
    const double lag = number_of(task, "lag");
    return std::tuple(is_ill(task) ? 0 : 1, std::isfinite(lag) ? -lag : 1.0);
  };
  std::stable_sort(tasks.begin(), tasks.end(), [&rank](const Json& a, const Json& b) { return rank(a) < rank(b); });
}

Lines table(const TopView& view, const std::vector<Json>& tasks, std::size_t spark, bool utf8) {
  std::vector<std::string> header{"TASK", "STATE", "PHASE", "STEP", "EXAMPLES/S", "LOSS", "LAG", "HEARTBEAT"};
  constexpr std::ptrdiff_t kSparkColumn = 5;
  if (spark != 0) header.insert(header.begin() + kSparkColumn, "");
  Table table(header);
  for (const Json& task : tasks) {
    const std::string name = text_of(task, "task");
    std::vector<std::string> row{name,
                                 text_of(task, "state"),
                                 text_of(task, "phase"),
                                 with_commas(number_of(task, "step")),
                                 with_commas(number_of(task, "examples_per_second")),
                                 loss_text(number_of(task, "loss")),
                                 with_commas(number_of(task, "lag")),
                                 seconds_text(number_of(task, "heartbeat_age_seconds"))};
    if (spark != 0)
      row.insert(row.begin() + kSparkColumn,
                 sparkline(view.history.examples_per_second_of(name), spark, Lowest::kZero, utf8));
    table.add(row);
  }
  return lines_of(table.text());
}

// Returns the table of tasks with sparklines that fill the free width.
Lines wide_table(const TopView& view, const std::vector<Json>& tasks, std::size_t columns, bool utf8) {
  Lines lines = table(view, tasks, 0, utf8);
  std::size_t widest = 2;  // the blanks before another column
  for (const std::string& line : lines) widest = std::max(widest, columns_of(line) + 2);
  if (widest + kLeastSpark > columns) return lines;
  return table(view, tasks, std::min(columns - widest, kMostSpark), utf8);
}

// Returns a blank line and then the table of tasks, at most `rows` lines.
Lines tasks(const TopView& view, std::vector<Json> tasks, std::size_t rows, std::size_t columns, bool utf8) {
  Lines lines{""};
  const std::size_t all = tasks.size();
  const bool fits = rows > all;  // the header is a row too
  if (!fits) {
    put_noteworthy_first(tasks);
    tasks.resize(rows > 2 ? rows - 2 : 1);
  }
  for (std::string& line : wide_table(view, tasks, columns, utf8)) lines.push_back(std::move(line));
  if (!fits) lines.push_back("and " + std::to_string(all - tasks.size()) + " more");
  return lines;
}

std::size_t minus(std::size_t a, std::size_t b) {
  return a > b ? a - b : 0;
}

}  // namespace

std::string top_frame(const TopView& view, TerminalSize size, bool utf8) {
  Lines lines = head(view);
  Lines middle = curves(view, size.columns, utf8);
  Lines end = events(view);
  std::vector<Json> all;
  if (view.status.is_object())
    for (const Json& task : list_of(view.status, "tasks")) all.push_back(task);

  const std::size_t least = std::min(all.size(), kLeastTasks) + 3;  // a blank, the header, "and N more"
  const auto rows_left = [&] { return minus(size.rows, lines.size() + middle.size() + end.size()); };
  if (rows_left() < least) middle.clear();
  if (rows_left() < least) end.clear();
  const std::size_t rows = minus(rows_left(), 1);
  lines.insert(lines.end(), middle.begin(), middle.end());
  if (!all.empty())
    for (std::string& line : tasks(view, all, rows, size.columns, utf8)) lines.push_back(std::move(line));
  lines.insert(lines.end(), end.begin(), end.end());

  if (lines.size() > size.rows) lines.resize(size.rows);
  std::string frame;
  for (const std::string& line : lines) frame += cut(plain(line, utf8), size.columns) + "\n";
  return frame;
}

}  // namespace disttrain::cli
