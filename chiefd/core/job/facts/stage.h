// The stage of a job, the tasks that the job waits for in this stage, and the deadline of the wait.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "chiefd/core/events.h"
#include "common/time.h"

namespace disttrain::chiefd {

// The stages, in the order of a job's life. job.h explains them.
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

// The properties of a stage.
struct StageTraits {
  // The job has decided on a generation and hasn't given it up. Its tasks may fail as a consequence of something else
  // in other stages.
  bool has_generation = false;
  // Tasks of the job may be connected to each other, in this generation or in the one that is given up.
  bool has_channels = false;
  // The shards of the generation may have applied pushes that are in no checkpoint.
  bool has_trained = false;
  // The awaited tasks may work for long, and their progress extends the stage.
  bool has_long_work = false;
  // The job ends, or has ended.
  bool has_closed = false;
};
StageTraits traits_of(Stage stage);

class StageWait {
 public:
  Stage at() const { return stage_; }
  bool is(Stage stage) const { return stage_ == stage; }
  StageTraits traits() const { return traits_of(stage_); }
  // Changes only the stage. The awaited members and the deadline stay until they are set again.
  void enter(Stage stage) { stage_ = stage; }

  // Begins to wait for an answer of each of these members. The wait ends at the deadline.
  void await(Instant now, const std::vector<Member>& who, Instant deadline);
  void await_nobody() { awaited_.clear(); }
  bool awaits(const Member& member) const { return awaited_.count(member) != 0; }
  bool awaits_anyone() const { return !awaited_.empty(); }
  const std::set<Member>& awaited() const { return awaited_; }
  // Notes the answer of a member. Returns true if the stage waits for no other answer.
  bool answered(const Member& member) { return awaited_.erase(member) > 0 && awaited_.empty(); }

  // When the wait began. In stage kTrain a wait is either for the checkpoint that is taken before a ps leaves, or for
  // the workers to finish their steps.
  Instant since() const { return since_; }
  void wait_since(Instant since) { since_ = since; }

  // The deadline of the stage. None if the stage is bounded in another way, for example kFinalCut by the deadline of
  // the attempt.
  const std::optional<Instant>& deadline() const { return deadline_; }
  bool is_overdue(Instant now) const { return deadline_ && now >= *deadline_; }
  void set_deadline(Instant deadline) { deadline_ = deadline; }
  void clear_deadline() { deadline_.reset(); }
  void postpone_deadline(Duration by);

  // The ticket that this stage waits for. It is the ticket of the generation's record, of the record of the job's end,
  // or of the work on the checkpoint folder.
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
