#include "chiefd/core/job/suspicions.h"

#include <algorithm>
#include <set>

#include "chiefd/core/job/parts.h"

namespace disttrain::chiefd {

Suspicions::Suspicions(JobParts& parts)
    : setup_(parts.setup),
      stage_(parts.stage),
      condition_(parts.condition),
      events_(parts.events),
      generation_(parts.generation),
      workers_(parts.workers),
      candidates_(parts.candidates),
      pauses_(parts.pauses),
      faults_(parts.faults),
      links_(parts.links),
      members_(parts.members),
      gathering_(parts.gathering),
      membership_(parts.membership),
      quorum_(parts.quorum),
      recovery_(parts.recovery),
      folder_(parts.folder),
      start_failures_(parts.start_failures),
      ending_(parts.ending) {}

void Suspicions::on_task_failed(Turn& turn, const Member& from, const TaskFailed& failed) {
  if (condition_.has_ended() || stage_.is(Stage::kClose) || stage_.is(Stage::kQueued)) return;
  const Error error{failed.code, failed.reason};
  // A description belongs to no generation, so a failed description comes with generation 0. Reports about an earlier
  // generation may come at any time and are ignored.
  if (stage_.is(Stage::kDescribe) && failed.generation.value == 0 && stage_.awaits(from))
    return gathering_.on_describe_failed(turn, from, error);
  if (refuses_to_join(turn, from, failed)) return;
  // While the job gives a generation up, tasks of this generation fail as a consequence. So their failures are ignored.
  const bool is_giving_up = stage_.is(Stage::kRegather) || stage_.is(Stage::kFind) || stage_.is(Stage::kGeneration) ||
                            stage_.is(Stage::kFolder) || stage_.is(Stage::kInit);
  if (!members_.uses(from) || failed.generation != generation_.number() || is_giving_up) return;
  if (stage_.is(Stage::kCreate) && generation_.is_owner(from)) {
    if (failed.code == ErrorCode::kData && generation_.restore())
      return folder_.set_aside(turn, to_string(from.task) + ": " + failed.reason);
    if (may_pass(failed.code)) return recovery_.recover(turn, {from.task, failed.reason});
  }
  // After kUnavailable another task may be the cause, unless the worker itself lacks something.
  const Fault fault = fault_of(failed.code, failed.reason);
  const bool is_own = failed.code != ErrorCode::kUnavailable || fault.is_own;
  if (stage_.is(Stage::kOpen) && is_own && workers_.is_taking_part(from) &&
      start_failures_.may_start_without(turn, from))
    return start_failures_.note(turn, from, error, true);
  // The worker's trainer has raised an exception in an evaluation.
  const bool raised = failed.code == ErrorCode::kFailed && workers_.is_taking_part(from);
  if (raised && stage_.is(Stage::kEvaluate)) return ending_.on_evaluation_failed(turn, from, error);
  if (failed.code != ErrorCode::kUnavailable && !raised) return ending_.fail(turn, error, from.task);
  if (stage_.is(Stage::kTrain) && workers_.is_taking_part(from) && !fault.what.empty()) {
    const Faults::Verdict verdict =
        faults_.note(turn.now, from, fault, living_workers(), setup_.config().job.restart_window);
    if (verdict == Faults::Verdict::kEveryWorker)
      return ending_.fail(
          turn,
          Error{ErrorCode::kFailed,
                "each worker has failed in the same way, so another try would fail too: " + failed.reason},
          from.task);
    if (fault.is_own) return on_own_fault(turn, from, verdict, failed.reason);
  }
  // The task may have failed because it lost another task of the job. Then the other task is the root cause. So the
  // chief probes all other tasks.
  if (!suspicions_.try_emplace(from, Suspicion{error, turn.now}).second) return;
  for (const Member& member : members_.all())
    if (member != from) turn.tasks.accuse(member.task, turn.actions);
}

// Handles the failure of a worker that was about to join. The job goes on without this worker.
bool Suspicions::refuses_to_join(Turn& turn, const Member& from, const TaskFailed& failed) {
  const bool is_invited = failed.generation.value == 0 && candidates_.end_invitation(from);
  const bool is_joining = failed.generation == generation_.number() && workers_.is_joining(from);
  if (!is_invited && !is_joining) return false;
  if (is_invited && !quorum_.can_do_without(turn.tasks, from.task, turn.now)) {
    retry_later(turn, from, failed.reason);
    return true;
  }
  // While a worker opens its channels, another task may be the cause: a ps that the chief doesn't reach, for example,
  // has no roster with this worker and doesn't answer it. So the worker isn't blamed, and may try again.
  const bool is_own =
      is_invited || failed.code != ErrorCode::kUnavailable || fault_of(failed.code, failed.reason).is_own;
  if (is_joining) {
    membership_.lose(turn, from, failed.reason, is_own ? Loss::kCounts : Loss::kLink);
    if (condition_.has_ended() || stage_.is(Stage::kClose)) return true;
  }
  if (is_own)
    start_failures_.leave_out(turn, from, failed.reason);
  else
    events_.tell(turn, "worker_refused", 2, to_string(from.task) + " can't take part: " + failed.reason, from.task);
  return true;
}

// The job waits for this worker. Its host may have just been started, so what it lacks may come, such as a mounted file
// system.
void Suspicions::retry_later(Turn& turn, const Member& from, const std::string& reason) {
  const std::string why =
      std::string("can't take part") + (condition_.was_opened() ? ", and is asked again: " : ": ") + reason;
  candidates_.retry_later(from, turn.now);
  const auto before = candidates_.kept_out().find(from.task);
  if (before != candidates_.kept_out().end() && before->second != why) candidates_.let_in(from.task);
  membership_.keep_out(turn, from.task, why);
  if (stage_.is(Stage::kTrain) && pauses_.is_short()) condition_.explain(quorum_.shortage(turn));
}

// No other task is the cause of such a failure, so the chief needn't wait for the other tasks.
void Suspicions::on_own_fault(Turn& turn, const Member& from, Faults::Verdict verdict, const std::string& reason) {
  std::set<TaskId> living = living_workers();
  membership_.lose(turn, from, reason);
  if (condition_.has_ended() || stage_.is(Stage::kClose)) return;
  living.erase(from.task);
  const bool has_others = living.size() >= setup_.least_workers();
  if (verdict == Faults::Verdict::kAgain && has_others && !setup_.waits_for_lost())
    start_failures_.leave_out(turn, from, reason);
}

std::set<TaskId> Suspicions::living_workers() const {
  std::set<TaskId> living;
  for (const Member& worker : workers_.living()) living.insert(worker.task);
  return living;
}

// A ps couldn't create its shards. Returns true if another attempt may succeed: its disk may recover, or a folder that
// an earlier generation used may come back. job.max_restarts limits the number of attempts.
bool Suspicions::may_pass(ErrorCode code) const {
  if (!setup_.takes_checkpoints()) return false;
  return code == ErrorCode::kFailed ||
         (generation_.has_predecessor() && (code == ErrorCode::kConfig || code == ErrorCode::kNoInput));
}

void Suspicions::review(Turn& turn) {
  // A ps that is silent, or that isn't back after a restart of the chief, may be the reason for the complaints. So they
  // are judged only after that ps has returned.
  if (pauses_.is_any_silent() || (stage_.is(Stage::kReclaim) && !stage_.awaits_anyone())) return;
  for (const auto& [from, suspicion] : std::map(suspicions_)) {
    if (!is_settled(turn, from, suspicion.since)) continue;
    suspicions_.erase(from);
    if (!members_.uses(from)) continue;
    if (judge(turn, from, suspicion.error.message)) return;
  }
}

// Returns true if the job rolls back.
bool Suspicions::judge(Turn& turn, const Member& from, const std::string& why) {
  // A ps complains that it can't reach another ps.
  const auto link = std::find_if(links_.broken().begin(), links_.broken().end(), [&from](const auto& broken) {
    return broken.first.from == from.task && from.task.role == Role::kPs;
  });
  if (link != links_.broken().end()) {
    const std::string text = links_.text(turn.now, link->first);
    links_.forget_peers();  // the next generation opens these links again
    recovery_.recover(turn, {std::nullopt, text}, Loss::kLink);
    return true;
  }
  // All tasks are healthy except the task that complains. If a worker complains, the chief blames this worker: a new
  // process of the worker, or other owners of the shards, may not have the problem. If a ps complains, the chief blames
  // no task, because a chief that was away can't tell which of two ps tasks was gone.
  if (workers_.is_taking_part(from) && stage_.is(Stage::kTrain)) {
    membership_.lose(turn, from, why);
    return false;
  }
  if (workers_.is_taking_part(from) && stage_.is(Stage::kOpen) && start_failures_.may_start_without(turn, from)) {
    start_failures_.note(turn, from, Error{ErrorCode::kUnavailable, why}, false);
    return !stage_.is(Stage::kOpen);
  }
  if (workers_.is_taking_part(from))
    recovery_.recover(turn, {from.task, why});
  else
    recovery_.recover(turn, {std::nullopt, to_string(from.task) + ": " + why});
  return true;
}

// True if the chief has heard from all other tasks since the complaint, or if the time for this is over.
bool Suspicions::is_settled(const Turn& turn, const Member& from, Instant since) const {
  // The chief may notice a silence up to one tick and one heartbeat late.
  if (turn.now - since >= setup_.timeouts.silent + setup_.timeouts.interval + setup_.timeouts.heartbeat) return true;
  const std::vector<Member> all = members_.all();
  return std::all_of(all.begin(), all.end(), [&](const Member& member) {
    const Task* task = turn.tasks.find(member.task);
    // If the task isn't found, only the chief before the restart knew it.
    if (member == from || task == nullptr || task->member != member || workers_.is_lost(member)) return true;
    return task->connected && task->last_heard > since;
  });
}

}  // namespace disttrain::chiefd
