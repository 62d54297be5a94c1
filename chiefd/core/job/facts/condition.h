// The state of a job and the reason for that state, which the status, the journal and the events show, and what is
// known of its end.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "chiefd/core/journal_state.h"
#include "common/messages/control.h"
#include "common/result.h"

namespace disttrain::chiefd {

class Condition {
 public:
  JobState state() const { return state_; }
  const std::string& reason() const { return reason_; }
  bool has_ended() const { return is_final(state_); }
  // Sets the state, which the caller has journaled or read from the journal. See set_state() of flow.h.
  void set(JobState state, std::string reason);
  // Changes only the reason. The new reason is neither journaled nor reported as an event.
  void explain(std::string reason) { reason_ = std::move(reason); }

  // True if the job has left the queue, even if that was before a restart of the chief.
  bool has_begun() const { return has_begun_; }
  void begin() { has_begun_ = true; }
  // True if the workers have opened the job at least once, even if that was before a restart of the chief.
  bool was_opened() const { return was_opened_; }
  void note_opened(bool was_opened = true) { was_opened_ = was_opened; }

  // True if a client has stopped the job, or it finishes early, and the workers are finishing their steps.
  bool is_stopping() const { return is_stopping_; }
  void begin_stopping(std::string reason, bool finishes_early = false);
  // True if the job is stopping because it finishes early (evaluate.stop_after).
  bool finishes_early() const { return is_stopping_ && finishes_early_; }
  // The job doesn't stop any more. Either the workers have finished, or the job rolls back and finishes early later.
  void end_stopping() { is_stopping_ = false; }
  // Why the job is being stopped or closed.
  const std::string& end_reason() const { return end_reason_; }
  void end_for(std::string reason) { end_reason_ = std::move(reason); }

  // Why the job failed. root_cause() has the task to blame. code() is set only if the job failed before the workers
  // opened it.
  const std::optional<ErrorCode>& code() const { return code_; }
  const std::optional<RootCause>& root_cause() const { return root_cause_; }
  void blame(const Error& error, std::optional<TaskId> root);
  void recall_blame(std::optional<ErrorCode> code, std::optional<RootCause> root_cause);

 private:
  JobState state_ = JobState::kQueued;
  std::string reason_ = "waits for its turn";
  bool has_begun_ = false;
  bool was_opened_ = false;
  bool is_stopping_ = false;
  bool finishes_early_ = false;
  std::string end_reason_;
  std::optional<ErrorCode> code_;
  std::optional<RootCause> root_cause_;
};

}  // namespace disttrain::chiefd
