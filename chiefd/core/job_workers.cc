// Workers leave and join while a job trains. See job.h.
#include <algorithm>

#include "chiefd/core/job.h"
#include "common/mutant.h"

namespace disttrain::chiefd {

// Of each task the last incarnation that was lost is enough to know: nothing is heard of those before it.
void Job::forget_predecessors(const Member& worker) {
  std::erase_if(lost_, [&](const Member& member) {
    const bool is_before = member.task == worker.task && member != worker && !is_in_roster(member);
    const bool owes = std::any_of(fences_.begin(), fences_.end(), [&](const Fence& f) { return f.worker == member; });
    if (!is_before || owes) return false;
    std::erase(workers_, member);
    worker_steps_.erase(member);
    warmup_times_.erase(member);
    return true;
  });
}

// For Loss::kLink the operator has been told.
void Job::lose_worker(Turn& turn, const Member& worker, const std::string& why, Loss loss) {
  forget_predecessors(worker);
  lost_.insert(worker);
  joining_.erase(worker);
  prepared_.erase(worker);
  lending_.forget(worker);
  early_requests_.erase(worker);
  // What is being written for it must not reach its successor.
  for (auto& [ticket, actions] : held_)
    std::erase_if(actions, [&worker](const Action& action) {
      const Send* message = std::get_if<Send>(&action);
      return message != nullptr && message->task == worker.task;
    });
  const bool had_finished = unfinished_.erase(worker) == 0;
  told_to_stop_.erase(worker);
  stopped_.erase(worker);
  const std::string text = "goes on without " + to_string(worker.task) + ": " + why;
  switch (loss) {
    case Loss::kCounts:
      rejoins_[to_string(worker.task)].note(turn.now, config().job.restart_window);
      warn("lost " + to_string(worker.task) + ": " + why);
      tell(turn, kWorkerLost, 2, text, worker.task);
      break;
    case Loss::kLeft:
      tell(turn, kWorkerLeft, 1, text, worker.task);
      break;
    case Loss::kLink:
      unlinked_[worker.task].note(turn.now, config().job.restart_window);
      warn(why);
      break;
  }
  // If it lives: as another incarnation it may come back. Not to the one that took its place.
  if (turn.tasks.is_current(worker))
    send(turn, worker.task, CloseJob{id(), generation_, "the job goes on without this task: " + why, true});
  std::vector<Member> others = roster_.members;
  // Its rank waits for a successor, and the steps with it.
  if (waits_for_lost() && !stopping_ && !had_finished)
    fence(turn, worker, std::nullopt);
  else if (std::erase(others, worker) > 0)
    change_roster(turn, std::move(others), worker);
  choose_evaluator(turn);
  check_quorum(turn);
  check_end(turn);
}

// Before the roster, so that the ledger in the answer to the roster has all that the worker ever got applied.
void Job::fence(Turn& turn, const Member& worker, std::optional<Ticket> after) {
  Fence fence{worker, {}, roster_.version, !after, after, turn.now + answer_limit()};
  for (std::uint32_t s = 0; s < owners_.size(); ++s) fence.owed.insert(ShardId(s));
  fences_.push_back(std::move(fence));
  for (const Member& ps : holders()) {
    if (after)
      hold(*after, Send{ps.task, FenceWorker{id(), generation_, worker}});
    else
      send(turn, ps.task, FenceWorker{id(), generation_, worker});
  }
}

// The time that the chief's own disk took is nobody else's fault.
void Job::begin_deadlines(Turn& turn, Ticket persisted) {
  for (Fence& fence : fences_) {
    if (fence.held != persisted) continue;
    fence.held.reset();
    fence.deadline = turn.now + answer_limit();
  }
}

// Durable before the pacer hears of it.
void Job::change_roster(Turn& turn, std::vector<Member> members, const std::optional<Member>& lost) {
  roster_.members = std::move(members);
  roster_.version = roster_.version.next();
  const Ticket ticket = turn.persist(RosterRecord{id(), generation_, roster_});
  if (lost) fence(turn, *lost, ticket);
  hold(ticket, Send{pacer().task, SetRoster{id(), generation_, roster_}});
  if (DISTTRAIN_MUTANT(kRosterNotDurable)) send(turn, pacer().task, SetRoster{id(), generation_, roster_});
  // Blocks of steps are lent to a roster: those of this one are made from the ledger in the pacer's answer.
  if (is_sync()) may_lend_ = false;
}

void Job::advance_fences(Turn& turn) {
  if (stage_ == Stage::kReclaim) return;  // what is lent isn't known yet
  const auto is_done = [](const Fence& fence) {
    return DISTTRAIN_MUTANT(kLentBeforeFence) || (fence.owed.empty() && fence.roster_applied);
  };
  bool any = false;
  for (const Fence& fence : fences_) {
    if (!is_done(fence)) continue;
    lending_.give_back(fence.worker);
    any = true;
  }
  std::erase_if(fences_, is_done);
  // Before these records are lent to others: a later chief must not take them for the lost worker's.
  if (any && !is_sync()) turn.persist(OpenGrantsRecord{id(), generation_, lending_.open_leases()});
  if (any && stage_ == Stage::kTrain) lend(turn);
}

void Job::choose_evaluator(Turn& turn) {
  if (evaluator_ && lost_.count(*evaluator_) == 0) return;
  if (unfinished_.empty()) return;
  evaluator_ = *unfinished_.begin();
  if (config().evaluate.every_steps != 0) send(turn, evaluator_->task, SetEvaluator{id(), generation_});
}

// ---- who comes

bool Job::has_work_for(TaskId worker) const {
  if (stopping_ || pacer_report_.finished) return false;
  if (config().data.sharding == Sharding::kLease) return !lending_.is_complete();
  // Each goes through the whole set: whose predecessor has finished has nothing to do.
  return std::none_of(workers_.begin(), workers_.end(), [this, worker](const Member& member) {
    return member.task == worker && lost_.count(member) == 0;
  });
}

// A worker that isn't in the job reads the data and builds the model, so that nobody waits for it when it joins.
void Job::invite(Turn& turn, const Member& worker) {
  const bool trains = stage_ == Stage::kTrain || stage_ == Stage::kRegather;
  if (!trains || !described_ || stopping_ || is_final(state_)) return;
  // Who was lost comes back as another incarnation, or with another generation.
  const bool is_lost = (stage_ == Stage::kTrain && lost_.count(worker) != 0) || was_removed_before(turn.tasks, worker);
  if (is_lost || invited_.count(worker) != 0 || prepared_.count(worker) != 0) return;
  if (uses(worker) && stage_ == Stage::kTrain) return;
  invited_[worker] = turn.now;
  send(turn, worker.task, DescribeJob{id(), resolved_config(), ps_to_reach(turn.tasks)});
}

void Job::invite_all(Turn& turn) {
  for (const auto& [id, task] : turn.tasks.all())
    if (id.role == Role::kWorker && task.is_there() && !task.leaving) invite(turn, task.member);
  join_prepared(turn);
}

// All that are ready, but not while a checkpoint is cut: its workers are counted.
void Job::join_prepared(Turn& turn) {
  if (stage_ != Stage::kTrain || !may_lend_ || leaving_owner(turn.tasks)) return;
  if (attempt_ && attempt_->phase == Attempt::Phase::kCut) return;
  for (const Member& worker : std::set(prepared_)) {
    if (uses(worker) || lost_.count(worker) != 0 || !turn.tasks.is_current(worker) || !has_work_for(worker.task))
      continue;
    const Task* task = turn.tasks.find(worker.task);
    if (!task->takes_work() || !reaches_owners(worker.task)) continue;
    // A worker that is lost again and again waits longer each time.
    const std::size_t losses = losses_of(worker.task, turn.now);
    if (losses > config().job.max_restarts) {
      keep_out(turn, worker.task, lost_too_often(losses));
      continue;
    }
    if (const std::size_t workers = roster_with(worker).size(); workers > places_) {
      keep_out(turn, worker.task, no_place_for(turn.tasks, workers));
      continue;
    }
    kept_out_.erase(worker.task);
    const std::size_t times = std::max(losses, unlinked_[worker.task].count(turn.now, config().job.restart_window));
    if (times > 1 && turn.now - task->joined < back_off(static_cast<std::uint32_t>(times - 1))) continue;
    join(turn, worker);
    if (!may_lend_) return;  // one at a time where a roster takes its time
  }
}

// It is there, and isn't taken.
void Job::keep_out(Turn& turn, TaskId worker, const std::string& why) {
  if (kept_out_.emplace(worker, why).second) tell(turn, "worker_refused", 2, to_string(worker) + " " + why, worker);
}

std::string Job::lost_too_often(std::size_t losses) const {
  return "isn't taken back: it was lost " + std::to_string(losses) + (losses == 1 ? " time" : " times") +
         " within job.restart_window, and job.max_restarts is " + std::to_string(config().job.max_restarts);
}

std::string Job::no_place_for(const Tasks& tasks, std::size_t workers) const {
  const std::string problem = memory_fit(tasks).why_not(static_cast<std::uint32_t>(workers));
  if (!problem.empty()) return "isn't taken: " + problem;
  return "isn't taken: the shards' memory was made for " + std::to_string(places_) +
         " workers; submit the job again to train with more";
}

// The roster once the worker has joined: it takes the place of its predecessor.
std::vector<Member> Job::roster_with(const Member& worker) const {
  std::vector<Member> members = roster_.members;
  // Who has finished makes no more steps; what a lost worker left is done without it.
  if (is_sync() && !waits_for_lost())
    std::erase_if(members, [this](const Member& member) { return unfinished_.count(member) == 0; });
  const auto predecessor = std::find_if(members.begin(), members.end(),
                                        [&worker](const Member& member) { return member.task == worker.task; });
  if (predecessor != members.end())
    *predecessor = worker;
  else
    members.push_back(worker);
  return members;
}

void Job::join(Turn& turn, const Member& worker) {
  std::vector<Member> members = roster_with(worker);
  workers_.push_back(worker);
  unfinished_.insert(worker);
  joining_[worker] = turn.now;
  tell(turn, "worker_joined", 1, to_string(worker.task) + " joins", worker.task);
  change_roster(turn, std::move(members), std::nullopt);
  choose_evaluator(turn);
  // Its channels are refused until the pacer has the roster, and dialled again until they aren't.
  hold(turn.last_ticket, Send{worker.task, order_to_open(worker)});
  check_quorum(turn);
}

// ---- too few

bool Job::is_work_left() const {
  if (config().data.sharding == Sharding::kLease) return !lending_.is_complete();
  const bool any_has_ended = unfinished_.empty() && any_is_left();
  return !any_has_ended && !pacer_report_.finished;
}

std::size_t Job::losses_of(TaskId worker, Instant now) const {
  const auto lost = rejoins_.find(to_string(worker));
  return lost == rejoins_.end() ? 0 : lost->second.count(now, config().job.restart_window);
}

// Why the job can't train with the workers that it has. "": it can.
std::string Job::shortage(const Turn& turn) const {
  const std::vector<Awaited> missing = missing_to_train(turn.tasks);
  if (missing.empty()) return "";
  std::string banned;
  for (const auto& [id, task] : turn.tasks.all())
    if (id.role == Role::kWorker && losses_of(id, turn.now) > config().job.max_restarts)
      banned += "; " + to_string(id) +
                " was lost too often within job.restart_window to be taken back: " + "job.max_restarts is " +
                std::to_string(config().job.max_restarts);
  std::string links = broken_links_text(turn.now);
  if (!links.empty()) links = "; " + links;
  if (missing.front().task)
    return "waiting for " + to_string(missing) + " (job.on_worker_loss is \"wait\")" + banned + links;
  return std::to_string(least_workers() - missing.front().count) + " of at least " + std::to_string(least_workers()) +
         " workers are there; waiting for others" + banned + links;
}

void Job::check_quorum(Turn& turn) {
  if (stage_ != Stage::kTrain) return;
  const std::string problem = shortage(turn);
  if (problem.empty()) {
    if (!is_short_) return;
    is_short_ = false;
    progress_at_ = turn.now;
    if (!holds_workers(turn.tasks)) {
      pause_workers(turn, false, "the workers are there");
      set_state(turn, stopping_ ? JobState::kStopping : JobState::kRunning, "the workers are there");
    }
    return;
  }
  if (!is_short_) {
    is_short_ = true;
    short_since_ = turn.now;
    interrupt_attempt(turn, problem);  // its marks might never come
    pause_workers(turn, true, problem);
    return set_state(turn, JobState::kPaused, problem);
  }
  // Those who are to fill the gap may have much to read.
  if (turn.now - std::max(short_since_, newest_work(turn.tasks, invited())) < setup_.timeouts.setup) return;
  fail(turn,
       Error{ErrorCode::kUnavailable,
             problem + " for " + std::to_string(static_cast<long>(to_seconds(setup_.timeouts.setup))) + " s"},
       std::nullopt);
}

void Job::pause_workers(Turn& turn, bool paused, const std::string& reason) {
  send_to_workers(turn, PauseJob{id(), generation_, paused, reason});
}

}  // namespace disttrain::chiefd
