// The state of a job and its reason, as the status, the journal and the events show it.
#pragma once

#include <optional>
#include <string>

#include "chiefd/core/job/event_log.h"
#include "chiefd/core/job/held_actions.h"
#include "chiefd/core/journal_state.h"

namespace disttrain::chiefd {

class Condition {
 public:
  Condition(const JobSetup& setup, EventLog& events, HeldActions& held) : setup_(setup), events_(events), held_(held) {}

  JobState state() const { return state_; }
  const std::string& reason() const { return reason_; }
  bool has_ended() const { return is_final(state_); }
  // A new state is journaled and reported as an event. Clients hear of a final state only when it is durable. While the
  // job is being stopped kPaused becomes kStopping: a restarted chief has only the state to know that by.
  void set(Turn& turn, JobState state, std::string reason);
  // Changes the reason only. It is neither journaled nor reported as an event.
  void explain(std::string reason) { reason_ = std::move(reason); }
  // Sets the state that a former chief left.
  void restore(JobState state, std::string reason);

  // The job has left the queue, under this or a former chief.
  bool has_begun() const { return has_begun_; }
  void begin() { has_begun_ = true; }
  // Workers have opened the job once, under this or a former chief.
  bool was_opened() const { return was_opened_; }
  void note_opened(bool was_opened = true) { was_opened_ = was_opened; }

  // A client has stopped the job, and the workers finish their step.
  bool is_stopping() const { return is_stopping_; }
  void begin_stopping(std::string reason);
  // Why the job is being stopped or closed.
  const std::string& end_reason() const { return end_reason_; }
  void end_for(std::string reason) { end_reason_ = std::move(reason); }

  // Why the job failed: the task that is the root cause, and the error code if the job failed before it was opened.
  const std::optional<ErrorCode>& code() const { return code_; }
  const std::optional<RootCause>& root_cause() const { return root_cause_; }
  void blame(const Error& error, std::optional<TaskId> root);
  void recall_blame(std::optional<ErrorCode> code, std::optional<RootCause> root_cause);

 private:
  const JobSetup& setup_;
  EventLog& events_;
  HeldActions& held_;
  JobState state_ = JobState::kQueued;
  std::string reason_ = "waits for its turn";
  bool has_begun_ = false;
  bool was_opened_ = false;
  bool is_stopping_ = false;
  std::string end_reason_;
  std::optional<ErrorCode> code_;
  std::optional<RootCause> root_cause_;
};

}  // namespace disttrain::chiefd
