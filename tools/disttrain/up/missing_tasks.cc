#include "tools/disttrain/up/missing_tasks.h"

#include <algorithm>

namespace disttrain::cli {

namespace {

// The chief notices a task's death too. It gets this much time to end or continue the job itself.
constexpr std::chrono::milliseconds kChiefSaysSo(500);

}  // namespace

bool waits_for(const Json& status, TaskId task) {
  const std::string state = status.is_object() ? text_of(status, "state") : "";
  if (state.empty() || state == "queued" || state == "starting") return true;
  if (state != "paused") return false;
  const Json awaited = list_of(status, "waits_for");
  return std::any_of(awaited.begin(), awaited.end(), [task](const Json& one) {
    const std::string what = text_of(one, "for");
    if (what != "hello" && what != "heartbeat") return false;
    const std::string name = text_of(one, "task");
    return name.empty() ? task.role == Role::kWorker : name == to_string(task);
  });
}

// Returns true if the job can't go on without this task. If a ps stays down, the chief after a while restores its
// shards on other ps tasks. So a paused job needs this ps only if all ps tasks stay down.
bool MissingTasks::is_indispensable(const Json& status, TaskId task) const {
  if (!waits_for(status, task)) return false;
  if (task.role != Role::kPs || text_of(status, "state") != "paused") return true;
  for (std::uint32_t index = 0; index < ps_; ++index)
    if (!daemons_.stays_down(TaskId{Role::kPs, index})) return false;
  return true;
}

std::optional<Error> MissingTasks::judge(const Json& status) {
  const auto& ended = daemons_.ended();
  const auto found = std::find_if(ended.begin(), ended.end(), [this, &status](const EndedDaemon& one) {
    return one.stays_down && (one.task.role == Role::kChief || is_indispensable(status, one.task));
  });
  if (found == ended.end()) {
    awaited_since_.reset();
    return std::nullopt;
  }
  const auto time = std::chrono::steady_clock::now();
  if (!awaited_since_) awaited_since_ = time;
  if (found->task.role != Role::kChief && time - *awaited_since_ < kChiefSaysSo) return std::nullopt;
  blamed_ = *found;
  return Error{error_code_of(*found), described(*found)};
}

}  // namespace disttrain::cli
