#include "chiefd/core/job/facts/held_actions.h"

#include <utility>

namespace disttrain::chiefd {

Actions HeldActions::release(Ticket ticket) {
  auto held = held_.extract(ticket);
  return held.empty() ? Actions() : std::move(held.mapped());
}

void HeldActions::drop_sends() {
  for (auto& [ticket, actions] : held_)
    std::erase_if(actions, [](const Action& action) { return std::holds_alternative<Send>(action); });
}

void HeldActions::drop_sends_to(TaskId task) {
  for (auto& [ticket, actions] : held_)
    std::erase_if(actions, [task](const Action& action) {
      const Send* send = std::get_if<Send>(&action);
      return send != nullptr && send->task == task;
    });
}

std::optional<Ticket> HeldActions::oldest() const {
  if (held_.empty()) return std::nullopt;
  return held_.begin()->first;
}

std::optional<Ticket> HeldActions::newest() const {
  if (held_.empty()) return std::nullopt;
  return held_.rbegin()->first;
}

bool HeldActions::is_lease_held(TaskId worker, LeaseId lease) const {
  return any_send([&](const Send& send) {
    const LeaseGrant* grant = std::get_if<LeaseGrant>(&send.message);
    return grant != nullptr && send.task == worker && grant->lease && grant->lease->id == lease;
  });
}

}  // namespace disttrain::chiefd
