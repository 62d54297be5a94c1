// Invites workers that don't take part in the job. An invited worker reads the data, builds the model, and reports
// which ps tasks it can't reach. When it has reported, it is prepared and may join.
#include "chiefd/core/job/flow/flow.h"

#include <optional>
#include <set>
#include <string>

#include "chiefd/core/job/views/members.h"
#include "chiefd/core/job/views/workers.h"

namespace disttrain::chiefd::flow {

void invite(JobFacts& job, Turn& turn, const Member& worker) {
  const bool trains = job.stage.is(Stage::kTrain) || job.stage.is(Stage::kRegather);
  if (!trains || !job.generation.described() || job.condition.is_stopping() || job.condition.has_ended()) return;
  // The worker is invited when it has released the other job.
  const Task* task = turn.tasks.find(worker.task);
  if (task != nullptr && (task->unreleased != JobId() || job.candidates.is_left_out(*task))) return;
  // A lost worker may come back only as another process (incarnation), or in another generation.
  const bool is_lost = (job.stage.is(Stage::kTrain) && job.workers.is_lost(worker)) ||
                       views::was_removed_before(job, turn.tasks, worker);
  if (is_lost || job.candidates.is_invited(worker) || job.candidates.is_prepared(worker)) return;
  if (!job.candidates.may_retry(worker, turn.now)) return;
  if (views::uses(job, worker) && job.stage.is(Stage::kTrain)) return;
  job.candidates.invite(worker, turn.now);
  turn.send(worker.task, DescribeJob{job.setup.id, job.setup.shared_config(), views::ps_to_reach(turn.tasks)});
}

// The model or the data may have ended the process, and would end the next one too. So the loss counts.
void on_invited_gone(JobFacts& job, Turn& turn, const Finding& finding) {
  const bool was_invited = job.candidates.end_invitation(finding.member);
  if (!was_invited || finding.what != Finding::What::kLost) return;
  if (finding.was_told_to_end || finding.has_started_over) return;
  const std::string why = "while it read the data and built the model, " + finding.why;
  tell_loss(job, turn, finding.member, why, Loss::kCounts);
}

void repeat_invitation(const JobFacts& job, Turn& turn, const Member& worker) {
  turn.send(worker.task, DescribeJob{job.setup.id, job.setup.shared_config(), views::ps_to_reach(turn.tasks)});
}

void invite_all(JobFacts& job, Turn& turn) {
  for (const auto& [id, task] : turn.tasks.all())
    if (id.role == Role::kWorker && task.is_there() && !task.leaving) invite(job, turn, task.member);
  join_prepared(job, turn);
}

void on_invited_described(JobFacts& job, Turn& turn, const Member& from, const JobDescribed& described) {
  const std::optional<JobDescribed>& known = job.generation.described();
  if (!job.candidates.end_invitation(from) || !known) return;
  const bool same_records =
      described.train_records == known->train_records && described.train_hash == known->train_hash;
  if (!(described.model == known->model) || !same_records)
    return leave_out(job, turn, from,
                     "its model or its data (" + std::to_string(described.train_records) +
                         " training records) differs from the job's (" + std::to_string(known->train_records) +
                         (described.train_records == known->train_records ? " other training records" : "") +
                         "); use the same files and the same version on every host");
  job.candidates.note_prepared(from);
  note_reach(job, turn, from, described.unreachable);
  if (job.stage.is(Stage::kRegather)) regather(job, turn);
  join_prepared(job, turn);
}

void invite_again(JobFacts& job, Turn& turn) {
  if (!job.stage.is(Stage::kTrain) && !job.stage.is(Stage::kRegather)) return;
  for (const auto& [id, task] : turn.tasks.all())
    if (task.takes_work() && job.candidates.awaits_retry(task.member)) invite(job, turn, task.member);
  std::set<TaskId> cut_off;
  for (const auto& [link, outage] : job.links.broken())
    if (link.from.role == Role::kWorker) cut_off.insert(link.from);
  for (const TaskId worker : cut_off) {
    const Task* task = turn.tasks.find(worker);
    if (task == nullptr || !task->takes_work() || !job.candidates.may_be_asked(worker, turn.now)) continue;
    // While the job trains, a worker that takes part isn't invited, because its channels show which ps tasks it
    // reaches.
    if (!job.candidates.is_prepared(task->member) || (job.stage.is(Stage::kTrain) && views::uses(job, task->member)))
      continue;
    job.candidates.unprepare(task->member);
    invite(job, turn, task->member);
  }
}

}  // namespace disttrain::chiefd::flow
