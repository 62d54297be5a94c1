#include "chiefd/core/job/suspicions.h"

#include <algorithm>

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
      links_(parts.links),
      members_(parts.members),
      membership_(parts.membership),
      recovery_(parts.recovery),
      folder_(parts.folder),
      ending_(parts.ending) {}

void Suspicions::on_task_failed(Turn& turn, const Member& from, const TaskFailed& failed) {
  if (condition_.has_ended() || stage_.is(Stage::kClose) || stage_.is(Stage::kQueued)) return;
  const Error error{failed.code, failed.reason};
  // A description belongs to no generation. Reports about a former generation may come at any time and are ignored.
  if (stage_.is(Stage::kDescribe) && failed.generation.value == 0 && stage_.awaits(from))
    return ending_.fail(turn, error, from.task);
  if (refuses_to_join(turn, from, failed)) return;
  // While a generation is given up, tasks fail because of that.
  const bool is_giving_up = stage_.is(Stage::kRegather) || stage_.is(Stage::kFind) || stage_.is(Stage::kGeneration) ||
                            stage_.is(Stage::kFolder) || stage_.is(Stage::kInit);
  if (!members_.uses(from) || failed.generation != generation_.number() || is_giving_up) return;
  if (stage_.is(Stage::kCreate) && generation_.is_owner(from)) {
    if (failed.code == ErrorCode::kData && generation_.restore())
      return folder_.set_aside(turn, to_string(from.task) + ": " + failed.reason);
    if (may_pass(failed.code)) return recovery_.recover(turn, {from.task, failed.reason});
  }
  if (failed.code != ErrorCode::kUnavailable) return ending_.fail(turn, error, from.task);
  // The task may have lost another task of the job. Then that other task is the root cause.
  if (!suspicions_.try_emplace(from, Suspicion{error, turn.now}).second) return;
  for (const Member& member : members_.all())
    if (member != from) turn.tasks.accuse(member.task, turn.actions);
}

// A worker that was to join failed: the job goes on without it.
bool Suspicions::refuses_to_join(Turn& turn, const Member& from, const TaskFailed& failed) {
  const bool is_invited = failed.generation.value == 0 && candidates_.end_invitation(from);
  const bool is_joining = failed.generation == generation_.number() && workers_.is_joining(from);
  if (!is_invited && !is_joining) return false;
  events_.tell(turn, "worker_refused", 2, to_string(from.task) + " can't take part: " + failed.reason, from.task);
  candidates_.unprepare(from);
  if (is_joining) membership_.lose(turn, from, failed.reason);
  return true;
}

// A ps couldn't create its shards. Its disk may recover, and a folder that an earlier generation used may come back.
// max_restarts bounds the attempts.
bool Suspicions::may_pass(ErrorCode code) const {
  if (!setup_.takes_checkpoints()) return false;
  return code == ErrorCode::kFailed ||
         (generation_.has_predecessor() && (code == ErrorCode::kConfig || code == ErrorCode::kNoInput));
}

void Suspicions::review(Turn& turn) {
  // A ps that is silent or not back yet may explain the complaints. They stand if that ps returns.
  if (pauses_.is_any_silent() || (stage_.is(Stage::kReclaim) && !stage_.awaits_anyone())) return;
  for (const auto& [from, suspicion] : std::map(suspicions_)) {
    if (!is_settled(turn, from, suspicion.since)) continue;
    suspicions_.erase(from);
    if (!members_.uses(from)) continue;
    if (judge(turn, from, suspicion.error.message)) return;
  }
}

// True: the job recovers.
bool Suspicions::judge(Turn& turn, const Member& from, const std::string& why) {
  // Two shards lost each other.
  const auto link = std::find_if(links_.broken().begin(), links_.broken().end(), [&from](const auto& broken) {
    return broken.first.from == from.task && from.task.role == Role::kPs;
  });
  if (link != links_.broken().end()) {
    const std::string text = links_.text(turn.now, link->first);
    links_.forget_peers();  // they may meet again
    recovery_.recover(turn, {std::nullopt, text}, Loss::kLink);
    return true;
  }
  // All are healthy except the task that complains: it may work as another member, or with others. If a ps complains,
  // no task is blamed: a chief that was away can't tell which of two ps tasks was gone.
  if (workers_.is_taking_part(from) && stage_.is(Stage::kTrain)) {
    membership_.lose(turn, from, why);
    return false;
  }
  if (workers_.is_taking_part(from))
    recovery_.recover(turn, {from.task, why});
  else
    recovery_.recover(turn, {std::nullopt, to_string(from.task) + ": " + why});
  return true;
}

// All others have been heard since, or the time for that is up.
bool Suspicions::is_settled(const Turn& turn, const Member& from, Instant since) const {
  // The chief may notice a silence up to a tick and a heartbeat late.
  if (turn.now - since >= setup_.timeouts.silent + 2 * setup_.timeouts.interval) return true;
  const std::vector<Member> all = members_.all();
  return std::all_of(all.begin(), all.end(), [&](const Member& member) {
    const Task* task = turn.tasks.find(member.task);
    // No task: only a former chief knew it.
    if (member == from || task == nullptr || task->member != member || workers_.is_lost(member)) return true;
    return task->connected && task->last_heard > since;
  });
}

}  // namespace disttrain::chiefd
