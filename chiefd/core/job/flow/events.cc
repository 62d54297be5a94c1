// Passes each event to the transition that handles it. At a tick, the rules that may end the job or roll it back come
// before the steps that go on with it.
#include <algorithm>
#include <map>
#include <utility>
#include <variant>

#include "chiefd/core/job/flow/flow.h"
#include "chiefd/core/job/flow/overloaded.h"
#include "chiefd/core/job/views/members.h"
#include "common/mutant.h"

namespace disttrain::chiefd::flow {
namespace {

// Handles a heartbeat of a task that the job doesn't use. If the job has removed the task, or the task holds an old
// generation, tells the task to close the job.
void on_heartbeat_of_stranger(JobFacts& job, Turn& turn, const Member& from, const FromTask& message) {
  const auto* heartbeat = std::get_if<Heartbeat>(&message);
  if (heartbeat == nullptr || heartbeat->job != job.setup.id || job.stage.is(Stage::kReclaim)) return;
  const bool is_old = heartbeat->generation.value != 0 && heartbeat->generation < job.generation.number();
  if (job.workers.is_lost(from) || is_old || views::was_removed_before(job, turn.tasks, from))
    turn.send(from.task, CloseJob{job.setup.id, heartbeat->generation,
                                  "the job goes on without this task, because the task was silent for too long", true});
}

void on_opened(JobFacts& job, Turn& turn, const Member& from, const JobOpened& opened) {
  job.workers.note_wires(from, opened.wires);
  const bool trains = job.stage.is(Stage::kTrain) || job.stage.is(Stage::kReclaim);
  job.candidates.note_prepared(from);
  if (trains) job.candidates.note_trains(from.task);
  // The worker may have been told to start before it had opened the job, for example if a former chief asked it to
  // join. So tell it again.
  if (job.workers.has_joined(from) || (trains && job.workers.is_unfinished(from)))
    return repeat_in_training(job, turn, from);
  if (job.stage.is(Stage::kOpen) && job.stage.answered(from)) advance_open(job, turn);
}

// Passes a message to the part that handles it. A message changes nothing if it is from another generation, or if the
// job's stage doesn't wait for it.
void on_message_of_member(JobFacts& job, Turn& turn, const Member& from, const FromTask& message) {
  const auto is_mine = [&job](const auto& m) {
    return m.generation == job.generation.number() || DISTTRAIN_MUTANT(kOldGenerationHeard);
  };
  const bool trains = job.stage.is(Stage::kTrain) || job.stage.is(Stage::kReclaim);
  std::visit(Overloaded{
                 [](const JobDescribed&) {},
                 [](const TaskFailed&) {},
                 [](const LeaveRequest&) {},      // Cluster's
                 [](const EvaluationFailed&) {},  // only evaluators send it
                 [&](const ShardsCreated& m) {
                   if (is_mine(m) && job.stage.is(Stage::kCreate) && job.stage.answered(from)) open_job(job, turn);
                 },
                 [&](const JobOpened& m) {
                   if (is_mine(m)) on_opened(job, turn, from, m);
                 },
                 [&](const RosterApplied& m) {
                   if (is_mine(m) && job.generation.owns(from, ShardId(0))) on_roster_applied(job, turn, m);
                 },
                 [&](const LeaseRequest& m) {
                   if (is_mine(m) && trains) on_lease_request(job, turn, from, m);
                 },
                 [&](const WorkerFenced& m) {
                   if (is_mine(m) && job.generation.owns(from, m.shard)) on_fenced(job, turn, m);
                 },
                 [&](const WorkerFinished& m) {
                   if (is_mine(m) && trains) on_worker_finished(job, turn, from, m);
                 },
                 [&](const Evaluated& m) {
                   if (is_mine(m)) on_evaluated(job, turn, from, m);
                 },
                 [](const JobClosed&) {},  // it counts only in stage kClose, from any task
                 [&](const Accusation& m) { on_accusation(job, turn, from, m); },
                 [&](const Heartbeat& m) {
                   if (is_mine(m)) on_heartbeat(job, turn, from, m);
                 },
                 [&](const CheckpointRequest& m) {
                   if (is_mine(m)) save_for_worker(job, turn);
                 },
                 [&](const CheckpointPrepared& m) {
                   if (is_mine(m)) on_prepared(job, turn, from, m);
                 },
                 [&](const ShardWritten& m) {
                   if (is_mine(m) && job.generation.owns(from, m.shard)) on_written(job, turn, m);
                 },
                 [&](const CheckpointFailed& m) {
                   if (is_mine(m)) on_checkpoint_failed(job, turn, from, m);
                 },
             },
             message);
}

void advance_training(JobFacts& job, Turn& turn) {
  for (const auto& [member, since] : std::map(job.workers.joining())) {
    const Instant worked = std::max(since, views::worked_at(job, turn.tasks, member));
    // The loss of one may end the job.
    if (job.stage.is(Stage::kTrain) && turn.now - worked > job.setup.timeouts.setup)
      lose_worker(job, turn, member, "it didn't open the job in time");
  }
  review_finished(job, turn);
  join_prepared(job, turn);
  check_quorum(job, turn);
  advance_leavers(job, turn);
  if (job.stage.is(Stage::kTrain)) check_stall(job, turn);
}

}  // namespace

void on_reconnect(JobFacts& job, Turn& turn, const TaskHello& hello) {
  if (hello.member.task.role == Role::kEvaluator) return send_order(job, turn, hello.member);
  on_member_reconnect(job, turn, hello);
}

void on_persisted(JobFacts& job, Turn& turn, Ticket ticket) {
  const bool is_awaited = ticket == job.stage.ticket();
  if (job.stage.is(Stage::kGeneration) && is_awaited) create_shards(job, turn);
  if (job.stage.is(Stage::kClose) && !job.closing.is_end_written && is_awaited) begin_closing(job, turn);
  on_fence_persisted(job, turn, ticket);
  for (Action& action : job.held.release(ticket)) {
    if (Send* message = std::get_if<Send>(&action))
      turn.tasks.send(std::move(*message), turn.actions);
    else
      turn.actions.push_back(std::move(action));
  }
}

void on_folder(JobFacts& job, Turn& turn, const FolderDone& done) {
  if (on_listing(job, turn, done)) return;
  if (done.ticket != job.stage.ticket()) return on_attempt_folder(job, turn, done);
  if (job.stage.is(Stage::kInit)) return on_init(job, turn, done.answer);
  on_newest(job, turn, done.answer);
}

void on_message(JobFacts& job, Turn& turn, const Member& from, const FromTask& message) {
  if (from.task.role == Role::kEvaluator) return on_evaluator_message(job, turn, from, message);
  if (const auto* described = std::get_if<JobDescribed>(&message))
    return job.stage.is(Stage::kDescribe) ? on_described(job, turn, from, *described)
                                          : on_invited_described(job, turn, from, *described);
  if (const auto* failed = std::get_if<TaskFailed>(&message)) return on_task_failed(job, turn, from, *failed);
  // Also a worker that was invited but isn't in the roster releases the job.
  if (job.stage.is(Stage::kClose) && std::holds_alternative<JobClosed>(message)) return on_released(job, turn, from);
  if (views::uses(job, from))
    on_message_of_member(job, turn, from, message);
  else
    on_heartbeat_of_stranger(job, turn, from, message);
}

void on_finding(JobFacts& job, Turn& turn, const Finding& finding) {
  if (job.stage.is(Stage::kQueued) || job.stage.is(Stage::kReleased)) return;
  const Member& member = finding.member;
  if (member.task.role == Role::kEvaluator) return on_evaluator_finding(job, turn, finding);
  const bool is_gone = finding.what != Finding::What::kJoined && finding.what != Finding::What::kReturned;
  if (const Task* task = turn.tasks.find(member.task); finding.what == Finding::What::kJoined && task != nullptr)
    job.candidates.meet(*task);
  forget_links(job, turn, finding);
  if (job.stage.is(Stage::kGather)) return gather(job, turn);
  if (job.stage.is(Stage::kDescribe)) return on_finding_at_describe(job, turn, finding);
  if (is_gone) {
    on_invited_gone(job, turn, finding);
    if (finding.what != Finding::What::kSilent) job.candidates.unprepare(member);
    return on_loss(job, turn, finding);
  }
  if (finding.what == Finding::What::kReturned && job.pauses.note_back(member.task))
    resume(job, turn, "all ps tasks are back");
  if (job.stage.is(Stage::kRegather)) regather(job, turn);
  if (member.task.role == Role::kWorker && !views::uses(job, member)) invite(job, turn, member);
}

void on_tick(JobFacts& job, Turn& turn) {
  if (job.stage.is(Stage::kQueued) || job.stage.is(Stage::kReleased)) return;
  if (job.stage.is(Stage::kGather)) gather(job, turn);
  if (job.stage.is(Stage::kRegather)) regather(job, turn);
  review_folder(job, turn);
  if (job.stage.is(Stage::kReclaim)) advance_reclaim(job, turn);
  review_suspicions(job, turn);
  review_links(job, turn);
  if (check_silence(job, turn)) return;
  if (review_absences(job, turn)) return;
  review_disk(job, turn);
  if (check_deadline(job, turn)) return;
  invite_again(job, turn);
  if (job.stage.is(Stage::kTrain)) advance_training(job, turn);
  advance_checkpoint(job, turn);
  advance_evaluations(job, turn);
  review_savers(job, turn);
}

}  // namespace disttrain::chiefd::flow
