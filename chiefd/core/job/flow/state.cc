// The job's state is journaled when it changes. An event tells the operator, and a restarted chief, what has happened.
#include <utility>

#include "chiefd/core/job/flow/flow.h"
#include "chiefd/core/job/views/members.h"

namespace disttrain::chiefd::flow {

void set_state(JobFacts& job, Turn& turn, JobState state, std::string reason) {
  if (job.condition.is_stopping() && state == JobState::kPaused) state = JobState::kStopping;
  const bool is_new = state != job.condition.state();
  job.condition.set(state, std::move(reason));
  if (is_new) journal_state(job, turn);
}

void journal_state(JobFacts& job, Turn& turn) {
  const JobState state = job.condition.state();
  const Ticket ticket = turn.persist(StateRecord{job.setup.id, state, job.condition.reason()});
  if (is_final(state)) job.held.hold(ticket, JobEnded{job.setup.id});
  if (state == JobState::kStopping) job.held.watch(ticket);  // the workers are told when it is durable
  const std::uint8_t level = state == JobState::kFailed ? 3 : state == JobState::kPaused ? 2 : 1;
  tell(job, turn, to_string(state), level, std::string(to_string(state)) + ": " + job.condition.reason());
}

void send_behind_all(JobFacts& job, Turn& turn, TaskId task, ToTask message) {
  const std::optional<Ticket> newest = job.held.newest();
  if (!newest) return turn.send(task, std::move(message));
  job.held.hold(*newest, Send{task, std::move(message)});
}

void tell(const JobFacts& job, Turn& turn, const std::string& kind, std::uint8_t level, const std::string& text,
          std::optional<TaskId> task, const std::string& cause) {
  const std::uint64_t step = views::reached(job).value;
  turn.persist(EventRecord{0, job.setup.id, kind, task ? to_string(*task) : "", step, text, cause});
  turn.actions.push_back(Note{level,
                              "job " + job.setup.name() + " (" + std::to_string(job.setup.id.value) + "): " + text,
                              kind, job.setup.name(), step});
}

}  // namespace disttrain::chiefd::flow
