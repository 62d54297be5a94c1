// Actions that the outside must not see before a record is durable. Each is held until the record's ticket is
// persisted.
//
//   1. The chief lends records to worker/1: it persists a GrantRecord (ticket 7) and holds the LeaseGrant for ticket 7.
//   2. Persisted{7} comes: the grant is sent.
//   3. Had worker/1 been lost in between, the grant would have been dropped: its successor must not get it.
#pragma once

#include <map>
#include <optional>
#include <variant>

#include "chiefd/core/events.h"

namespace disttrain::chiefd {

class HeldActions {
 public:
  void hold(Ticket ticket, Action action) { held_[ticket].push_back(std::move(action)); }
  // Watches the ticket without an action, so that oldest() sees its record when the disk is late.
  void watch(Ticket ticket) { held_[ticket]; }
  // Holds the action behind all others: it goes out with the newest ticket. Something must be held.
  void hold_behind_all(Action action) { held_.rbegin()->second.push_back(std::move(action)); }
  // Returns the actions that were held for the ticket, in order.
  Actions release(Ticket ticket);

  // Drops all held messages to tasks.
  void drop_sends();
  void drop_sends_to(TaskId task);

  bool is_empty() const { return held_.empty(); }
  // The oldest record that isn't durable yet.
  std::optional<Ticket> oldest() const;
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
