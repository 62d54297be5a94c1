#include "chiefd/core/job/facts/condition.h"

namespace disttrain::chiefd {

void Condition::set(JobState state, std::string reason) {
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
