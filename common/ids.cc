#include "common/ids.h"

namespace disttrain {

std::string to_string(Role role) {
  switch (role) {
    case Role::kChief:
      return "chief";
    case Role::kPs:
      return "ps";
    case Role::kWorker:
      return "worker";
  }
  return "unknown";
}

std::string to_string(TaskId task) {
  return to_string(task.role) + "/" + std::to_string(task.index);
}

}  // namespace disttrain
