#include "chiefd/core/job.h"

#include <algorithm>
#include <map>
#include <utility>

#include "chiefd/core/job/invariants.h"
#include "chiefd/core/job/parts.h"
#include "common/mutant.h"

namespace disttrain::chiefd {

Job::Job(Setup setup) : parts_(std::make_unique<JobParts>(std::move(setup))) {}
Job::~Job() = default;

// ---- identity and state

JobId Job::id() const {
  return parts_->setup.id;
}

const std::string& Job::name() const {
  return parts_->setup.name();
}

const Submission& Job::submission() const {
  return parts_->setup.submission;
}

JobState Job::state() const {
  return parts_->condition.state();
}

bool Job::is_end_durable() const {
  return parts_->condition.has_ended() && parts_->held.is_empty();
}

bool Job::has_told_to_close() const {
  return (parts_->stage.is(Stage::kClose) || is_released()) && parts_->closing.is_end_written();
}

bool Job::is_released() const {
  return parts_->stage.is(Stage::kReleased);
}

bool Job::may_succeed_later() const {
  const std::optional<ErrorCode>& code = parts_->condition.code();  // none: the workers had opened the job
  return !code || *code == ErrorCode::kUnavailable;
}

Generation Job::generation() const {
  return parts_->generation.number();
}

bool Job::has_begun() const {
  return parts_->condition.has_begun();
}

JobStatus Job::status(Instant now) const {
  return parts_->report.status(now);
}

std::vector<Awaited> Job::waits_for(const Tasks& tasks, Instant now) const {
  return parts_->report.waits_for(tasks, now);
}

std::uint64_t Job::steps_of(const Member& worker) const {
  return parts_->worker_figures.steps_of(worker);
}

std::optional<std::uint64_t> Job::reached_by(const Member& member, const Heartbeat& heartbeat) const {
  return parts_->report.reached_by(member, heartbeat);
}

PhaseTimes Job::measured_times(const Member& worker, PhaseTimes times) const {
  return parts_->worker_figures.measured_times(worker, times);
}

std::string Job::why_kept_out(TaskId task, Instant now) const {
  return parts_->report.why_kept_out(task, now);
}

std::optional<std::uint32_t> Job::rank_of(const Member& worker) const {
  const std::vector<Member>& members = parts_->workers.roster().members;
  const auto found = std::find(members.begin(), members.end(), worker);
  if (found == members.end()) return std::nullopt;
  return static_cast<std::uint32_t>(found - members.begin());
}

bool Job::is_evaluated_by(const Member& evaluator) const {
  return parts_->evaluators.has_order(evaluator);
}

std::vector<Member> Job::members() const {
  return parts_->members.all();
}

Step Job::reached() const {
  return parts_->report.reached();
}

std::optional<std::string> Job::broken_invariant() const {
  return chiefd::broken_invariant(*parts_);
}

// ---- what a former chief knew

void Job::restore(const JournaledJob& journaled) {
  JobParts& parts = *parts_;
  parts.generation.restore_number(journaled.generation.generation);
  parts.rollbacks.set_count(journaled.generation.recoveries);
  parts.folder.set_newest(journaled.checkpoint);
  parts.evaluators.take_up(journaled.evaluations);
  if (journaled.ended) {
    // A job with an end record has begun, because a job that ends in the queue gets no end record.
    parts.condition.begin();
    parts.restart.recall_end(*journaled.ended);
  }
  if (journaled.state == JobState::kQueued) return;
  if (!journaled.ended) parts.restart.recall_progress(journaled);
  parts.condition.restore(journaled.state, journaled.reason);
  parts.stage.enter(Stage::kReleased);
  parts.condition.note_opened(journaled.state != JobState::kStarting);
}

void Job::recall(Instant now, const std::deque<EventRecord>& events, const EventClocks& clocks) {
  parts_->restart.recall(now, events, clocks);
}

void Job::take_up(Turn& turn, const JournaledJob& journaled) {
  parts_->restart.take_up(turn, journaled);
}

// ---- requests

void Job::begin(Turn& turn) {
  parts_->gathering.begin(turn);
}

void Job::stop(Turn& turn, const std::string& user) {
  parts_->ending.stop(turn, user);
}

void Job::kill(Turn& turn, const std::string& user) {
  parts_->ending.kill(turn, user);
}

void Job::fail(Turn& turn, Error error, std::optional<TaskId> root) {
  parts_->ending.fail(turn, std::move(error), root);
}

void Job::save(Turn& turn, ClientId client) {
  parts_->savers.save(turn, client);
}

bool Job::may_go(const Member& member) const {
  return parts_->leaving.may_go(member);
}

void Job::advance_leavers(Turn& turn) {
  parts_->leaving.advance(turn);
}

// ---- events

void Job::on_reconnect(Turn& turn, const TaskHello& hello) {
  if (hello.member.task.role == Role::kEvaluator) return parts_->evaluators.on_reconnect(turn, hello.member);
  parts_->requests.on_reconnect(turn, hello);
}

void Job::on_persisted(Turn& turn, Ticket ticket) {
  JobParts& parts = *parts_;
  const bool is_awaited = ticket == parts.stage.ticket();
  if (parts.stage.is(Stage::kGeneration) && is_awaited) parts.launch.create_shards(turn);
  if (parts.stage.is(Stage::kClose) && !parts.closing.is_end_written() && is_awaited) parts.closing.begin(turn);
  parts.fences.on_persisted(turn, ticket);
  for (Action& action : parts.held.release(ticket)) {
    if (Send* message = std::get_if<Send>(&action))
      turn.tasks.send(std::move(*message), turn.actions);
    else
      turn.actions.push_back(std::move(action));
  }
}

void Job::on_folder(Turn& turn, const FolderDone& done) {
  if (parts_->evaluators.on_folder(turn, done)) return;
  if (done.ticket != parts_->stage.ticket()) return parts_->checkpointing.on_folder(turn, done);
  if (parts_->stage.is(Stage::kInit)) return parts_->gathering.on_init(turn, done.answer);
  parts_->folder.on_newest(turn, done.answer);
}

namespace {

template <typename... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <typename... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

}  // namespace

void Job::on_message(Turn& turn, const Member& from, const FromTask& message) {
  if (from.task.role == Role::kEvaluator) return parts_->evaluators.on_message(turn, from, message);
  if (const auto* described = std::get_if<JobDescribed>(&message))
    return parts_->stage.is(Stage::kDescribe) ? parts_->gathering.on_described(turn, from, *described)
                                              : parts_->invitations.on_described(turn, from, *described);
  if (const auto* failed = std::get_if<TaskFailed>(&message))
    return parts_->suspicions.on_task_failed(turn, from, *failed);
  if (parts_->members.uses(from))
    on_message_of_member(turn, from, message);
  else
    on_heartbeat_of_stranger(turn, from, message);
}

// Handles a heartbeat of a task that the job doesn't use. If the job has removed the task, or the task holds an old
// generation, tells the task to close the job.
void Job::on_heartbeat_of_stranger(Turn& turn, const Member& from, const FromTask& message) {
  const auto* heartbeat = std::get_if<Heartbeat>(&message);
  if (heartbeat == nullptr || heartbeat->job != id() || parts_->stage.is(Stage::kReclaim)) return;
  const bool is_old = heartbeat->generation.value != 0 && heartbeat->generation < parts_->generation.number();
  if (parts_->workers.is_lost(from) || is_old || parts_->members.was_removed_before(turn.tasks, from))
    turn.send(from.task, CloseJob{id(), heartbeat->generation,
                                  "the job goes on without this task, because the task was silent for too long", true});
}

// Passes a message to the part that handles it. A message changes nothing if it is from another generation, or if the
// job's stage doesn't wait for it.
void Job::on_message_of_member(Turn& turn, const Member& from, const FromTask& message) {
  JobParts& parts = *parts_;
  const auto is_mine = [&parts](const auto& m) {
    return m.generation == parts.generation.number() || DISTTRAIN_MUTANT(kOldGenerationHeard);
  };
  const bool trains = parts.stage.is(Stage::kTrain) || parts.stage.is(Stage::kReclaim);
  std::visit(Overloaded{
                 [](const JobDescribed&) {},
                 [](const TaskFailed&) {},
                 [](const LeaveRequest&) {},      // Cluster's
                 [](const EvaluationFailed&) {},  // only evaluators send it
                 [&](const ShardsCreated& m) {
                   if (is_mine(m) && parts.stage.is(Stage::kCreate) && parts.stage.answered(from))
                     parts.launch.open(turn);
                 },
                 [&](const JobOpened& m) {
                   if (is_mine(m)) on_opened(turn, from, m);
                 },
                 [&](const RosterApplied& m) {
                   if (is_mine(m) && from == parts.generation.pacer()) parts.training.on_roster_applied(turn, m);
                 },
                 [&](const LeaseRequest& m) {
                   if (is_mine(m) && trains) parts.loans.on_request(turn, from, m);
                 },
                 [&](const WorkerFenced& m) {
                   if (is_mine(m) && parts.generation.owns(from, m.shard)) parts.fences.on_fenced(turn, m);
                 },
                 [&](const WorkerFinished& m) {
                   if (is_mine(m) && trains) parts.training.on_worker_finished(turn, from, m);
                 },
                 [&](const Evaluated& m) {
                   if (is_mine(m)) parts.ending.on_evaluated(turn, from, m);
                 },
                 [&](const JobClosed&) {
                   if (parts.stage.is(Stage::kClose) && parts.stage.answered(from)) parts.closing.finish(turn);
                 },
                 [&](const Accusation& m) { parts.link_failures.on_accusation(turn, from, m); },
                 [&](const Heartbeat& m) {
                   if (is_mine(m)) parts.training.on_heartbeat(turn, from, m);
                 },
                 [&](const CheckpointRequest& m) {
                   if (is_mine(m)) parts.savers.save_for_worker(turn);
                 },
                 [&](const CheckpointPrepared& m) {
                   if (is_mine(m)) parts.checkpointing.on_prepared(turn, from, m);
                 },
                 [&](const ShardWritten& m) {
                   if (is_mine(m) && parts.generation.owns(from, m.shard)) parts.checkpointing.on_written(turn, m);
                 },
                 [&](const CheckpointFailed& m) {
                   if (is_mine(m)) parts.checkpointing.on_failed(turn, from, m);
                 },
             },
             message);
}

void Job::on_opened(Turn& turn, const Member& from, const JobOpened& opened) {
  JobParts& parts = *parts_;
  parts.workers.note_wires(from, opened.wires);
  const bool trains = parts.stage.is(Stage::kTrain) || parts.stage.is(Stage::kReclaim);
  parts.candidates.note_prepared(from);
  if (trains) parts.candidates.note_trains(from.task);
  // The worker may have been told to start before it had opened the job, for example if a former chief asked it to
  // join. So tell it again.
  if (parts.workers.has_joined(from) || (trains && parts.workers.is_unfinished(from)))
    return parts.requests.repeat_in_training(turn, from);
  if (parts.stage.is(Stage::kOpen) && parts.stage.answered(from)) parts.start_failures.advance(turn);
}

void Job::on_finding(Turn& turn, const Finding& finding) {
  JobParts& parts = *parts_;
  if (parts.stage.is(Stage::kQueued) || parts.stage.is(Stage::kReleased)) return;
  const Member& member = finding.member;
  if (member.task.role == Role::kEvaluator) return parts.evaluators.on_finding(turn, finding);
  const bool is_gone = finding.what != Finding::What::kJoined && finding.what != Finding::What::kReturned;
  if (const Task* task = turn.tasks.find(member.task); finding.what == Finding::What::kJoined && task != nullptr)
    parts.candidates.meet(*task);
  parts.link_failures.on_finding(turn, finding);
  if (parts.stage.is(Stage::kGather)) return parts.gathering.gather(turn);
  if (parts.stage.is(Stage::kDescribe)) return parts.gathering.on_finding(turn, finding);
  if (is_gone) {
    parts.invitations.on_gone(turn, finding);
    if (finding.what != Finding::What::kSilent) parts.candidates.unprepare(member);
    return parts.task_losses.on_loss(turn, finding);
  }
  if (finding.what == Finding::What::kReturned && parts.pauses.note_back(member.task))
    parts.pausing.resume(turn, "all ps tasks are back");
  if (parts.stage.is(Stage::kRegather)) parts.regathering.regather(turn);
  if (member.task.role == Role::kWorker && !parts.members.uses(member)) parts.invitations.invite(turn, member);
}

// The order matters. The parts that may end the job or roll it back come before the parts that go on with it.
void Job::on_tick(Turn& turn) {
  JobParts& parts = *parts_;
  if (parts.stage.is(Stage::kQueued) || parts.stage.is(Stage::kReleased)) return;
  if (parts.stage.is(Stage::kGather)) parts.gathering.gather(turn);
  if (parts.stage.is(Stage::kRegather)) parts.regathering.regather(turn);
  parts.folder.review(turn);
  if (parts.stage.is(Stage::kReclaim)) parts.reclaim.advance(turn);
  parts.suspicions.review(turn);
  parts.link_failures.review(turn);
  if (parts.task_losses.check_silence(turn)) return;
  if (parts.absences.review(turn)) return;
  parts.late_disk.review(turn);
  if (parts.deadlines.check(turn)) return;
  parts.invitations.invite_again(turn);
  if (parts.stage.is(Stage::kTrain)) advance_training(turn);
  parts.checkpointing.advance(turn);
  parts.evaluators.advance(turn);
  parts.savers.review(turn);
}

void Job::advance_training(Turn& turn) {
  JobParts& parts = *parts_;
  for (const auto& [member, since] : std::map(parts.workers.joining()))
    if (turn.now - std::max(since, parts.work_clock.worked_at(turn.tasks, member)) > parts.setup.timeouts.setup)
      parts.membership.lose(turn, member, "it didn't open the job in time");
  parts.training.review_finished(turn);
  parts.membership.join_prepared(turn);
  parts.quorum.check(turn);
  parts.leaving.advance(turn);
  if (parts.stage.is(Stage::kTrain)) parts.stall.check(turn);
}

}  // namespace disttrain::chiefd
