// The chief itself was away: what its journal says of the job, and how its tasks are gathered again. See job.h.
#include <algorithm>

#include "chiefd/core/job.h"
#include "chiefd/core/placement.h"

#include "common/mutant.h"

namespace disttrain::chiefd {

// What was lost, and not gone on from, is a recovery that this chief ends.
void Job::recall(Instant now, const std::deque<EventRecord>& events, const EventClocks& clocks) {
  const Duration window = config().job.restart_window;
  bool is_step_known = true;
  for (const EventRecord& event : events) {
    if (event.job != id()) continue;
    const std::optional<Duration> known_age = age_of(event, clocks);
    const Duration age = known_age.value_or(Duration::zero());
    // A loss of unknown age doesn't count: else a clock that was set back would end a job for losses of long ago.
    const bool counts = known_age && age <= window;
    if (counts && (event.kind == kLossCounted || event.kind == kLostAtStart)) restarts_.note(now - age, window);
    // Where it is gone, or another process, it left.
    if (event.kind == kTaskLeaves) told_to_end_.insert(event.task);
    if (event.kind == kTaskJoined) told_to_end_.erase(event.task);
    if (event.kind == kLossCounted || event.kind == kRollsBack) {
      const Step reached = std::max(Step(event.step), recovery_ ? recovery_->step : Step());
      const Instant began = recovery_ ? recovery_->began : now - age;
      recovery_ = Recovery{Cause{parse_task_id(event.task), event.cause.empty() ? event.text : event.cause},
                           began,
                           now,
                           now,
                           reached,
                           is_step_known};
    }
    if (event.kind == kWorkerLost && counts) rejoins_[event.task].note(now - age, window);
    if (event.kind == kRolledBack) recovery_.reset();
    if (event.kind == to_string(JobState::kRunning)) told_to_end_.clear();
    // A checkpoint is due by its time, however often the chief is restarted.
    const bool is_first_start = event.kind == to_string(JobState::kRunning) && !newest_at_.time_since_epoch().count();
    if (event.kind == kCheckpointTaken || is_first_start) newest_at_ = now - age;
    // Until it has heard of the job's pacer a chief knows but its own checkpoints.
    if (event.kind == kTakenUp) is_step_known = false;
    if (event.kind == kReclaimed || event.kind == kRolledBack) is_step_known = true;
  }
}

// What it had come to. Its end was decided, whether its tasks have heard of that or not.
void Job::recall_end(const EndRecord& end) {
  generation_ = end.generation;
  pacer_report_.global_step = end.step;
  pacer_report_.examples = end.examples;
  pacer_report_.training = end.training.time;
  pacer_report_.measured_steps = end.training.steps;
  pacer_report_.measured_examples = end.training.examples;
  pacer_report_.complete_epochs = end.epochs;
  pacer_report_.late = end.late;
  pacer_report_.skipped = end.skipped;
  pacer_report_.staleness = end.staleness;
  loss_ = end.loss;
  steps_at_end_ = end.steps_target;
  evaluation_ = end.evaluation;
  code_ = end.code;
  root_cause_ = end.root_cause;
}

// The tasks go on with what they hold; the chief waits until they have said hello.
void Job::take_up(Turn& turn, const JournaledJob& journaled) {
  const JobState state = journaled.state;
  has_begun_ = true;
  state_ = state;
  reason_ = journaled.reason;
  newest_ = journaled.checkpoint;
  recoveries_ = journaled.generation.recoveries;
  if (journaled.ended) {
    recovery_.reset();
    recall_end(*journaled.ended);
    return close(turn, journaled.ended->state, journaled.ended->reason);
  }
  if (!newest_at_.time_since_epoch().count()) newest_at_ = turn.now;
  described_ = journaled.described;
  generation_ = journaled.generation.generation;
  before_ = journaled.generation.before;
  heard_pacer_ = false;
  // At least. A checkpoint of a generation before may be beyond it: damaged, it wasn't gone on from.
  const bool is_of_this = newest_ && newest_->generation == generation_;
  pacer_report_.global_step = is_of_this ? newest_->step : journaled.generation.restore_step;
  stopping_ = state == JobState::kStopping;
  end_reason_ = journaled.reason;
  init_path_ = journaled.generation.init_path;
  if (!init_path_.empty()) folder_work(turn, turn.next_ticket(), FindInit{init_path_});  // keeps it
  if (generation_.value == 0) recovery_.reset();                                         // nothing was placed yet
  if (waits_for_lost())
    for (const Member& worker : journaled.generation.roster.members) ranks_.push_back(worker.task);
  if (!journaled.is_training && stopping_)
    return close(turn, JobState::kStopped, end_reason_ + "; the chief was restarted before it trained");
  if (!described_ || (!journaled.is_training && !recovery_)) {
    // No step is lost by beginning again.
    stage_ = Stage::kGather;
    deadline_ = gather_until_ = turn.now + setup_.timeouts.setup;
    described_.reset();
    reason_ = "the chief was restarted: gathers its tasks again";
    return;
  }
  opened_ = true;
  owners_ = journaled.generation.owners;
  mark_ = journaled.generation.mark;
  roster_ = journaled.roster;
  workers_ = roster_.members;
  // A chief of a version before wrote none: what it made is not known, so that nobody is added.
  places_ = std::max(journaled.generation.places, static_cast<std::uint32_t>(roster_.members.size()));
  prepared_ = std::set<Member>(workers_.begin(), workers_.end());
  unfinished_ = std::set<Member>(workers_.begin(), workers_.end());
  reclaimed_grants_ = journaled.grants;
  if (journaled.generation.restore_path != "")
    restore_ =
        RestorePoint{journaled.generation.restore_path, Generation(), journaled.generation.restore_step, {}, 0, {}};
  Result<Layout> layout = place(described_->model, config().job.placement, static_cast<std::uint32_t>(owners_.size()));
  if (!layout) return fail(turn, layout.error(), std::nullopt);
  layout_ = std::move(*layout);
  progress_at_ = turn.now;
  tell(turn, kTakenUp, 1, "a new chief waits for the job's tasks");
  // It was lost already. The generation that was to come may be written, and the recovery counted with it.
  if (!journaled.is_training && recoveries_ > 0) --recoveries_;
  if (recovery_ && !stopping_) return roll_back(turn);
  stage_ = Stage::kReclaim;
  reason_ = "a new chief waits for the job's tasks";
  workers_until_ = turn.now + 2 * setup_.timeouts.silent;
  // A ps has as long as one that falls silent in training. A task that heard no end of its link, because the chief's
  // host vanished, dials again only when the chief has been silent for five heartbeat timeouts.
  deadline_ =
      turn.now + (DISTTRAIN_MUTANT(kLatePsLost) ? 2 * setup_.timeouts.silent
                                                : setup_.timeouts.silent_ps + setup_.timeouts.reconnect_longest);
  if (takes_checkpoints()) ask_newest(turn);
  set_next_due(pacer_report_.global_step);
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
    return recover(turn, {hello.member.task, "it was restarted while the chief was away"},
                   told_to_end_.count(to_string(hello.member.task)) == 0 ? Loss::kCounts : Loss::kLeft);
  if (hello.job != id() || hello.generation != generation_ || !uses(hello.member)) return;
  if (is_owner(hello.member)) {
    if (token_ == 0) token_ = hello.token;
    if (hello.token == 0 || hello.token != token_)
      return recover(turn, {hello.member.task, "it holds another secret of the job's channels than others"});
  }
  reclaimed_.insert(hello.member);
  // The workers that the same fault kept away come back at about this time.
  if (is_owner(hello.member)) workers_until_ = turn.now + 2 * setup_.timeouts.silent;
  // Workers that have marked their channels for the chief before would wait for those that never heard of it.
  if (is_owner(hello.member))
    send(turn, hello.member.task, AbandonCheckpoint{id(), generation_, turn.term.value << 32});
  if (!awaited_.empty()) repeat_ps_requests(turn, hello.member);
  finish_reclaim(turn);
}

void Job::finish_reclaim(Turn& turn) {
  const auto is_missing = [this](const Member& member) { return reclaimed_.count(member) == 0; };
  const std::vector<Member> ps = holders();
  const bool has_all_ps = std::none_of(ps.begin(), ps.end(), is_missing);
  const bool has_all = has_all_ps && std::none_of(workers_.begin(), workers_.end(), is_missing);
  if (!awaited_.empty()) {
    if (!hears_both_ways(turn.tasks, pacer())) deadline_ = turn.now + answer_limit();
    if (turn.now < *deadline_) return;
    return recover(turn, {pacer().task, "it heartbeats, but didn't say where the job is"});
  }
  const bool is_ps_time_up = !deadline_ || turn.now >= *deadline_;  // none: it passed while all ps were back
  if (!has_all && (has_all_ps ? turn.now < workers_until_ : !is_ps_time_up)) return;
  for (const Member& member : ps)
    if (is_missing(member))
      return recover(turn, {member.task, "it was lost while the chief was away"},
                     told_to_end_.count(to_string(member.task)) == 0 ? Loss::kCounts : Loss::kLeft);
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
    if (told_to_end_.count(to_string(worker.task)) != 0)
      tell(turn, kWorkerLeft, 1, to_string(worker.task) + " has left while the chief was away", worker.task);
    else
      tell(turn, kWorkerLost, 2, to_string(worker.task) + " was lost while the chief was away", worker.task);
  }
  // The pacer says where the job is. In sync what was lent before is void by this roster.
  const std::vector<Member> gone(lost_.begin(), lost_.end());
  change_roster(turn, std::move(members), std::nullopt);
  may_lend_ = false;
  for (const Member& worker : gone) fence(turn, worker, turn.last_ticket);
  evaluator_.reset();
  choose_evaluator(turn);
  await(turn, {pacer()}, turn.now + answer_limit());
  if (state_ == JobState::kPaused && !holds_workers(turn.tasks))
    set_state(turn, JobState::kRunning, "the chief is back");
  for (const Member& worker : unfinished_) {
    send(turn, worker.task, StartJob{id(), generation_});
    send(turn, worker.task, PauseJob{id(), generation_, holds_workers(turn.tasks), "the chief is back"});
    if (stopping_) send(turn, worker.task, StopJob{id(), generation_});
  }
  tell(turn, kReclaimed, 1,
       "a new chief goes on with it: " + std::to_string(unfinished_.size()) + " workers, " + std::to_string(ps.size()) +
           " ps");
}

}  // namespace disttrain::chiefd
