#include "common/ids.h"

#include <charconv>

namespace disttrain {

std::string to_string(Role role) {
  switch (role) {
    case Role::kChief:
      return "chief";
    case Role::kPs:
      return "ps";
    case Role::kWorker:
      return "worker";
    case Role::kEvaluator:
      return "evaluator";
  }
  return "unknown";
}

std::string to_string(TaskId task) {
  return to_string(task.role) + "/" + std::to_string(task.index);
}

std::optional<TaskId> parse_task_id(const std::string& text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string::npos) return std::nullopt;
  TaskId task;
  const char* const end = text.data() + text.size();
  const auto [read, error] = std::from_chars(text.data() + slash + 1, end, task.index);
  if (error != std::errc() || read != end) return std::nullopt;
  for (const Role role : {Role::kChief, Role::kPs, Role::kWorker, Role::kEvaluator}) {
    task.role = role;
    if (text.substr(0, slash) == to_string(role)) return task;
  }
  return std::nullopt;
}

}  // namespace disttrain
