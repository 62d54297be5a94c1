// The context of one step of the core: the time, the tasks, and the list that takes the actions. It lives as long as
// this step.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "chiefd/core/events.h"
#include "chiefd/core/tasks.h"
#include "common/time.h"

namespace disttrain::chiefd {

struct Turn {
  Instant now;
  Term term;
  Tasks& tasks;
  Ticket& last_ticket;
  Actions& actions;

  Ticket next_ticket() { return last_ticket = last_ticket.next(); }
  Ticket persist(Record record) {
    actions.push_back(Persist{next_ticket(), std::move(record)});
    return last_ticket;
  }
  // Sends nothing to a task without a connection. See Tasks::send().
  void send(TaskId task, ToTask message) { tasks.send(Send{task, std::move(message)}, actions); }
  void send_to(const std::vector<Member>& members, const ToTask& message) {
    for (const Member& member : members) send(member.task, message);
  }
  void folder_work(JobId job, Ticket ticket, decltype(FolderWork::work) work) {
    actions.emplace_back(std::in_place_type<FolderWork>, job, ticket, std::move(work));
  }
};

}  // namespace disttrain::chiefd
