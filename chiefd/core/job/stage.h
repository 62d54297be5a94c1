// The stage of a job, the members that it waits for, and the deadline. Every wait has a deadline.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "chiefd/core/events.h"
#include "common/time.h"

namespace disttrain::chiefd {

// In the order of a job's life; job.h has the story.
enum class Stage {
  kQueued,
  kGather,
  kDescribe,
  kFolder,
  kInit,
  kRegather,
  kFind,
  kGeneration,  // its record is being written
  kCreate,
  kOpen,
  kRoster,
  kReclaim,
  kTrain,
  kSettle,
  kFinalCut,
  kEvaluate,
  kClose,
  kReleased,
};

class StageWait {
 public:
  Stage at() const { return stage_; }
  bool is(Stage stage) const { return stage_ == stage; }
  // Changes only the stage: the awaited members and the deadline stay until they are set anew.
  void enter(Stage stage) { stage_ = stage; }

  // These members owe an answer, until the deadline.
  void await(Instant now, const std::vector<Member>& who, Instant deadline);
  void await_nobody() { awaited_.clear(); }
  bool awaits(const Member& member) const { return awaited_.count(member) != 0; }
  bool awaits_anyone() const { return !awaited_.empty(); }
  const std::set<Member>& awaited() const { return awaited_; }
  // True when this was the last answer that was due.
  bool answered(const Member& member) { return awaited_.erase(member) > 0 && awaited_.empty(); }

  // When the wait began. In kTrain: the wait for a leaver's checkpoint or for the end of a step.
  Instant since() const { return since_; }
  void wait_since(Instant since) { since_ = since; }

  // The deadline of the stage. None: something else bounds the wait.
  const std::optional<Instant>& deadline() const { return deadline_; }
  bool is_overdue(Instant now) const { return deadline_ && now >= *deadline_; }
  void set_deadline(Instant deadline) { deadline_ = deadline; }
  void clear_deadline() { deadline_.reset(); }
  void postpone_deadline(Duration by);

  // The ticket that this stage waits for: of the generation's or the end's record, or of the work on the checkpoint
  // folder.
  Ticket ticket() const { return ticket_; }
  void set_ticket(Ticket ticket) { ticket_ = ticket; }

 private:
  Stage stage_ = Stage::kQueued;
  std::set<Member> awaited_;
  Instant since_;
  std::optional<Instant> deadline_;
  Ticket ticket_;
};

}  // namespace disttrain::chiefd
