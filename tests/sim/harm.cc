#include "tests/sim/harm.h"

#include <optional>

namespace disttrain::sim {
namespace {

// "ps/0.1" is the address of a former process of ps/0. The address of a second chief ("chief/copy") names no task.
std::optional<TaskId> task_at(const std::string& address) {
  return parse_task_id(address.substr(0, address.find('.')));
}

}  // namespace

void Harm::hit(const std::string& address) {
  if (const auto task = task_at(address)) hit_.insert(*task);
}

void Harm::hit_link(const std::string& one, const std::string& other) {
  const auto a = task_at(one);
  const auto b = task_at(other);
  if (!a || !b) return;
  if (a->role == b->role || a->role == Role::kChief || b->role == Role::kChief) {
    hit_.insert(*a);
    hit_.insert(*b);
    return;
  }
  // An evaluator talks to no ps or worker.
  if (a->role == Role::kEvaluator || b->role == Role::kEvaluator)
    return hit_.insert(a->role == Role::kEvaluator ? *a : *b), void();
  const TaskId ps = a->role == Role::kPs ? *a : *b;
  const TaskId worker = a->role == Role::kPs ? *b : *a;
  hit_.insert(worker);
  away_from_[ps].insert(worker);
}

bool Harm::is_hit(TaskId task) const {
  if (hit_.count(task) != 0) return true;
  const auto found = away_from_.find(task);
  return found != away_from_.end() && 2 * found->second.size() >= workers_;
}

}  // namespace disttrain::sim
