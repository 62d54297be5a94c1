// A ps is silent, or lost: see job.h.
//
// A rollback is a start with another generation: all shards are made anew, from one checkpoint, by whoever is there;
// workers open the job anew; what belongs to the generation before is refused by its number.
#include <algorithm>

#include "chiefd/core/job.h"

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
  const Loss loss = finding.was_told_to_end ? Loss::kLeft : Loss::kCounts;
  const bool has_trained = stage_ == Stage::kTrain || stage_ == Stage::kReclaim || stage_ == Stage::kSettle ||
                           stage_ == Stage::kFinalCut || stage_ == Stage::kEvaluate;
  if (stage_ == Stage::kClose) {
    if (answered(member)) finish_closing(turn);
    return;
  }
  if (is_owner(member)) {
    if (is_silent && has_trained) return pause(turn, finding);
    return recover(turn, {member.task, finding.why}, loss);
  }
  if (stage_ == Stage::kTrain) return lose_worker(turn, member, finding.why, loss);
  if (stage_ == Stage::kReclaim) {
    if (finding.was_told_to_end) told_to_end_.insert(to_string(member.task));
    if (!awaited_.empty()) return lose_worker(turn, member, finding.why, loss);
    reclaimed_.erase(member);  // seen at its end
    return;
  }
  if (!has_trained) return recover(turn, {member.task, finding.why}, loss);
  lost_.insert(member);
  // The last cut doesn't wait for its marks.
  if (stage_ == Stage::kSettle || stage_ == Stage::kFinalCut) {
    std::vector<Member> others = roster_.members;
    std::erase(others, member);
    change_roster(turn, std::move(others), std::nullopt);
    interrupt_attempt(turn, to_string(member.task) + " is lost");
  }
  if (stage_ == Stage::kEvaluate && awaited_.count(member) != 0) evaluate(turn, loss);
}

// ---- silence

Duration Job::patience_with_ps(Instant silent_since) const {
  const Duration age = silent_since - newest_at_;
  return std::clamp(age, setup_.timeouts.silent_ps, setup_.timeouts.silent * kMostPatience);
}

void Job::pause(Turn& turn, const Finding& finding) {
  silent_ps_[finding.member.task] = Silence{turn.now};
  if (is_owed_by(finding.member)) abandon_attempt(turn, to_string(finding.member.task) + " is silent");
  const std::string reason = to_string(Cause{finding.member.task, finding.why}) + "; waiting for it to return";
  pause_workers(turn, true, reason);
  set_state(turn, JobState::kPaused, reason);
}

void Job::resume(Turn& turn, const std::string& why) {
  progress_at_ = turn.now;
  for (Fence& fence : fences_) fence.deadline = turn.now + answer_limit();
  give_pacer_time(turn);
  if ((state_ != JobState::kPaused && !stopping_) || holds_workers(turn.tasks)) return;
  pause_workers(turn, false, why);
  const bool trains = (stage_ == Stage::kTrain || stage_ == Stage::kReclaim) && !stopping_;
  if (trains) return set_state(turn, JobState::kRunning, why);
  if (stopping_) return set_state(turn, JobState::kStopping, end_reason_ + "; " + why);
  set_state(turn, JobState::kEvaluating, why);
}

// ---- rollback

void Job::recover(Turn& turn, const Cause& cause, Loss loss) {
  if (is_final(state_) || stage_ == Stage::kClose || stage_ == Stage::kQueued) return;
  if (stopping_)
    return close(turn, JobState::kStopped, end_reason_ + "; " + to_string(cause) + " before the workers had ended");
  const bool counts = loss == Loss::kCounts;
  const std::size_t times = counts ? count_loss(turn, owners_.empty() ? kLostAtStart : kLossCounted, cause) : 0;
  if (times > config().job.max_restarts)
    return fail(turn, too_many_losses(ErrorCode::kFailed, cause, times), cause.task);
  // Nothing was placed yet: no generation to roll back.
  if (owners_.empty()) {
    awaited_.clear();
    stage_ = Stage::kGather;
    deadline_ = gather_until_;
    return gather(turn);
  }
  if (!counts)
    tell(turn, kRollsBack, loss == Loss::kLink ? 2 : 1,
         std::string(loss == Loss::kLink ? "a link failed" : "it was told to end") +
             ", which counts as no loss: " + to_string(cause),
         cause.task, cause.reason);
  const Step reached = std::max(pacer_report_.global_step, recovery_ ? recovery_->step : Step());
  const bool is_known = heard_pacer_ && (!recovery_ || recovery_->is_step_known);
  const Instant began = recovery_ ? recovery_->began : turn.now;
  const Instant gathers_since = recovery_ ? recovery_->gathers_since : turn.now;
  recovery_ = Recovery{cause, began, gathers_since, turn.now + back_off(fruitless_), reached, is_known};
  roll_back(turn, loss);
}

// What recovery_ is for has been counted, if it is a loss.
void Job::roll_back(Turn& turn, Loss loss) {
  ++recoveries_;
  if (loss != Loss::kLeft) ++fruitless_;
  drop_generation(turn);
  pause_workers(turn, true, to_string(recovery_->cause));
  stage_ = Stage::kRegather;
  deadline_ = turn.now + setup_.timeouts.setup;
  set_state(turn, JobState::kPaused, to_string(recovery_->cause) + "; recovers");
  regather(turn);
}

// How many there were within the window, this one too. Told, so that the next chief knows of it: recall().
std::size_t Job::count_loss(Turn& turn, const std::string& kind, const Cause& cause) {
  const std::size_t times = restarts_.note(turn.now, config().job.restart_window);
  tell(turn, kind, 2,
       "loss number " + std::to_string(times) + " within job.restart_window, of at most " +
           std::to_string(config().job.max_restarts) + ": " + to_string(cause),
       cause.task, cause.reason);
  return times;
}

Error Job::too_many_losses(ErrorCode code, const Cause& cause, std::size_t times) const {
  return Error{code, cause.reason + "; it is the loss number " + std::to_string(times) +
                         " within job.restart_window, and job.max_restarts is " +
                         std::to_string(config().job.max_restarts)};
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
  told_to_stop_.clear();
  stopped_.clear();
  is_saved_ = false;
  failed_saves_ = 0;
  lending_ = Lending();
  may_lend_ = false;
  early_requests_.clear();
  reclaimed_grants_.clear();
  lost_clocks_.clear();
  // Who was silent and is back may be of the next generation.
  lost_.clear();
}

void Job::regather(Turn& turn) {
  std::string problem;
  const bool has_ps = regather_ps(turn, problem);
  const bool has_workers = regather_workers(turn);
  if (!has_ps || !has_workers) {
    recovery_->shortage = "waiting for " + to_string(waits_for(turn.tasks, turn.now));
    if (!has_ps && !problem.empty()) recovery_->shortage += " (the others can't take its shards: " + problem + ")";
    if (!has_workers && !waits_for_lost())
      for (const auto& [task, why] : kept_out_) recovery_->shortage += "; " + to_string(task) + " " + why;
    if (const std::string links = broken_links_text(turn.now); !links.empty()) recovery_->shortage += "; " + links;
    reason_ = to_string(recovery_->cause) + "; " + recovery_->shortage;
    return;
  }
  if (!regather_memory(turn)) return;
  if (turn.now < recovery_->not_before) return;
  find_restore(turn);
}

// Its owners, in whatever process they are now; after a while whoever is there.
bool Job::regather_ps(Turn& turn, std::string& problem) {
  const auto take_them = [&] {
    for (Owner& owner : owners_) {
      const Task& task = *turn.tasks.find(owner.ps.task);
      owner = Owner{task.member, task.hello.address};
    }
    return true;
  };
  const std::vector<Awaited> missing = missing_ps(turn.tasks);
  if (missing.empty()) return take_them();
  if (turn.now - recovery_->gathers_since < setup_.timeouts.silent_ps) return false;
  const std::vector<Owner> before = owners_;
  const Layout layout_before = layout_;
  const Status placed = place_on_all(turn.tasks, fewest_workers());
  if (placed) return true;
  owners_ = before;
  layout_ = layout_before;
  const bool are_there = std::all_of(missing.begin(), missing.end(),
                                     [](const Awaited& awaited) { return awaited.what == AwaitedFor::kLink; });
  // Two ps tasks that lost each other meet only in another generation.
  const bool lack_peers = are_there && std::none_of(missing.begin(), missing.end(), [&](const Awaited& awaited) {
                            return is_cut_off(turn.tasks, *awaited.task);
                          });
  if (lack_peers) {
    links_.forget_peers();
    return take_them();
  }
  // Nobody can take the place of what most workers don't reach: those that reach it train on.
  if (are_there && can_train_with(turn.tasks)) return take_them();
  problem = placed.error().message;
  return false;
}

// With the owners as they are: those workers suffice that reach all of them.
bool Job::can_train_with(const Tasks& tasks) const {
  if (waits_for_lost()) return false;
  const auto workers = std::count_if(tasks.all().begin(), tasks.all().end(), [this](const auto& entry) {
    return entry.first.role == Role::kWorker && entry.second.takes_work() && reaches_owners(entry.first);
  });
  return static_cast<std::size_t>(workers) >= least_workers();
}

bool Job::regather_workers(Turn& turn) {
  std::map<TaskId, Member> ready;
  for (const auto& [id, task] : turn.tasks.all()) {
    if (id.role != Role::kWorker || !task.takes_work()) continue;
    const std::size_t losses = losses_of(id, turn.now);
    if (losses > config().job.max_restarts && !waits_for_lost()) {
      keep_out(turn, id, lost_too_often(losses));
    } else if (!reaches_owners(id)) {
      // One that is prepared is asked again by invite_again(). What another one answers says what it reaches by now.
      if (prepared_.count(task.member) == 0 && turn.now >= invite_after_[id]) invite(turn, task.member);
    } else if (prepared_.count(task.member) != 0) {
      kept_out_.erase(id);
      ready.emplace(id, task.member);
    } else {
      invite(turn, task.member);
    }
  }
  if (!missing_workers(turn.tasks, turn.now).empty()) return false;
  roster_.members.clear();
  if (waits_for_lost())
    for (const TaskId rank : ranks_) roster_.members.push_back(ready.at(rank));
  else
    for (const auto& [id, member] : ready) roster_.members.push_back(member);
  return true;
}

// Without so many it doesn't train.
std::size_t Job::fewest_workers() const {
  return waits_for_lost() ? ranks_.size() : least_workers();
}

// A ps may be back with less memory, and more workers be there than before. Those for whom there is none stay out, as
// one that would join does.
bool Job::regather_memory(Turn& turn) {
  if (const Status placed = make_places(turn.tasks, fewest_workers()); !placed) {
    recovery_->shortage = "waiting for memory: " + placed.error().message;
    reason_ = to_string(recovery_->cause) + "; " + recovery_->shortage;
    return false;
  }
  while (roster_.members.size() > places_) {
    keep_out(turn, roster_.members.back().task, no_place_for(turn.tasks, roster_.members.size()));
    roster_.members.pop_back();
  }
  return true;
}

void Job::find_restore(Turn& turn) {
  workers_ = roster_.members;
  draw_numbers(turn);
  if (!takes_checkpoints()) {
    restore_.reset();
    return begin_generation(turn);
  }
  stage_ = Stage::kFind;
  deadline_ = turn.now + setup_.timeouts.setup;
  ask_newest(turn);
}

}  // namespace disttrain::chiefd
