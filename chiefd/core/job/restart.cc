#include "chiefd/core/job/restart.h"

#include <algorithm>
#include <utility>

#include "chiefd/core/job/parts.h"

namespace disttrain::chiefd {

Restart::Restart(JobParts& parts)
    : setup_(parts.setup),
      events_(parts.events),
      condition_(parts.condition),
      progress_(parts.progress),
      rollbacks_(parts.rollbacks),
      generation_(parts.generation),
      workers_(parts.workers),
      candidates_(parts.candidates),
      worker_losses_(parts.worker_losses),
      gathering_(parts.gathering),
      loans_(parts.loans),
      reclaim_(parts.reclaim),
      recovery_(parts.recovery),
      regathering_(parts.regathering),
      folder_(parts.folder),
      schedule_(parts.schedule),
      closing_(parts.closing),
      evaluators_(parts.evaluators),
      ending_(parts.ending) {}

void Restart::recall(Instant now, const std::deque<EventRecord>& events, const EventClocks& clocks) {
  const Duration window = setup_.config().job.restart_window;
  bool is_step_known = true;
  for (const EventRecord& event : events) {
    if (event.job != setup_.id) continue;
    const std::optional<Duration> known_age = age_of(event, clocks);
    const Duration age = known_age.value_or(Duration::zero());
    // A loss of unknown age doesn't count. Otherwise old losses could fail a job after the wall clock was set back.
    recall_one(now, event, age, known_age && age <= window, is_step_known);
    // After a restart the chief knows only the steps of checkpoints, until the pacer reports the job's step.
    if (event.kind == kTakenUp) is_step_known = false;
    if (event.kind == kReclaimed || event.kind == kRolledBack) is_step_known = true;
  }
}

// An event of a loss without a later kRolledBack event means that the rollback isn't over. This chief has to end it.
void Restart::recall_one(Instant now, const EventRecord& event, Duration age, bool counts, bool is_step_known) {
  const std::string& kind = event.kind;
  const bool is_running = kind == to_string(JobState::kRunning);
  if (counts && (kind == kLossCounted || kind == kLostAtStart))
    rollbacks_.note_loss(now - age, setup_.config().job.restart_window);
  // The task was told to end. If it is gone now, or is another process, it left in good order.
  if (kind == kTaskLeaves) reclaim_.note_told_to_end(event.task);
  if (kind == kTaskJoined) reclaim_.note_joined(event.task);
  if (kind == kLossCounted || kind == kRollsBack) {
    const std::optional<Rollback>& before = rollbacks_.current();
    rollbacks_.begin(Rollback{Cause{parse_task_id(event.task), event.cause.empty() ? event.text : event.cause},
                              before ? before->began : now - age, now, now,
                              std::max(Step(event.step), before ? before->step : Step()), is_step_known});
  }
  if (kind == kWorkerLost && counts) worker_losses_.note_lost(event.task, now - age, event.text);
  if (kind == kRolledBack) rollbacks_.end();
  if (is_running) reclaim_.forget_told_to_end();
  // The time until the next checkpoint counts from the last checkpoint, however often the chief is restarted.
  if (kind == kCheckpointTaken || (is_running && !schedule_.has_begun())) schedule_.begin(now - age);
}

void Restart::recall_end(const EndRecord& end) {
  generation_.restore_number(end.generation);
  progress_.recall(end);
  condition_.recall_blame(end.code, end.root_cause);
}

// If this generation has taken a checkpoint, the job has reached at least the step of that checkpoint. Otherwise it has
// reached at least the step at which the generation began. The chief doesn't use the step of an earlier generation's
// checkpoint: if that checkpoint is damaged, this generation began at an earlier step.
void Restart::recall_progress(const JournaledJob& journaled) {
  const GenerationRecord& record = journaled.generation;
  const std::optional<CheckpointRecord>& newest = journaled.checkpoint;
  const bool is_of_this = newest && newest->generation == record.generation;
  progress_.take_up(is_of_this ? newest->step : record.restore_step, record.before);
}

void Restart::take_up(Turn& turn, const JournaledJob& journaled) {
  const GenerationRecord& record = journaled.generation;
  condition_.begin();
  condition_.restore(journaled.state, journaled.reason);
  folder_.set_newest(journaled.checkpoint);
  rollbacks_.set_count(record.recoveries);
  evaluators_.take_up(journaled.evaluations);
  if (journaled.ended) {
    rollbacks_.end();
    recall_end(*journaled.ended);
    return closing_.close(turn, journaled.ended->state, journaled.ended->reason);
  }
  condition_.note_opened(journaled.is_training || journaled.checkpoint || record.before.time > Duration::zero());
  if (!schedule_.has_begun()) schedule_.begin(turn.now);
  if (journaled.described) generation_.describe(*journaled.described);
  generation_.restore_number(record.generation);
  recall_progress(journaled);
  const std::string early_end = journaled.evaluations ? journaled.evaluations->early_end : "";
  const bool finishes_early = !early_end.empty() && journaled.is_training && !rollbacks_.current();
  if (finishes_early) {
    condition_.restore(JobState::kStopping, early_end);
    condition_.begin_stopping(early_end, true);
  } else if (journaled.state == JobState::kStopping && early_end.empty())
    condition_.begin_stopping(journaled.reason);
  else
    condition_.end_for(journaled.reason);
  generation_.init_from(record.init_path);
  // FindInit also protects the checkpoint at this path from removal.
  if (!record.init_path.empty()) turn.folder_work(setup_.id, turn.next_ticket(), FindInit{record.init_path});
  if (record.generation.value == 0) rollbacks_.end();  // no shard was placed yet
  if (setup_.waits_for_lost()) workers_.fix_ranks(record.roster.members);
  if (!journaled.is_training && condition_.is_stopping())
    return closing_.close(turn, JobState::kStopped,
                          condition_.end_reason() + "; the chief was restarted before the job trained");
  if (!generation_.described() || (!journaled.is_training && !rollbacks_.current())) {
    // A new start loses no step, because this generation hasn't trained. The journal may have the state kPaused: the
    // chief may have died after it wrote that a rollback is over, and before it wrote that the new generation trains.
    gathering_.begin_again(turn);
    generation_.forget_description();
    return condition_.set(turn, JobState::kStarting, "the chief was restarted; the job gathers its tasks again");
  }
  take_up_generation(turn, journaled);
}

// Takes over the generation from the journal. The job's tasks may still train, so the chief waits for their hellos. If
// the job was in a rollback, the chief rolls it back again.
void Restart::take_up_generation(Turn& turn, const JournaledJob& journaled) {
  workers_.take_up(journaled.roster);
  generation_.take_up(journaled.generation, journaled.roster.members.size());
  candidates_.take_up(workers_.all());
  loans_.take_up(journaled.grants);
  if (const Status status = generation_.recompute_layout(); !status)
    return ending_.fail(turn, status.error(), std::nullopt);
  progress_.moved(turn.now);
  regathering_.wait_for_workers_until(turn.now + 2 * setup_.timeouts.silent);
  events_.tell(turn, kTakenUp, 1, "a new chief waits for the job's tasks");
  // The chief was restarted during a rollback. The record of the next generation may already be written, and its count
  // includes this rollback. So the count is made smaller here, because roll_back() counts the rollback again.
  if (!journaled.is_training && rollbacks_.count() > 0) rollbacks_.set_count(rollbacks_.count() - 1);
  if (rollbacks_.current() && !condition_.is_stopping()) return recovery_.roll_back(turn);
  reclaim_.begin(turn);
  if (setup_.takes_checkpoints()) folder_.ask_newest(turn);
  schedule_.set_next_due(progress_.step());
}

}  // namespace disttrain::chiefd
