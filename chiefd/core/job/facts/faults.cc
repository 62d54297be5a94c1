#include "chiefd/core/job/facts/faults.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "common/printable.h"

namespace disttrain::chiefd {

namespace {

constexpr std::size_t kMostBytes = 500;
constexpr int kCrashes[] = {4, 6, 7, 8, 11};  // Linux: SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

// `line` is a line of a traceback, such as `    File "/job/train.py", line 10, in <module>`. Returns
// "/job/train.py:10 in <module>", and none for another line. Of a syntax error there is no function.
std::optional<std::string> place_in(std::string_view line) {
  constexpr std::string_view kFile = "    File \"";
  constexpr std::string_view kLine = "\", line ";
  if (!line.starts_with(kFile)) return std::nullopt;
  line.remove_prefix(kFile.size());
  const std::size_t name = line.find(kLine);
  if (name == std::string_view::npos) return std::nullopt;
  const std::string_view file = line.substr(0, name);
  line.remove_prefix(name + kLine.size());
  const std::size_t number = line.find(", in ");
  std::string place = std::string(file) + ":" + std::string(line.substr(0, number));
  if (number != std::string_view::npos) place += line.substr(number + 1);
  return place;
}

// Returns the exception's type in the traceback's last part, such as "ValueError" of "  ValueError: bad label 7". Lines
// of the traceback are indented further.
std::string_view exception_in(std::string_view line) {
  constexpr std::string_view kIndent = "  ";
  if (!line.starts_with(kIndent) || line.size() == kIndent.size() || line[kIndent.size()] == ' ') return "";
  line.remove_prefix(kIndent.size());
  return line.substr(0, line.find(':'));
}

// The text of a trainer's error ends with its last lines, each indented by two blanks (LastLines::text()).
std::string traceback_in(std::string_view text) {
  const std::vector<std::string_view> lines = lines_of(text);
  std::string place;
  std::string exception;
  for (const std::string_view line : lines) {
    if (const auto found = place_in(line)) {
      place = *found;
      exception.clear();
    } else if (!place.empty() && exception.empty()) {
      exception = exception_in(line);
    }
  }
  return exception.empty() ? "" : exception + " at " + place;
}

// Returns the first words of such a reason and the number behind them, such as "the trainer ended with exit code 3".
// Empty if the text hasn't these words.
std::string words_and_number(std::string_view text, std::string_view words) {
  const std::size_t at = text.find(words);
  if (at == std::string_view::npos) return "";
  const std::string_view found = text.substr(at);
  return std::string(found.substr(0, found.find_first_not_of("0123456789", words.size())));
}

// Returns "the trainer was killed by signal 11" if a crash has ended the trainer. Another signal may come from
// somebody else, such as from the kernel when memory is short, and isn't a fault of the trainer.
std::string crash_in(std::string_view text) {
  constexpr std::string_view kKilled = "the trainer was killed by signal ";
  const std::string killed = words_and_number(text, kKilled);
  for (const int signal : kCrashes)
    if (killed == std::string(kKilled) + std::to_string(signal)) return killed;
  return "";
}

// Where the interpreter was when it crashed: the innermost line of the stack that Python's faulthandler prints. Empty
// if the text has no such stack, or has several and doesn't say which one has crashed.
std::string crash_place_in(std::string_view text) {
  constexpr std::string_view kStack = "(most recent call first)";
  const std::size_t current = text.find("Current thread ");
  const std::size_t stack = text.find(kStack, current == std::string_view::npos ? 0 : current);
  if (stack == std::string_view::npos) return "";
  const bool are_several = text.find(kStack, stack + kStack.size()) != std::string_view::npos;
  // The stack of another thread may be the only one that was kept. That of a thread alone begins with "Stack".
  const std::size_t head = text.rfind('\n', stack) + 1;
  const bool is_of_another = text.substr(head, stack - head).find("Thread 0x") != std::string_view::npos;
  if (current == std::string_view::npos && (are_several || is_of_another)) return "";
  for (const std::string_view line : lines_of(text.substr(stack)))
    if (const auto place = place_in(line)) return *place;
  return "";
}

}  // namespace

Fault fault_of(ErrorCode code, const std::string& reason) {
  const std::string text = unfolded(reason);
  // A trainer that was killed, or that hangs, may have printed a traceback before, of an exception that it caught.
  constexpr std::string_view kEnded = "the trainer ended with exit code ";
  const bool ended_by_itself = text.find(kEnded) != std::string::npos;
  std::string fault = ended_by_itself ? traceback_in(text) : "";
  if (fault.empty() && code == ErrorCode::kFailed) fault = text.substr(0, text.find('\n'));
  const std::string crash = crash_in(text);
  if (const std::string place = crash.empty() ? "" : crash_place_in(text); !place.empty())
    fault = crash + " at " + place;
  const bool is_own = !fault.empty();
  if (!is_own) fault = crash.empty() ? words_and_number(text, kEnded) : crash;
  return {std::string(cut_text(fault, kMostBytes)), is_own};
}

Faults::Verdict Faults::note(Instant now, const Member& worker, const Fault& fault, const std::set<TaskId>& living,
                             Duration window) {
  constexpr std::size_t kMost = 3;
  std::erase_if(entries_, [&](const auto& entry) { return entry.second.at + window < now; });
  Entry& own = entries_[worker.task];
  const bool is_same = own.fault == fault;
  own = Entry{worker, fault, is_same ? own.times + 1 : 1, now, is_same && own.made_steps};
  std::size_t times = 0;
  std::size_t fewest = own.times;
  bool made_steps = false;
  for (const auto& [task, entry] : entries_) {
    if (entry.fault != fault) continue;
    times += entry.times;
    made_steps = made_steps || entry.made_steps;
  }
  const bool is_every = std::all_of(living.begin(), living.end(), [&](TaskId task) {
    const auto entry = entries_.find(task);
    if (entry == entries_.end() || entry->second.fault != fault) return false;
    fewest = std::min(fewest, entry->second.times);
    return true;
  });
  const bool is_certain = fault.is_own && !made_steps;
  if (is_every && (is_certain ? times > 1 : fewest >= kMost)) return Verdict::kEveryWorker;
  return own.times >= (own.made_steps ? kMost : 2) ? Verdict::kAgain : Verdict::kFirst;
}

void Faults::note_steps(const Member& worker, std::uint64_t steps) {
  if (steps == 0 || entries_.empty()) return;
  const auto entry = entries_.find(worker.task);
  if (entry == entries_.end() || entry->second.member == worker) return;
  entry->second.made_steps = true;
  if (steps >= kManySteps) entries_.erase(entry);
}

}  // namespace disttrain::chiefd
