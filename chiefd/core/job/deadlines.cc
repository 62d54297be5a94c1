#include "chiefd/core/job/deadlines.h"

#include <algorithm>
#include <optional>

#include "chiefd/core/job/parts.h"
#include "common/format_duration.h"

namespace disttrain::chiefd {

Deadlines::Deadlines(JobParts& parts)
    : setup_(parts.setup),
      stage_(parts.stage),
      condition_(parts.condition),
      generation_(parts.generation),
      candidates_(parts.candidates),
      pauses_(parts.pauses),
      work_clock_(parts.work_clock),
      gathering_(parts.gathering),
      folder_(parts.folder),
      final_checkpoint_(parts.final_checkpoint),
      recovery_(parts.recovery),
      start_failures_(parts.start_failures),
      closing_(parts.closing),
      evaluators_(parts.evaluators),
      ending_(parts.ending) {}

bool Deadlines::check(Turn& turn) {
  if (!stage_.is_overdue(turn.now) || extend(turn)) return false;
  on_deadline(turn);
  return true;
}

// Moves the deadline while any awaited task makes progress, because a restore or a large data set may take long.
// Progress of one task is enough: for example, a ps whose shards are ready makes no progress while it waits for the
// pacer, which may still restore.
bool Deadlines::extend(Turn& turn) {
  Instant newest;
  if (stage_.is(Stage::kRegather))
    newest = work_clock_.newest_work(turn.tasks, candidates_.invited_members());
  else if (evaluators_.is_awaited())
    newest = evaluators_.newest_work(turn.tasks);
  else if (stage_.is(Stage::kDescribe) || stage_.is(Stage::kCreate) || stage_.is(Stage::kOpen) ||
           stage_.is(Stage::kEvaluate))
    newest = work_clock_.newest_work(turn.tasks, stage_.awaited());
  const Instant deadline = newest + setup_.timeouts.setup;
  if (turn.now >= deadline) return false;
  stage_.set_deadline(deadline);
  return true;
}

// Returns the awaited task to blame. This is the pacer if the stage waits for it, because the other tasks may wait for
// the pacer. Otherwise it is the task whose last progress is oldest.
TaskId Deadlines::who_stands_still(const Tasks& tasks) const {
  if (!stage_.awaits_anyone() || (!generation_.owners().empty() && stage_.awaits(generation_.pacer())))
    return generation_.pacer().task;
  return std::min_element(stage_.awaited().begin(), stage_.awaited().end(),
                          [&](const Member& a, const Member& b) {
                            return work_clock_.worked_at(tasks, a) < work_clock_.worked_at(tasks, b);
                          })
      ->task;
}

void Deadlines::give_up(Turn& turn, const std::string& what) {
  const TaskId task = who_stands_still(turn.tasks);
  const bool has_worked = work_clock_.newest_work(turn.tasks, stage_.awaited()) != Instant();
  const std::string since = (has_worked ? ", and has stood still for " : " within ") + limit();
  const Error error{ErrorCode::kUnavailable, "it heartbeats, but " + what + since};
  if (stage_.is(Stage::kOpen) && start_failures_.give_up_on_awaited(turn, error)) return;
  if (stage_.is(Stage::kDescribe)) return gathering_.give_up_on_awaited(turn, error);
  ending_.fail(turn, error, task);
}

std::string Deadlines::limit() const {
  return format_duration(setup_.timeouts.setup);
}

// This function is long because it has a case for each stage.
void Deadlines::on_deadline(Turn& turn) {
  stage_.clear_deadline();
  const auto fail = [&](ErrorCode code, const std::string& why, std::optional<TaskId> root = {}) {
    ending_.fail(turn, Error{code, why}, root);
  };
  switch (stage_.at()) {
    case Stage::kGather:
    case Stage::kRegather:
      // absences.h bounds the wait for absent tasks. Without absent tasks the job goes on by itself, after a pause that
      // is shorter than this deadline.
      return stage_.set_deadline(turn.now + setup_.timeouts.setup);
    case Stage::kDescribe:
      return give_up(turn, "didn't read the data and build the model");
    case Stage::kInit:
      return fail(ErrorCode::kFailed, setup_.config().checkpoint.init_from +
                                          " (checkpoint.init_from) hasn't been read within " + limit() +
                                          ": does its file system hang?");
    case Stage::kFinalCut:
      return final_checkpoint_.fail(turn, folder_.problem(turn.now, ""));
    case Stage::kFolder:
    case Stage::kFind:
      return fail(ErrorCode::kFailed, folder_.problem(turn.now, " for " + limit()));
    case Stage::kGeneration:
      return fail(ErrorCode::kFailed,
                  "the chief's own disk hasn't written the record of the job's generation within " + limit());
    case Stage::kCreate:
      return give_up(turn, "didn't create its shards");
    case Stage::kOpen:
      return give_up(turn, "didn't open the job");
    case Stage::kRoster:
      return give_up(turn, "didn't take the roster");
    case Stage::kTrain:
      if (condition_.is_stopping())
        closing_.close(turn, condition_.stopped_state(),
                       condition_.end_reason() + "; not every worker reached the end of a step in time");
      return;
    case Stage::kSettle:
      return settle(turn);
    case Stage::kEvaluate:
      if (evaluators_.is_awaited())
        return evaluators_.give_up_waiting(turn, "no evaluator has made progress for " + limit());
      return give_up(turn, "didn't finish the final evaluation");
    case Stage::kClose:
      return leave_behind(turn);
    case Stage::kReclaim:
    case Stage::kQueued:
    case Stage::kReleased:
      return;
  }
}

// Called when the pacer's last report is late. Usually the job then rolls back. But if a ps is silent, or if the chief
// and the pacer don't hear each other, the pacer gets the full time again. In this case the time limit for silent tasks
// decides when the job rolls back.
void Deadlines::settle(Turn& turn) {
  const Member& pacer = generation_.pacer();
  if (pauses_.is_any_silent() || !turn.tasks.hears_both_ways(pacer))
    return stage_.set_deadline(turn.now + setup_.answer_limit());
  recovery_.recover(turn, {pacer.task, "it heartbeats, but didn't report its last step in time"});
}

void Deadlines::leave_behind(Turn& turn) {
  for (const Member& member : stage_.awaited()) {
    turn.tasks.note_unreleased(member, setup_.id);
    turn.actions.push_back(Note{
        2, to_string(member.task) + " didn't release job " + setup_.name() + " in time; the chief goes on without it",
        "", setup_.name()});
  }
  closing_.finish(turn);
}

}  // namespace disttrain::chiefd
