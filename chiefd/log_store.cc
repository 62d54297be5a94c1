#include "chiefd/log_store.h"

#include <algorithm>
#include <utility>

#include "common/daemon/log.h"

namespace disttrain::chiefd {

bool LogFilter::passes(const LogLine& line) const {
  if (line.level < level) return false;
  if (line.wall_nanoseconds < since_wall_nanoseconds || line.wall_nanoseconds > until_wall_nanoseconds) return false;
  return tasks.empty() || std::find(tasks.begin(), tasks.end(), line.task) != tasks.end();
}

void LogStore::add(TaskId task, LogLines lines) {
  std::deque<LogLine>& kept = lines_[task];
  for (LogLine& line : lines.lines) {
    line.task = task;
    if (line.text.size() > daemon::kMaxLogLineBytes) line.text.resize(daemon::kMaxLogLineBytes);
    kept.push_back(std::move(line));
    if (kept.size() > kKeptLines) kept.pop_front();
  }
}

std::vector<LogLine> LogStore::find(const LogFilter& filter) const {
  std::vector<LogLine> found;
  for (const auto& [task, lines] : lines_)
    std::copy_if(lines.begin(), lines.end(), std::back_inserter(found),
                 [&filter](const LogLine& line) { return filter.passes(line); });
  std::stable_sort(found.begin(), found.end(),
                   [](const LogLine& a, const LogLine& b) { return a.wall_nanoseconds < b.wall_nanoseconds; });
  if (found.size() > kMaxAnswerLines) found.erase(found.begin(), found.end() - kMaxAnswerLines);
  return found;
}

std::vector<std::string> LogStore::tail(TaskId task, std::size_t count) const {
  std::vector<std::string> texts;
  const auto lines = lines_.find(task);
  if (lines == lines_.end()) return texts;
  const std::size_t from = lines->second.size() - std::min(count, lines->second.size());
  for (std::size_t i = from; i < lines->second.size(); ++i) texts.push_back(daemon::to_text(lines->second[i]));
  return texts;
}

}  // namespace disttrain::chiefd
