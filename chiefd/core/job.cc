#include "chiefd/core/job.h"

#include <algorithm>
#include <utility>

#include "common/mutant.h"

namespace disttrain::chiefd {

namespace {

// A job that runs for weeks loses many a worker; `events` has them all.
constexpr std::size_t kMaxWarnings = 100;

}  // namespace

Job::Job(Setup setup) : setup_(std::move(setup)) {}

void Job::restore(const JournaledJob& journaled) {
  state_ = journaled.state;
  generation_ = journaled.generation.generation;
  recoveries_ = journaled.generation.recoveries;
  newest_ = journaled.checkpoint;
  has_begun_ = journaled.ended.has_value();  // none is written for one that leaves the queue
  if (journaled.ended) recall_end(*journaled.ended);
  if (state_ == JobState::kQueued) return;
  reason_ = journaled.reason;
  stage_ = Stage::kReleased;
  opened_ = state_ != JobState::kStarting;
}

std::vector<Member> Job::holders() const {
  std::vector<Member> holders;
  for (const Owner& owner : owners_)
    if (std::find(holders.begin(), holders.end(), owner.ps) == holders.end()) holders.push_back(owner.ps);
  return holders;
}

std::vector<Member> Job::members() const {
  std::vector<Member> members = holders();
  members.insert(members.end(), workers_.begin(), workers_.end());
  for (const auto& [member, since] : invited_)
    if (std::find(members.begin(), members.end(), member) == members.end()) members.push_back(member);
  return members;
}

bool Job::is_owner(const Member& member) const {
  return std::any_of(owners_.begin(), owners_.end(), [&member](const Owner& owner) { return owner.ps == member; });
}

bool Job::is_worker(const Member& member) const {
  return std::find(workers_.begin(), workers_.end(), member) != workers_.end() && lost_.count(member) == 0;
}

bool Job::is_in_roster(const Member& member) const {
  return std::find(roster_.members.begin(), roster_.members.end(), member) != roster_.members.end();
}

bool Job::uses(const Member& member) const {
  return is_owner(member) || is_worker(member);
}

void Job::send(Turn& turn, TaskId task, ToTask message) {
  turn.tasks.send(Send{task, std::move(message)}, turn.actions);
}

void Job::send_to_workers(Turn& turn, const ToTask& message) {
  for (const Member& worker : roster_.members)
    if (lost_.count(worker) == 0) send(turn, worker.task, message);
}

void Job::tell(Turn& turn, const std::string& kind, std::uint8_t level, const std::string& text,
               std::optional<TaskId> task, const std::string& cause) {
  turn.persist(EventRecord{0, id(), kind, task ? to_string(*task) : "", reached().value, text, cause});
  turn.actions.push_back(
      Note{level, "job " + name() + " (" + std::to_string(id().value) + "): " + text, kind, name(), reached().value});
}

void Job::warn(std::string text) {
  if (warnings_.size() >= kMaxWarnings) warnings_.erase(warnings_.begin());
  warnings_.push_back(std::move(text));
}

void Job::set_state(Turn& turn, JobState state, std::string reason) {
  // Another chief knows by its state alone that the job is to stop.
  if (stopping_ && state == JobState::kPaused) state = JobState::kStopping;
  const bool is_new = state != state_;
  state_ = state;
  reason_ = std::move(reason);
  if (!is_new) return;
  const Ticket ticket = turn.persist(StateRecord{id(), state, reason_});
  if (is_final(state)) hold(ticket, JobEnded{id()});
  const std::uint8_t level = state == JobState::kFailed ? 3 : state == JobState::kPaused ? 2 : 1;
  tell(turn, to_string(state), level, std::string(to_string(state)) + ": " + reason_);
}

void Job::await(const Turn& turn, std::vector<Member> who, Instant deadline) {
  waits_since_ = turn.now;
  awaited_ = std::set<Member>(who.begin(), who.end());
  deadline_ = deadline;
}

bool Job::answered(const Member& member) {
  return awaited_.erase(member) > 0 && awaited_.empty();
}

void Job::on_persisted(Turn& turn, Ticket ticket) {
  if (stage_ == Stage::kGeneration && ticket == stage_ticket_) create_shards(turn);
  if (stage_ == Stage::kClose && !is_end_written_ && ticket == stage_ticket_) begin_closing(turn);
  begin_deadlines(turn, ticket);
  auto held = held_.extract(ticket);
  if (held.empty()) return;
  for (Action& action : held.mapped()) {
    if (Send* message = std::get_if<Send>(&action))
      turn.tasks.send(std::move(*message), turn.actions);
    else
      turn.actions.push_back(std::move(action));
  }
}

namespace {

template <typename... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};
template <typename... Functions>
Overloaded(Functions...) -> Overloaded<Functions...>;

}  // namespace

// A switch over messages. What comes from another generation, from a task that the job doesn't use (any more), or at a
// stage that doesn't wait for it, changes nothing.
void Job::on_message(Turn& turn, const Member& from, const FromTask& message) {
  if (const auto* described = std::get_if<JobDescribed>(&message)) return on_described(turn, from, *described);
  if (const auto* failed = std::get_if<TaskFailed>(&message)) return on_task_failed(turn, from, *failed);
  if (!uses(from)) {
    // It was given up, or holds a generation that is gone, and doesn't know it yet.
    const auto* heartbeat = std::get_if<Heartbeat>(&message);
    if (heartbeat == nullptr || heartbeat->job != id() || stage_ == Stage::kReclaim) return;
    const bool is_old = heartbeat->generation.value != 0 && heartbeat->generation < generation_;
    if (lost_.count(from) != 0 || is_old || was_removed_before(turn.tasks, from))
      send(turn, from.task,
           CloseJob{id(), heartbeat->generation, "the job goes on without this task: it was silent too long", true});
    return;
  }
  const auto is_mine = [this](const auto& m) {
    return m.generation == generation_ || DISTTRAIN_MUTANT(kOldGenerationHeard);
  };
  const bool trains = stage_ == Stage::kTrain || stage_ == Stage::kReclaim;
  std::visit(Overloaded{
                 [&](const JobDescribed&) {},
                 [&](const TaskFailed&) {},
                 [&](const LeaveRequest&) {},  // Cluster's
                 [&](const ShardsCreated& m) {
                   if (is_mine(m) && stage_ == Stage::kCreate && answered(from)) open(turn);
                 },
                 [&](const JobOpened& m) {
                   if (!is_mine(m)) return;
                   prepared_.insert(from);
                   // One that a former chief asked to join was told to start before it could.
                   if (joining_.erase(from) > 0 || (trains && unfinished_.count(from) != 0))
                     return repeat_training_requests(turn, from);
                   if (stage_ != Stage::kOpen || !answered(from)) return;
                   stage_ = Stage::kRoster;
                   await(turn, {pacer()}, turn.now + setup_.timeouts.setup);
                   send(turn, pacer().task, SetRoster{id(), generation_, roster_});
                 },
                 [&](const RosterApplied& m) {
                   if (is_mine(m) && from == pacer()) on_roster_applied(turn, m);
                 },
                 [&](const LeaseRequest& m) {
                   if (is_mine(m) && trains) on_lease_request(turn, from, m);
                 },
                 [&](const WorkerFenced& m) {
                   if (!is_mine(m) || m.shard.value >= owners_.size() || owners_[m.shard.value].ps != from) return;
                   bool is_asked = false;
                   for (Fence& fence : fences_) {
                     if (fence.worker != m.worker) continue;
                     fence.owed.erase(m.shard);
                     is_asked = true;
                   }
                   // A peer may name any task; clocks are kept of those that this chief knows or has asked about.
                   if (!is_asked && turn.tasks.find(m.worker.task) == nullptr) return;
                   Step& clock = lost_clocks_[m.worker.task];
                   clock = std::max(clock, m.last_clock);
                   advance_fences(turn);
                 },
                 [&](const WorkerFinished& m) {
                   if (is_mine(m) && trains) on_worker_finished(turn, from, m);
                 },
                 [&](const Evaluated& m) {
                   if (!is_mine(m)) return;
                   on_evaluated(turn, m);
                   if (m.final && stage_ == Stage::kEvaluate && answered(from)) close(turn, JobState::kFinished, "");
                 },
                 [&](const JobClosed&) {
                   if (stage_ == Stage::kClose && answered(from)) finish_closing(turn);
                 },
                 [&](const Accusation& m) { on_accusation(turn, from, m); },
                 [&](const Heartbeat& m) {
                   if (is_mine(m)) on_heartbeat(turn, from, m);
                 },
                 [&](const CheckpointPrepared& m) {
                   if (is_mine(m)) on_prepared(turn, from, m);
                 },
                 [&](const ShardWritten& m) {
                   const bool owns = m.shard.value < owners_.size() && owners_[m.shard.value].ps == from;
                   if (is_mine(m) && owns) on_written(turn, m);
                 },
                 [&](const CheckpointFailed& m) {
                   if (is_mine(m) && attempt_ && m.attempt == attempt_->number)
                     abandon_attempt(turn, to_string(from.task) + ": " + m.reason, true);
                 },
             },
             message);
}

// By a chief before: it holds this generation, and isn't in its roster. As the same incarnation it can't come back.
bool Job::was_removed_before(const Tasks& tasks, const Member& worker) const {
  const Task* task = tasks.find(worker.task);
  if (task == nullptr || task->member != worker || uses(worker) || stage_ != Stage::kTrain) return false;
  const bool said_so = task->hello.job == id() && task->hello.generation == generation_;
  const bool says_so = task->heartbeat.job == id() && task->heartbeat.generation == generation_;
  return said_so || says_so;
}

void Job::on_task_failed(Turn& turn, const Member& from, const TaskFailed& m) {
  if (is_final(state_) || stage_ == Stage::kClose || stage_ == Stage::kQueued) return;
  const Error error{m.code, m.reason};
  // A description belongs to no generation. What is said of one that is over may come at any time, and is about
  // nothing.
  const bool is_of_description = m.generation.value == 0;
  if (stage_ == Stage::kDescribe && is_of_description && awaited_.count(from) != 0) return fail(turn, error, from.task);
  const bool is_invited = is_of_description && invited_.erase(from) > 0;
  const bool is_joining = m.generation == generation_ && joining_.count(from) != 0;
  if (is_invited || is_joining) {
    // The others do without it.
    tell(turn, "worker_refused", 2, to_string(from.task) + " can't take part: " + m.reason, from.task);
    prepared_.erase(from);
    if (is_joining) lose_worker(turn, from, m.reason);
    return;
  }
  // What fails while a generation is given up fails because of that.
  const bool is_giving_up = stage_ == Stage::kRegather || stage_ == Stage::kFind || stage_ == Stage::kGeneration ||
                            stage_ == Stage::kFolder || stage_ == Stage::kInit;
  if (!uses(from) || m.generation != generation_ || is_giving_up) return;
  if (m.code == ErrorCode::kData && stage_ == Stage::kCreate && restore_ && is_owner(from)) {
    damage_ = to_string(from.task) + ": " + m.reason;
    note_broken(turn, {damage_});
    stage_ = Stage::kFind;
    awaited_.clear();
    deadline_ = turn.now + setup_.timeouts.setup;
    stage_ticket_ = turn.next_ticket();
    return folder_work(turn, stage_ticket_, SetAside{restore_->path, mark_});
  }
  // Its disk may do better the next time, and the folder, which was the right one before, may come back; max_restarts
  // bounds it.
  const bool may_pass =
      takes_checkpoints() &&
      (m.code == ErrorCode::kFailed || (was_begun_ && (m.code == ErrorCode::kConfig || m.code == ErrorCode::kNoInput)));
  if (may_pass && stage_ == Stage::kCreate && is_owner(from)) return recover(turn, {from.task, m.reason});
  if (m.code != ErrorCode::kUnavailable) return fail(turn, error, from.task);
  // It may have lost another task of the job: that one is the root cause then.
  if (!suspicions_.try_emplace(from, Suspicion{error, turn.now}).second) return;
  for (const Member& member : members())
    if (member != from) turn.tasks.accuse(member.task, turn.actions);
}

void Job::on_finding(Turn& turn, const Finding& finding) {
  if (stage_ == Stage::kQueued || stage_ == Stage::kReleased) return;
  const Member& member = finding.member;
  const bool is_gone = finding.what != Finding::What::kJoined && finding.what != Finding::What::kReturned;
  forget_links(turn, finding);
  if (stage_ == Stage::kGather) return gather(turn);
  if (stage_ == Stage::kDescribe) return on_finding_while_describing(turn, finding);
  if (is_gone) {
    invited_.erase(member);
    if (finding.what != Finding::What::kSilent) prepared_.erase(member);
    return lose_task(turn, finding);
  }
  if (finding.what == Finding::What::kReturned && silent_ps_.erase(member.task) > 0 && silent_ps_.empty())
    resume(turn, "all ps tasks are back");
  if (stage_ == Stage::kRegather) regather(turn);
  if (member.task.role == Role::kWorker && !uses(member)) invite(turn, member);
}

void Job::on_tick(Turn& turn) {
  if (stage_ == Stage::kQueued || stage_ == Stage::kReleased) return;
  if (stage_ == Stage::kGather) gather(turn);
  if (stage_ == Stage::kRegather) regather(turn);
  if (find_again_ && turn.now >= *find_again_) ask_newest(turn);
  if (stage_ == Stage::kReclaim) finish_reclaim(turn);
  check_suspicions(turn);
  review_links(turn);
  for (const auto& [task, silence] : silent_ps_) {
    const Duration lasts = turn.now - silence.since;
    if (lasts <= patience_with_ps(silence.since) || is_final(state_)) continue;
    if (silence.is_link) return recover(turn, {std::nullopt, silence.why}, Loss::kLink);
    return recover(turn,
                   {task, "it has been silent for " + std::to_string(static_cast<long>(to_seconds(lasts))) + " s"},
                   turn.tasks.find(task)->leaving ? Loss::kLeft : Loss::kCounts);
  }
  wait_for_disk(turn);
  if (deadline_ && turn.now >= *deadline_ && !extend_deadline(turn)) return on_deadline(turn);
  invite_again(turn);
  if (stage_ == Stage::kTrain) {
    for (const auto& [member, since] : std::map(joining_))
      if (turn.now - std::max(since, worked_at(turn.tasks, member)) > setup_.timeouts.setup)
        lose_worker(turn, member, "it didn't open the job in time");
    join_prepared(turn);
    check_quorum(turn);
    advance_leavers(turn);
    if (stage_ == Stage::kTrain) check_stall(turn);
  }
  advance_attempt(turn);
  review_savers(turn);
}

void Job::check_suspicions(Turn& turn) {
  // A ps that is silent, or not back yet, may explain them; but if that returns, the complaints stand.
  if (!silent_ps_.empty() || (stage_ == Stage::kReclaim && awaited_.empty())) return;
  for (const auto& [from, suspicion] : std::map(suspicions_)) {
    if (!is_settled(turn, from, suspicion.since)) continue;
    suspicions_.erase(from);
    if (!uses(from)) continue;
    // Two shards lost each other.
    const auto link = std::find_if(links_.broken().begin(), links_.broken().end(), [from = from](const auto& broken) {
      return broken.first.from == from.task && from.task.role == Role::kPs;
    });
    if (link != links_.broken().end()) {
      const std::string why = links_.text(turn.now, link->first);
      links_.forget_peers();  // they may meet again
      return recover(turn, {std::nullopt, why}, Loss::kLink);
    }
    // All are well but the one that complains: it may do better as another member, or with others. Of a ps that has
    // lost another one, a chief that was away hears too late which of them was gone: none is blamed.
    const std::string& why = suspicion.error.message;
    if (!is_worker(from)) return recover(turn, {std::nullopt, to_string(from.task) + ": " + why});
    if (stage_ != Stage::kTrain) return recover(turn, {from.task, why});
    lose_worker(turn, from, why);
  }
}

// All others have been heard since, or the time for that is up.
bool Job::is_settled(const Turn& turn, const Member& from, Instant since) const {
  // A tick and a heartbeat may lie between a silence and its being known.
  if (turn.now - since >= setup_.timeouts.silent + 2 * setup_.timeouts.interval) return true;
  const std::vector<Member> all = members();
  return std::all_of(all.begin(), all.end(), [&](const Member& member) {
    const Task* task = turn.tasks.find(member.task);
    // None: a former chief knew it, and nothing is heard of it.
    if (member == from || task == nullptr || task->member != member || lost_.count(member) != 0) return true;
    return task->connected && task->last_heard > since;
  });
}

void Job::on_reconnect(Turn& turn, const TaskHello& hello) {
  const Member& member = hello.member;
  if (stage_ == Stage::kReclaim) return reclaim(turn, hello);
  if (invited_.count(member) != 0)
    send(turn, member.task, DescribeJob{id(), resolved_config(), ps_to_reach(turn.tasks)});
  if (stage_ != Stage::kDescribe && !uses(member)) return;
  const bool is_awaited = awaited_.count(member) != 0;
  switch (stage_) {
    case Stage::kDescribe:
      if (is_awaited) send(turn, member.task, DescribeJob{id(), resolved_config()});
      break;
    case Stage::kCreate:
      if (is_awaited) ask_to_create(turn, member);
      break;
    case Stage::kOpen:
      if (is_awaited) ask_to_open(turn, member);
      break;
    case Stage::kRoster:
    case Stage::kSettle:
      if (is_awaited) repeat_roster(turn);
      break;
    case Stage::kTrain:
      repeat_training_requests(turn, member);
      break;
    case Stage::kFinalCut:
      if (member == pacer()) repeat_roster(turn);
      break;
    case Stage::kEvaluate:
      if (is_awaited) send(turn, member.task, Evaluate{id(), generation_});
      break;
    case Stage::kClose:
      if (is_awaited) send(turn, member.task, CloseJob{id(), generation_, end_reason_});
      break;
    default:
      break;
  }
  repeat_attempt(turn, member);
}

Instant Job::worked_at(const Tasks& tasks, const Member& member) const {
  const Task* task = tasks.find(member.task);
  if (task == nullptr || task->member != member || task->heartbeat.job != id()) return {};
  // A description belongs to no generation.
  const Generation generation = task->heartbeat.generation;
  return generation.value == 0 || generation == generation_ ? task->worked : Instant();
}

std::vector<Member> Job::invited() const {
  std::vector<Member> members;
  for (const auto& [member, since] : invited_) members.push_back(member);
  return members;
}

// A restore or a data set takes as long as it takes: while one of those whom the stage waits for gets on, so does the
// deadline. All of them, not each: a shard that is there waits for the pacer's, which may still be restored.
bool Job::extend_deadline(Turn& turn) {
  Instant newest;
  if (stage_ == Stage::kRegather)
    newest = newest_work(turn.tasks, invited());
  else if (stage_ == Stage::kDescribe || stage_ == Stage::kCreate || stage_ == Stage::kOpen ||
           stage_ == Stage::kEvaluate)
    newest = newest_work(turn.tasks, awaited_);
  const Instant deadline = newest + setup_.timeouts.setup;
  if (turn.now >= deadline) return false;
  deadline_ = deadline;
  if (stage_ == Stage::kDescribe) gather_until_ = std::max(gather_until_, deadline);
  return true;
}

// Of those whom the stage waits for: the others may wait for the pacer.
TaskId Job::who_stands_still(const Tasks& tasks) const {
  if (awaited_.empty() || (!owners_.empty() && awaited_.count(pacer()) != 0)) return pacer().task;
  return std::min_element(awaited_.begin(), awaited_.end(),
                          [&](const Member& a, const Member& b) { return worked_at(tasks, a) < worked_at(tasks, b); })
      ->task;
}

void Job::on_deadline(Turn& turn) {
  deadline_.reset();
  const std::string limit = std::to_string(static_cast<long>(to_seconds(setup_.timeouts.setup))) + " s";
  const auto give_up = [&](const std::string& what) {
    const TaskId task = who_stands_still(turn.tasks);
    const std::string since =
        newest_work(turn.tasks, awaited_) == Instant() ? " within " + limit : ", and has stood still for " + limit;
    fail(turn, Error{ErrorCode::kUnavailable, "it heartbeats, but " + what + since}, task);
  };
  switch (stage_) {
    case Stage::kGather:
      return fail(turn,
                  Error{ErrorCode::kUnavailable, reason_ + " for " + limit + ": start them, or lower min_workers"},
                  std::nullopt);
    case Stage::kRegather:
      return fail(
          turn, Error{ErrorCode::kUnavailable, recovery_->cause.reason + "; " + recovery_->shortage + " for " + limit},
          recovery_->cause.task);
    case Stage::kDescribe:
      return give_up("didn't read the data and build the model");
    case Stage::kInit:
      return fail(
          turn,
          Error{ErrorCode::kFailed, config().checkpoint.init_from + " (checkpoint.init_from) hasn't been read " +
                                        "within " + limit + ": does its file system hang?"},
          std::nullopt);
    case Stage::kFinalCut:
      return fail_final_cut(turn, folder_problem(turn.now, ""));
    case Stage::kFolder:
    case Stage::kFind:
      return fail(turn, Error{ErrorCode::kFailed, folder_problem(turn.now, " for " + limit)}, std::nullopt);
    case Stage::kGeneration:
      return fail(turn, Error{ErrorCode::kFailed, "the chief's disk hasn't taken the job's generation within " + limit},
                  std::nullopt);
    case Stage::kCreate:
      return give_up("didn't create its shards");
    case Stage::kOpen:
      return give_up("didn't open the job");
    case Stage::kRoster:
      return give_up("didn't take the roster");
    case Stage::kTrain:
      if (stopping_)
        return close(turn, JobState::kStopped, end_reason_ + "; not every worker reached the end of a step in time");
      return;
    case Stage::kSettle:
      // The chief's patience with a silent ps decides, not this limit; and one that is away is asked again.
      if (!silent_ps_.empty() || !hears_both_ways(turn.tasks, pacer()))
        return deadline_.emplace(turn.now + answer_limit()), void();
      return recover(turn, {pacer().task, "it heartbeats, but didn't report its last step in time"});
    case Stage::kEvaluate:
      return give_up("didn't finish the final evaluation");
    case Stage::kClose:
      for (const Member& member : awaited_)
        turn.actions.push_back(
            Note{2, to_string(member.task) + " didn't release job " + name() + " in time: left behind", "", name()});
      return finish_closing(turn);
    case Stage::kReclaim:
    case Stage::kQueued:
    case Stage::kReleased:
      break;
  }
}

}  // namespace disttrain::chiefd
