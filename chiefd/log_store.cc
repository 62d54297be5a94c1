#include "chiefd/log_store.h"

#include <algorithm>
#include <utility>

#include "common/bounds.h"
#include "common/daemon/log/log.h"
#include "common/printable.h"

namespace disttrain::chiefd {

bool LogFilter::passes(const LogLine& line) const {
  if (line.level < level) return false;
  if (line.wall_nanoseconds < since_wall_nanoseconds || line.wall_nanoseconds > until_wall_nanoseconds) return false;
  return takes(line.task);
}

bool LogFilter::takes(TaskId task) const {
  return tasks.empty() || std::find(tasks.begin(), tasks.end(), task) != tasks.end();
}

void LogStore::add(TaskId task, LogLines lines) {
  Kept& kept = lines_[task];
  for (LogLine& line : lines.lines) {
    line.task = task;
    if (line.text.size() > kMaxTextBytes) line.text = cut_text(line.text, kMaxTextBytes);
    kept.bytes += line.text.size();
    kept.lines.push_back(std::move(line));
    while (kept.lines.size() > kKeptLines || kept.bytes > kKeptBytes) {
      kept.bytes -= kept.lines.front().text.size();
      kept.lines.pop_front();
    }
  }
}

std::vector<LogLine> LogStore::find(const LogFilter& filter) const {
  std::vector<LogLine> found;
  for (const auto& [task, kept] : lines_) {
    if (!filter.takes(task)) continue;
    std::copy_if(kept.lines.begin(), kept.lines.end(), std::back_inserter(found),
                 [&filter](const LogLine& line) { return filter.passes(line); });
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const LogLine& a, const LogLine& b) { return a.wall_nanoseconds < b.wall_nanoseconds; });
  std::size_t bytes = 0;
  auto first = found.end();
  while (first != found.begin() && found.end() - first < static_cast<std::ptrdiff_t>(kMaxAnswerLines)) {
    bytes += (first - 1)->text.size();
    if (bytes > kMaxAnswerBytes) break;
    --first;
  }
  found.erase(found.begin(), first);
  return found;
}

std::vector<std::string> LogStore::tail(TaskId task, std::size_t count, const LogFilter& filter) const {
  std::vector<std::string> texts;
  const auto found = lines_.find(task);
  if (found == lines_.end()) return texts;
  const std::deque<LogLine>& lines = found->second.lines;
  for (auto line = lines.rbegin(); line != lines.rend() && texts.size() < count; ++line)
    if (filter.passes(*line)) texts.push_back(daemon::to_text(*line));
  std::reverse(texts.begin(), texts.end());
  return texts;
}

}  // namespace disttrain::chiefd
