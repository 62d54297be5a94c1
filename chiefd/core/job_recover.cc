// A ps is lost, or the chief itself was: see job.h.
//
// A rollback is a start with another generation: all shards are made anew, from one checkpoint, by whoever is there;
// workers open the job anew; what belongs to the generation before is refused by its number.
#include <algorithm>

#include "chiefd/core/job.h"
#include "chiefd/core/placement.h"

#include "common/mutant.h"

namespace disttrain::chiefd {
namespace {

// A silent ps is waited for as long as a rollback would cost, within these.
constexpr int kMostPatience = 60;  // heartbeat timeouts

}  // namespace

void Job::lose_task(Turn& turn, const Finding& finding) {
  const Member& member = finding.member;
  if (stage_ == Stage::kRegather) return regather(turn);
  if (!uses(member)) return;
  const bool is_silent = finding.what == Finding::What::kSilent;
  const bool has_trained = stage_ == Stage::kTrain || stage_ == Stage::kReclaim || stage_ == Stage::kSettle ||
                           stage_ == Stage::kFinalCut || stage_ == Stage::kEvaluate;
  if (stage_ == Stage::kClose) {
    if (answered(member)) finish_closing(turn);
    return;
  }
  if (is_owner(member)) {
    if (is_silent && has_trained) return pause(turn, finding);
    return recover(turn, to_string(member.task) + ": " + finding.why, member.task);
  }
  if (stage_ == Stage::kTrain) return lose_worker(turn, member, finding.why);
  if (stage_ == Stage::kReclaim) {
    if (!awaited_.empty()) return lose_worker(turn, member, finding.why);
    reclaimed_.erase(member);  // seen at its end
    return;
  }
  if (!has_trained) return recover(turn, to_string(member.task) + ": " + finding.why, member.task);
  lost_.insert(member);
  // The last cut doesn't wait for its marks.
  if (stage_ == Stage::kSettle || stage_ == Stage::kFinalCut) {
    std::vector<Member> others = roster_.members;
    std::erase(others, member);
    change_roster(turn, std::move(others), std::nullopt);
    abandon_attempt(turn, to_string(member.task) + " is lost");
  }
  if (stage_ == Stage::kEvaluate && awaited_.count(member) != 0) evaluate(turn);
}

// ---- silence

Duration Job::patience_with_ps(Instant silent_since) const {
  const Duration age = silent_since - newest_at_;
  return std::clamp(age, setup_.timeouts.silent_ps, setup_.timeouts.silent * kMostPatience);
}

void Job::pause(Turn& turn, const Finding& finding) {
  silent_ps_.emplace(finding.member.task, turn.now);
  abandon_attempt(turn, to_string(finding.member.task) + " is silent");
  const std::string reason = to_string(finding.member.task) + ": " + finding.why + "; waiting for it to return";
  pause_workers(turn, true, reason);
  set_state(turn, JobState::kPaused, reason);
}

void Job::resume(Turn& turn) {
  progress_at_ = turn.now;
  for (Fence& fence : fences_) fence.deadline = turn.now + setup_.timeouts.silent_ps;
  if (state_ != JobState::kPaused || is_short_) return;
  pause_workers(turn, false, "all ps tasks are back");
  const bool trains = (stage_ == Stage::kTrain || stage_ == Stage::kReclaim) && !stopping_;
  if (trains) return set_state(turn, JobState::kRunning, "all ps tasks are back");
  set_state(turn, stopping_ ? JobState::kStopping : JobState::kEvaluating, "all ps tasks are back");
}

// ---- rollback

void Job::recover(Turn& turn, const std::string& why, std::optional<TaskId> root) {
  if (is_final(state_) || stage_ == Stage::kClose || stage_ == Stage::kQueued) return;
  if (stopping_) return close(turn, JobState::kStopped, end_reason_ + "; " + why + " before the workers had ended");
  const std::size_t times = count_loss(turn, why, root);
  if (times > config().job.max_restarts)
    return fail(turn, Error{ErrorCode::kFailed, too_many_losses(why, times)}, root);
  // Nothing was placed yet: no generation to roll back.
  if (owners_.empty()) {
    awaited_.clear();
    stage_ = Stage::kGather;
    deadline_ = gather_until_;
    return gather(turn);
  }
  ++recoveries_;
  const Step reached = std::max(pacer_report_.global_step, recovery_ ? recovery_->step : Step());
  const bool is_known = heard_pacer_ && (!recovery_ || recovery_->is_step_known);
  const Instant began = recovery_ ? recovery_->began : turn.now;
  recovery_ = Recovery{why, root, began, turn.now + back_off(fruitless_), reached, is_known};
  ++fruitless_;
  drop_generation(turn);
  pause_workers(turn, true, why);
  stage_ = Stage::kRegather;
  deadline_ = turn.now + setup_.timeouts.setup;
  set_state(turn, JobState::kPaused, why + "; recovers");
  regather(turn);
}

// How many there were within the window, this one too. Told, so that the next chief knows of it.
std::size_t Job::count_loss(Turn& turn, const std::string& why, std::optional<TaskId> root) {
  const std::size_t times = restarts_.note(turn.now, config().job.restart_window);
  tell(turn, kLossCounted, 2,
       "loss number " + std::to_string(times) + " within job.restart_window, of at most " +
           std::to_string(config().job.max_restarts) + ": " + why,
       root);
  return times;
}

std::string Job::too_many_losses(const std::string& why, std::size_t times) const {
  return why + "; it is the loss number " + std::to_string(times) +
         " within job.restart_window, and job.max_restarts is " + std::to_string(config().job.max_restarts);
}

void Job::count_past_losses(Instant now, const std::deque<EventRecord>& events, std::int64_t wall) {
  const Duration window = config().job.restart_window;
  for (const EventRecord& event : events) {
    // A clock that was set back makes it a loss of just now.
    const Duration age = std::max(Duration::zero(), Duration(wall - event.wall_nanoseconds));
    if (event.job != id() || age > window) continue;
    if (event.kind == kLossCounted) restarts_.note(now - age, window);
    if (event.kind == kWorkerLost) rejoins_[event.task].note(now - age, window);
  }
}

// Nothing that belongs to it is of use any more.
void Job::drop_generation(Turn& turn) {
  abandon_attempt(turn, "the job rolls back");
  find_again_.reset();
  for (auto& [ticket, actions] : held_)
    std::erase_if(actions, [](const Action& action) { return std::holds_alternative<Send>(action); });
  before_.time += pacer_report_.training;
  before_.steps += pacer_report_.measured_steps;
  before_.examples += pacer_report_.measured_examples;
  pacer_report_ = PacerReport();
  heard_pacer_ = true;  // nothing was applied that nobody told
  awaited_.clear();
  fences_.clear();
  joining_.clear();
  silent_ps_.clear();
  suspicions_.clear();
  is_short_ = false;
  lending_ = Lending();
  may_lend_ = false;
  early_requests_.clear();
  reclaimed_grants_.clear();
  lost_clocks_.clear();
  // Who was silent and is back may be of the next generation.
  lost_.clear();
}

void Job::regather(Turn& turn) {
  std::string missing;
  const bool has_ps = regather_ps(turn, missing);
  const bool has_workers = regather_workers(turn, missing);
  if (!has_ps || !has_workers) {
    reason_ = recovery_->why + "; waiting for " + missing;
    return;
  }
  if (turn.now < recovery_->not_before) return;
  find_restore(turn);
}

// Its owners, in whatever process they are now; after a while whoever is there.
bool Job::regather_ps(Turn& turn, std::string& missing) {
  const auto add = [&missing](const std::string& what) { missing += (missing.empty() ? "" : ", ") + what; };
  bool all = !owners_.empty();
  for (const Member& ps : holders()) {
    const Task* task = turn.tasks.find(ps.task);
    if (task != nullptr && task->is_there() && task->connected) continue;
    all = false;
    add(to_string(ps.task));
  }
  if (all) {
    for (Owner& owner : owners_) {
      const Task& task = *turn.tasks.find(owner.ps.task);
      owner = Owner{task.member, task.hello.address};
    }
    return true;
  }
  if (turn.now - recovery_->began < setup_.timeouts.silent_ps) return false;
  const std::vector<Owner> before = owners_;
  const Layout layout_before = layout_;
  if (place_on_all(turn.tasks)) return true;
  owners_ = before;
  layout_ = layout_before;
  return false;
}

bool Job::regather_workers(Turn& turn, std::string& missing) {
  const auto add = [&missing](const std::string& what) { missing += (missing.empty() ? "" : ", ") + what; };
  std::vector<Member> ready;
  std::set<TaskId> tasks;
  for (const auto& [id, task] : turn.tasks.all()) {
    if (id.role != Role::kWorker || !task.is_there() || !task.connected) continue;
    if (prepared_.count(task.member) != 0) {
      ready.push_back(task.member);
      tasks.insert(id);
    } else {
      invite(turn, task.member);
    }
  }
  if (waits_for_lost()) {
    std::vector<Member> ranked;
    for (const TaskId rank : ranks_) {
      if (tasks.count(rank) == 0) add(to_string(rank));
      for (const Member& member : ready)
        if (member.task == rank) ranked.push_back(member);
    }
    if (ranked.size() < ranks_.size()) return false;
    roster_.members = ranked;
    return true;
  }
  const std::size_t least = std::max<std::size_t>(config().job.min_workers, 1);
  if (ready.size() < least) {
    add(std::to_string(least - ready.size()) + (ready.size() + 1 == least ? " more worker" : " more workers"));
    return false;
  }
  roster_.members = ready;
  return true;
}

void Job::find_restore(Turn& turn) {
  workers_ = roster_.members;
  token_ = token_ * 0x9e3779b97f4a7c15u + turn.term.value + 1;
  if (!takes_checkpoints()) {
    restore_.reset();
    return begin_generation(turn);
  }
  stage_ = Stage::kFind;
  deadline_ = turn.now + setup_.timeouts.setup;
  ask_newest(turn);
}

// ---- the chief was away

// The tasks go on with what they hold; the chief waits until they have said hello.
void Job::take_up(Turn& turn, const JournaledJob& journaled) {
  const JobState state = journaled.state;
  state_ = state;
  reason_ = journaled.reason;
  newest_ = journaled.checkpoint;
  newest_at_ = turn.now;
  described_ = journaled.described;
  generation_ = journaled.generation.generation;
  recoveries_ = journaled.generation.recoveries;
  before_ = journaled.generation.before;
  heard_pacer_ = false;
  // At least. A checkpoint of a generation before may be beyond it: damaged, it wasn't gone on from.
  const bool is_of_this = newest_ && newest_->generation == generation_;
  pacer_report_.global_step = is_of_this ? newest_->step : journaled.generation.restore_step;
  const bool is_ending = state == JobState::kStopping;
  if (!journaled.is_training || !described_) {
    if (is_ending) return close(turn, JobState::kStopped, "the chief was restarted while the job ended");
    // No step is lost by beginning again.
    stage_ = Stage::kGather;
    deadline_ = gather_until_ = turn.now + setup_.timeouts.setup;
    described_.reset();
    reason_ = "the chief was restarted: gathers its tasks again";
    return;
  }
  opened_ = true;
  stopping_ = is_ending;
  end_reason_ = journaled.reason;
  owners_ = journaled.generation.owners;
  token_ = journaled.generation.token;
  roster_ = journaled.roster;
  workers_ = roster_.members;
  first_workers_ = static_cast<std::uint32_t>(journaled.generation.roster.members.size());
  prepared_ = std::set<Member>(workers_.begin(), workers_.end());
  unfinished_ = std::set<Member>(workers_.begin(), workers_.end());
  if (waits_for_lost())
    for (const Member& worker : journaled.generation.roster.members) ranks_.push_back(worker.task);
  reclaimed_grants_ = journaled.grants;
  if (journaled.generation.restore_path != "")
    restore_ =
        RestorePoint{journaled.generation.restore_path, Generation(), journaled.generation.restore_step, {}, 0, {}};
  Result<Layout> layout = place(described_->model, config().job.placement, static_cast<std::uint32_t>(owners_.size()));
  if (!layout) return fail(turn, layout.error(), std::nullopt);
  layout_ = std::move(*layout);
  stage_ = Stage::kReclaim;
  deadline_ = turn.now + 2 * setup_.timeouts.silent;
  progress_at_ = turn.now;
  if (takes_checkpoints()) ask_newest(turn);
  if (config().checkpoint.every_steps != 0) next_due_ = config().checkpoint.every_steps;
  tell(turn, "taken_up", 1, "a new chief waits for the job's tasks");
}

// One of its tasks is back; it counts if it still holds the generation.
void Job::reclaim(Turn& turn, const TaskHello& hello) {
  if (DISTTRAIN_MUTANT(kNoRollbackOfSurvivors))
    for (const Member& member : members())
      if (member.task == hello.member.task) reclaimed_.insert(member);
  const std::vector<Member> ps = holders();
  const auto was_replaced = [&hello](const Member& owner) {
    return owner.task == hello.member.task && owner.incarnation != hello.member.incarnation;
  };
  if (std::any_of(ps.begin(), ps.end(), was_replaced) && hello.job.value == 0)
    return recover(turn, to_string(hello.member.task) + ": it was restarted while the chief was away",
                   hello.member.task);
  if (hello.job != id() || hello.generation != generation_ || !uses(hello.member)) return;
  reclaimed_.insert(hello.member);
  // Workers that have marked their channels for the chief before would wait for those that never heard of it.
  if (is_owner(hello.member))
    send(turn, hello.member.task, AbandonCheckpoint{id(), generation_, turn.term.value << 32});
  if (!awaited_.empty()) repeat_ps_requests(turn, hello.member);
  finish_reclaim(turn);
}

void Job::finish_reclaim(Turn& turn) {
  const auto is_missing = [this](const Member& member) { return reclaimed_.count(member) == 0; };
  const std::vector<Member> ps = holders();
  const bool all =
      std::none_of(ps.begin(), ps.end(), is_missing) && std::none_of(workers_.begin(), workers_.end(), is_missing);
  if (!awaited_.empty()) {
    if (turn.now < *deadline_) return;
    return recover(turn, to_string(pacer().task) + ": it heartbeats, but didn't say where the job is", pacer().task);
  }
  if (!all && turn.now < *deadline_) return;
  for (const Member& member : ps)
    if (is_missing(member))
      return recover(turn, to_string(member.task) + ": it was lost while the chief was away", member.task);
  std::vector<Member> members = roster_.members;
  for (const Member& worker : roster_.members) {
    if (!is_missing(worker)) continue;
    // It lives but holds nothing: the order to open went down with the former chief.
    const Task* task = turn.tasks.find(worker.task);
    if (turn.tasks.is_current(worker) && task->connected && task->hello.job.value == 0 &&
        task->heartbeat.job.value == 0) {
      joining_[worker] = turn.now;  // once the pacer has said where the job is
      continue;
    }
    lost_.insert(worker);
    unfinished_.erase(worker);
    prepared_.erase(worker);
    if (!waits_for_lost()) std::erase(members, worker);
    tell(turn, kWorkerLost, 2, to_string(worker.task) + " was lost while the chief was away", worker.task);
  }
  // The pacer says where the job is. In sync what was lent before is void by this roster.
  const std::vector<Member> gone(lost_.begin(), lost_.end());
  change_roster(turn, std::move(members), std::nullopt);
  may_lend_ = false;
  for (const Member& worker : gone) fence(turn, worker, turn.last_ticket);
  evaluator_.reset();
  choose_evaluator(turn);
  await({pacer()}, turn.now + setup_.timeouts.silent_ps);
  if (state_ == JobState::kPaused) set_state(turn, JobState::kRunning, "the chief is back");
  for (const Member& worker : unfinished_) {
    send(turn, worker.task, StartJob{id(), generation_});
    send(turn, worker.task, PauseJob{id(), generation_, false, "the chief is back"});
    if (stopping_) send(turn, worker.task, StopJob{id(), generation_});
  }
  tell(turn, "reclaimed", 1,
       "a new chief goes on with it: " + std::to_string(unfinished_.size()) + " workers, " + std::to_string(ps.size()) +
           " ps");
}

}  // namespace disttrain::chiefd
