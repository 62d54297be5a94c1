#include "chiefd/core/job/invitations.h"

#include <set>

#include "chiefd/core/job/parts.h"

namespace disttrain::chiefd {

Invitations::Invitations(JobParts& parts)
    : setup_(parts.setup),
      stage_(parts.stage),
      condition_(parts.condition),
      generation_(parts.generation),
      workers_(parts.workers),
      candidates_(parts.candidates),
      links_(parts.links),
      members_(parts.members),
      link_failures_(parts.link_failures),
      start_failures_(parts.start_failures),
      membership_(parts.membership),
      regathering_(parts.regathering) {}

void Invitations::invite(Turn& turn, const Member& worker) {
  const bool trains = stage_.is(Stage::kTrain) || stage_.is(Stage::kRegather);
  if (!trains || !generation_.described() || condition_.is_stopping() || condition_.has_ended()) return;
  // The worker is invited when it has released the other job.
  const Task* task = turn.tasks.find(worker.task);
  if (task != nullptr && (task->unreleased != JobId() || candidates_.is_left_out(*task))) return;
  // A lost worker may come back only as another process (incarnation), or in another generation.
  const bool is_lost =
      (stage_.is(Stage::kTrain) && workers_.is_lost(worker)) || members_.was_removed_before(turn.tasks, worker);
  if (is_lost || candidates_.is_invited(worker) || candidates_.is_prepared(worker)) return;
  if (!candidates_.may_retry(worker, turn.now)) return;
  if (members_.uses(worker) && stage_.is(Stage::kTrain)) return;
  candidates_.invite(worker, turn.now);
  turn.send(worker.task, DescribeJob{setup_.id, setup_.shared_config(), ps_to_reach(turn.tasks)});
}

// The model or the data may have ended the process, and would end the next one too. So the loss counts.
void Invitations::on_gone(Turn& turn, const Finding& finding) {
  const bool was_invited = candidates_.end_invitation(finding.member);
  if (!was_invited || finding.what != Finding::What::kLost) return;
  if (finding.was_told_to_end || finding.has_started_over) return;
  const std::string why = "while it read the data and built the model, " + finding.why;
  membership_.tell_loss(turn, finding.member, why, Loss::kCounts);
}

void Invitations::repeat(Turn& turn, const Member& worker) const {
  turn.send(worker.task, DescribeJob{setup_.id, setup_.shared_config(), ps_to_reach(turn.tasks)});
}

void Invitations::invite_all(Turn& turn) {
  for (const auto& [id, task] : turn.tasks.all())
    if (id.role == Role::kWorker && task.is_there() && !task.leaving) invite(turn, task.member);
  membership_.join_prepared(turn);
}

void Invitations::on_described(Turn& turn, const Member& from, const JobDescribed& described) {
  const std::optional<JobDescribed>& known = generation_.described();
  if (!candidates_.end_invitation(from) || !known) return;
  const bool same_records =
      described.train_records == known->train_records && described.train_hash == known->train_hash;
  if (!(described.model == known->model) || !same_records)
    return start_failures_.leave_out(
        turn, from,
        "its model or its data (" + std::to_string(described.train_records) +
            " training records) differs from the job's (" + std::to_string(known->train_records) +
            (described.train_records == known->train_records ? " other training records" : "") +
            "); use the same files and the same version on every host");
  candidates_.note_prepared(from);
  link_failures_.note_reach(turn, from, described.unreachable);
  if (stage_.is(Stage::kRegather)) regathering_.regather(turn);
  membership_.join_prepared(turn);
}

void Invitations::invite_again(Turn& turn) {
  if (!stage_.is(Stage::kTrain) && !stage_.is(Stage::kRegather)) return;
  for (const auto& [id, task] : turn.tasks.all())
    if (task.takes_work() && candidates_.awaits_retry(task.member)) invite(turn, task.member);
  std::set<TaskId> cut_off;
  for (const auto& [link, outage] : links_.broken())
    if (link.from.role == Role::kWorker) cut_off.insert(link.from);
  for (const TaskId worker : cut_off) {
    const Task* task = turn.tasks.find(worker);
    if (task == nullptr || !task->takes_work() || !candidates_.may_be_asked(worker, turn.now)) continue;
    // While the job trains, a worker that takes part isn't invited, because its channels show which ps tasks it
    // reaches.
    if (!candidates_.is_prepared(task->member) || (stage_.is(Stage::kTrain) && members_.uses(task->member))) continue;
    candidates_.unprepare(task->member);
    invite(turn, task->member);
  }
}

std::vector<Owner> Invitations::ps_to_reach(const Tasks& tasks) const {
  std::vector<Owner> ps;
  for (const auto& [id, task] : tasks.all())
    if (id.role == Role::kPs && task.is_there()) ps.push_back(Owner{task.member, task.hello.address});
  return ps;
}

}  // namespace disttrain::chiefd
