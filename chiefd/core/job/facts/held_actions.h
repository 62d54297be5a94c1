// Holds actions until a record is durable. Before that no task and no client may see the effect of these actions. Each
// action waits for the ticket of its record.
//
//   1. The chief lends records to worker/1. It persists a GrantRecord (ticket 7) and holds the LeaseGrant for ticket 7.
//   2. The event Persisted{7} comes. The chief sends the LeaseGrant.
//   3. If worker/1 is lost before Persisted{7} comes, the chief drops the LeaseGrant, because the next process of
//      worker/1 must not get it.
#pragma once

#include <map>
#include <optional>
#include <variant>

#include "chiefd/core/events.h"

namespace disttrain::chiefd {

class HeldActions {
 public:
  void hold(Ticket ticket, Action action) { held_[ticket].push_back(std::move(action)); }
  // Adds the ticket without an action, so that oldest() and newest() return it.
  void watch(Ticket ticket) { held_[ticket]; }
  // Removes and returns the actions that were held for the ticket, in order.
  Actions release(Ticket ticket);

  // Drops all held messages to tasks.
  void drop_sends();
  void drop_sends_to(TaskId task);

  bool is_empty() const { return held_.empty(); }
  // The oldest and the newest ticket whose records aren't durable yet.
  std::optional<Ticket> oldest() const;
  std::optional<Ticket> newest() const;
  bool is_lease_held(TaskId worker, LeaseId lease) const;
  template <typename Message>
  bool holds(TaskId task) const {
    return any_send(
        [task](const Send& send) { return send.task == task && std::holds_alternative<Message>(send.message); });
  }

  const std::map<Ticket, Actions>& all() const { return held_; }

 private:
  template <typename Matches>
  bool any_send(const Matches& matches) const {
    for (const auto& [ticket, actions] : held_)
      for (const Action& action : actions)
        if (const Send* send = std::get_if<Send>(&action); send != nullptr && matches(*send)) return true;
    return false;
  }

  std::map<Ticket, Actions> held_;
};

}  // namespace disttrain::chiefd
