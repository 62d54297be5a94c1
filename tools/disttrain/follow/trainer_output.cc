#include "tools/disttrain/follow/trainer_output.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

namespace disttrain::cli {

namespace {

constexpr std::string_view kLinePrefix =
    "trainer: ";  // of a line of a trainer in a worker's log (workerd/step_thread.cc)
constexpr std::uint8_t kInfo = 1;

bool has_rank_0(const Json& task) {
  const auto rank = task.find("rank");
  return rank != task.end() && rank->is_number_unsigned() && rank->get<std::uint64_t>() == 0;
}

}  // namespace

Output output_of(const std::string& option, const JobConfig& job) {
  if (job.model.trainer.empty() || option == "none") return Output::kNone;
  return option == "all" ? Output::kAll : Output::kFirst;
}

std::vector<TaskId> TrainerOutput::tasks_in(const Json& status) {
  std::vector<TaskId> workers;
  std::optional<TaskId> holder;
  for (const Json& task : list_of(status, "tasks")) {
    const std::optional<TaskId> id = parse_task_id(text_of(task, "task"));
    if (!id || id->role != Role::kWorker) continue;
    workers.push_back(*id);
    if (has_rank_0(task)) holder = id;
  }
  has_moved_ = has_moved_ || (first_ && holder && *first_ != *holder);
  if (holder) first_ = holder;
  if (output_ == Output::kAll) return workers;
  return first_ ? std::vector<TaskId>{*first_} : std::vector<TaskId>();
}

void TrainerOutput::show(const std::string& job, const Json& status) {
  if (output_ == Output::kNone) return;
  if (job != std::exchange(job_, job)) {
    first_.reset();
    has_moved_ = false;
  }
  std::vector<LogLine> lines;
  // The hosts' clocks may differ, and some trainers print rarely. So each worker is asked for by itself, for the lines
  // after its own last one.
  for (const TaskId task : tasks_in(status)) {
    LogsRequest request;
    request.job = job;
    request.tasks = {task};
    request.level = kInfo;
    request.since_wall_nanoseconds = newest_[task] + 1;
    Result<LogLines> answer = ask_(request);
    if (!answer) break;
    for (const LogLine& line : answer->lines) newest_[task] = std::max(newest_[task], line.wall_nanoseconds);
    if (std::exchange(has_moved_, false) && output_ == Output::kFirst) continue;
    std::move(answer->lines.begin(), answer->lines.end(), std::back_inserter(lines));
  }
  std::stable_sort(lines.begin(), lines.end(), [](const LogLine& one, const LogLine& other) {
    return one.wall_nanoseconds < other.wall_nanoseconds;
  });
  for (const LogLine& line : lines) print(line);
}

void TrainerOutput::print(const LogLine& line) {
  if (!line.text.starts_with(kLinePrefix)) return;
  const std::string text = line.text.substr(kLinePrefix.size());
  print_(output_ == Output::kAll ? to_string(line.task) + ": " + text : text);
}

}  // namespace disttrain::cli
