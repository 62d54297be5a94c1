#include "chiefd/core/job/condition.h"

#include <utility>

namespace disttrain::chiefd {

void Condition::set(Turn& turn, JobState state, std::string reason) {
  if (is_stopping_ && state == JobState::kPaused) state = JobState::kStopping;
  const bool is_new = state != state_;
  state_ = state;
  reason_ = std::move(reason);
  if (!is_new) return;
  const Ticket ticket = turn.persist(StateRecord{setup_.id, state, reason_});
  if (is_final(state)) held_.hold(ticket, JobEnded{setup_.id});
  if (state == JobState::kStopping) held_.watch(ticket);  // the workers are told when it is durable
  const std::uint8_t level = state == JobState::kFailed ? 3 : state == JobState::kPaused ? 2 : 1;
  events_.tell(turn, to_string(state), level, std::string(to_string(state)) + ": " + reason_);
}

void Condition::restore(JobState state, std::string reason) {
  state_ = state;
  reason_ = std::move(reason);
}

void Condition::begin_stopping(std::string reason, bool finishes_early) {
  is_stopping_ = true;
  finishes_early_ = finishes_early;
  end_reason_ = std::move(reason);
}

void Condition::blame(const Error& error, std::optional<TaskId> root) {
  if (root) root_cause_ = RootCause{*root, error.message};
  if (!was_opened_) code_ = error.code;
}

void Condition::recall_blame(std::optional<ErrorCode> code, std::optional<RootCause> root_cause) {
  code_ = code;
  root_cause_ = std::move(root_cause);
}

}  // namespace disttrain::chiefd
