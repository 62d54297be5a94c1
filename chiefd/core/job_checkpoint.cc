// A job's checkpoints, from the chief's side: when one is due, what each is asked in turn, what becomes of it. See
// job.h and common/messages/checkpoint.h.
#include <algorithm>
#include <utility>

#include "chiefd/core/job.h"

#include "common/mutant.h"

namespace disttrain::chiefd {
namespace {

// A whole attempt; a disk may be slow.
constexpr int kLongestAttempt = 600;  // heartbeat timeouts
constexpr int kLongestSaveWait = 20;  // likewise, until the attempt begins that a client asked for
// The last checkpoint is worth waiting for somebody who makes room: the parameters are safe at the ps tasks meanwhile.
constexpr int kFinalPatience = 5;  // setup timeouts
// sync: the order for a cut at a step is given when the step is so near.
constexpr double kSecondsAhead = 0.5;

}  // namespace

void Job::folder_work(Turn& turn, Ticket ticket, decltype(FolderWork::work) work) {
  turn.actions.emplace_back(std::in_place_type<FolderWork>, id(), ticket, std::move(work));
}

void Job::save(Turn& turn, ClientId client) {
  const auto refuse = [&](ErrorCode code, const std::string& why) {
    turn.actions.push_back(AnswerClient{client, Refused{code, "job " + name() + ": " + why}});
  };
  if (!takes_checkpoints())
    return refuse(ErrorCode::kConfig, "it takes no checkpoints: checkpoint.directory isn't set");
  if (stage_ != Stage::kTrain || state_ != JobState::kRunning)
    return refuse(ErrorCode::kTemporary, "it is " + std::string(to_string(state_)) + ": " + reason_);
  if (!is_folder_open_)
    return refuse(ErrorCode::kTemporary, folder_error_.empty()
                                             ? config().checkpoint.directory + " is still being opened"
                                             : "no use of " + config().checkpoint.directory + ": " + folder_error_);
  if (savers_.empty()) saves_until_ = turn.now + setup_.timeouts.silent * kLongestSaveWait;
  savers_.push_back(client);
  next_try_ = turn.now;
  advance_attempt(turn);
}

// A client waits for the attempt to begin, through a short pause too, but not for ever.
void Job::review_savers(Turn& turn) {
  if (attempt_) saves_until_ = turn.now + setup_.timeouts.silent * kLongestSaveWait;
  if (turn.now < saves_until_) return;
  for (const ClientId client : std::exchange(savers_, {}))
    turn.actions.push_back(
        AnswerClient{client, Refused{ErrorCode::kTemporary, "job " + name() + ": no checkpoint could begin; it is " +
                                                                std::string(to_string(state_)) + ": " + reason_}});
}

bool Job::is_checkpoint_due(const Turn& turn, Step& at) const {
  const CheckpointSection& section = config().checkpoint;
  at = Step();
  if (!savers_.empty()) return true;
  if (section.every > Duration::zero() && turn.now - newest_at_ >= section.every) return true;
  if (section.every_steps == 0) return false;
  const double seconds = to_seconds(pacer_report_.training);
  const double rate = seconds > 0 ? static_cast<double>(pacer_report_.measured_steps) / seconds : 0.0;
  const auto ahead = is_sync() ? static_cast<std::uint64_t>(rate * kSecondsAhead) : 0;
  at = is_sync() ? Step(next_due_) : Step();
  return pacer_report_.global_step.value + ahead >= next_due_ && pacer_report_.global_step.value > 0;
}

void Job::set_next_due(Step after) {
  const std::uint64_t every = config().checkpoint.every_steps;
  if (every != 0) next_due_ = (after.value / every + 1) * every;
}

void Job::advance_attempt(Turn& turn) {
  if (attempt_) {
    // Files that are still being written may take as long as they need.
    if (turn.now >= std::max(attempt_->deadline, newest_work(turn.tasks, holders()) + setup_.timeouts.setup))
      return abandon_attempt(turn, "it took too long", true);
    if (unfinished_.empty()) cut_now(turn);
    return order_cut(turn);
  }
  if (!takes_checkpoints() || !is_folder_open_ || turn.now < next_try_) return;
  if (stage_ == Stage::kFinalCut) return final_cut(turn);
  if (stage_ != Stage::kTrain || !joining_.empty() || !may_lend_ || is_saved_) return;
  Step at;
  if (leaving_owner(turn.tasks)) return silent_ps_.empty() ? begin_attempt(turn, at) : void();
  if (state_ != JobState::kRunning || !is_checkpoint_due(turn, at)) return;
  // Who evaluates marks its channels late, and the others would wait for it.
  const bool evaluates = std::any_of(unfinished_.begin(), unfinished_.end(), [&turn](const Member& worker) {
    const Task* task = turn.tasks.find(worker.task);
    return task != nullptr && task->heartbeat.phase == Phase::kEvaluate;
  });
  if (evaluates && !is_sync() && savers_.empty()) return;
  begin_attempt(turn, at);
}

void Job::begin_attempt(Turn& turn, Step at) {
  last_attempt_ = std::max(last_attempt_, turn.term.value << 32) + 1;
  Attempt attempt;
  attempt.number = last_attempt_;
  attempt.at = at;
  attempt.holds = leaving_owner(turn.tasks).has_value();
  attempt.ticket = turn.next_ticket();
  attempt.began = turn.now;
  attempt.deadline = turn.now + setup_.timeouts.silent * kLongestAttempt;
  attempt_ = std::move(attempt);
  folder_work(turn, attempt_->ticket, BeginAttempt{generation_, attempt_->number});
}

// What is in the folder, which is opened first where it isn't open yet.
void Job::ask_newest(Turn& turn) {
  find_again_.reset();
  folder_asked_ = turn.now;
  stage_ticket_ = turn.next_ticket();
  const std::string committed = newest_ ? newest_->path : "";
  if (is_folder_open_) return folder_work(turn, stage_ticket_, FindNewest{mark_, committed});
  const bool must_be_empty = config().checkpoint.restore == Restore::kNone && generation_.value == 0;
  folder_work(turn, stage_ticket_, OpenFolder{config().checkpoint.directory, name(), must_be_empty, mark_, committed});
}

void Job::on_newest(Turn& turn, const Result<FolderAnswer>& answer) {
  if (is_closing() || is_final(state_)) return;
  const bool is_waited_for = stage_ == Stage::kFolder || stage_ == Stage::kFind || stage_ == Stage::kFinalCut;
  if (!answer) return on_newest_failed(turn, answer.error(), is_waited_for);
  is_folder_open_ = true;
  folder_error_.clear();
  folder_mark_ = answer->mark;
  folder_generation_ = std::max(folder_generation_, answer->newest_generation);
  note_broken(turn, answer->broken);
  if (answer->newest) figures_.bytes = answer->newest->bytes;
  if (!is_waited_for) return;
  deadline_.reset();
  if (stage_ == Stage::kFinalCut) return final_cut(turn);
  // Who sets checkpoint.restore = "none" doesn't want those of before.
  const bool had_some = newest_ || (!answer->broken.empty() && config().checkpoint.restore != Restore::kNone);
  if (!answer->newest && had_some) {
    Error error = nothing_left(*answer);
    newest_.reset();
    return fail(turn, std::move(error), std::nullopt);
  }
  restore_ = answer->newest;
  if (restore_) newest_ = CheckpointRecord{id(), restore_->generation, restore_->step, restore_->path};
  if (stage_ == Stage::kFolder) return find_init(turn);
  if (Status status = check_restore(); !status) return fail(turn, status.error(), std::nullopt);
  begin_generation(turn);
}

// Why it hasn't been read, at a deadline. `within`: " for 120 s". An error of before says nothing of a request that
// doesn't come back.
std::string Job::folder_problem(Instant now, const std::string& within) const {
  const bool hangs = !find_again_ && now - folder_asked_ > setup_.timeouts.silent;
  if (!folder_error_.empty() && !hangs) return "no use of its checkpoints' folder" + within + ": " + folder_error_;
  return config().checkpoint.directory + " hasn't been read" + within + ": does its file system hang?" +
         (folder_error_.empty() ? "" : " Before that: " + folder_error_);
}

// To begin anew would throw away what was promised to be kept, and maybe for a file that somebody has a copy of.
Error Job::nothing_left(const FolderAnswer& answer) const {
  std::string what = answer.broken.empty() ? newest_->path + " is gone" : answer.broken.back();
  if (!damage_.empty()) what = damage_;
  const std::string folder = config().checkpoint.directory + "/" + name();
  return Error{ErrorCode::kData, "no checkpoint in " + folder + " can be used any more (" + what +
                                     "): put a good copy of one there and submit the job again to go on from it; to "
                                     "begin anew, set checkpoint.restore to \"none\""};
}

// A disk that is full or fails may do better in a while: it is asked again each second, and the stage's deadline bounds
// the wait. A folder that isn't there, or not ours, is said at once to whoever has just submitted the job; one that was
// in use may come back.
void Job::on_newest_failed(Turn& turn, const Error& error, bool is_waited_for) {
  const bool may_pass = error.code == ErrorCode::kFailed || stage_ != Stage::kFolder || generation_.value != 0;
  if (is_waited_for && !may_pass) return fail(turn, error, std::nullopt);
  const bool is_restore = stage_ == Stage::kFolder || stage_ == Stage::kFind;
  if (!is_restore) ++figures_.failures;
  if (may_pass) find_again_ = turn.now + std::chrono::seconds(1);
  const bool is_new = std::exchange(folder_error_, error.message) != error.message;
  if (is_waited_for) reason_ = "waits for its checkpoints: " + error.message;
  if (!is_new) return;
  tell(turn, "checkpoint_failed", 2,
       (is_waited_for ? "waits for the folder of its checkpoints: " : "no checkpoints can be taken: ") + error.message);
}

void Job::on_folder(Turn& turn, const FolderDone& done) {
  if (done.ticket == stage_ticket_) {
    if (stage_ == Stage::kInit) return on_init(turn, done.answer);
    return on_newest(turn, done.answer);
  }
  if (!attempt_ || done.ticket != attempt_->ticket) return;
  if (!done.answer) return abandon_attempt(turn, done.answer.error().message, true);
  if (attempt_->phase == Attempt::Phase::kCommit) return on_committed(turn, *done.answer);
  attempt_->phase = Attempt::Phase::kPrepare;
  attempt_->folder = done.answer->path;
  for (const Member& ps : holders()) {
    attempt_->owed.insert(ps);
    send(turn, ps.task, PrepareCheckpoint{id(), generation_, attempt_->number, done.answer->path, attempt_->holds});
  }
}

// Where nobody makes steps, the one that the cut waits for doesn't come; and who would join waits for the cut.
void Job::cut_now(Turn& turn) {
  if (attempt_->at == Step()) return;
  attempt_->at = Step();
  if (is_sync() && attempt_->phase == Attempt::Phase::kCut)
    send(turn, pacer().task, TakeCut{id(), generation_, attempt_->number, attempt_->at});
}

void Job::on_prepared(Turn& turn, const Member& from, const CheckpointPrepared& prepared) {
  if (!attempt_ || attempt_->phase != Attempt::Phase::kPrepare || prepared.attempt != attempt_->number) return;
  attempt_->owed.erase(from);
  order_cut(turn);
}

// Who has begun to join meanwhile couldn't mark channels that it hasn't opened, and the shards would wait for it.
void Job::order_cut(Turn& turn) {
  if (attempt_->phase != Attempt::Phase::kPrepare || !attempt_->owed.empty()) return;
  if (!is_sync() && !joining_.empty()) return;
  attempt_->phase = Attempt::Phase::kCut;
  if (is_sync())
    send(turn, pacer().task, TakeCut{id(), generation_, attempt_->number, attempt_->at});
  else
    send_to_workers(turn, MarkChannels{id(), generation_, attempt_->number});
  commit_attempt(turn);
}

void Job::on_written(Turn& turn, const ShardWritten& written) {
  if (!attempt_ || written.attempt != attempt_->number) return;
  attempt_->written[written.shard] = written;
  commit_attempt(turn);
}

// Where no worker is left to mark, a shard may have cut before another has its room.
void Job::commit_attempt(Turn& turn) {
  if (attempt_->phase != Attempt::Phase::kCut || attempt_->written.size() < owners_.size()) return;
  std::vector<Member> living = roster_.members;
  std::erase_if(living, [this](const Member& worker) { return lost_.count(worker) != 0; });
  if (const auto problem = difference(attempt_->written, living))
    return abandon_attempt(turn, "the shards' copies differ: " + *problem, true);
  if (!attempt_->written.begin()->second.pacer) return abandon_attempt(turn, "the pacer's copy lacks its ledger", true);
  attempt_->phase = Attempt::Phase::kCommit;
  attempt_->commit_began = turn.now;
  attempt_->ticket = turn.next_ticket();
  CommitAttempt commit{config(),    setup_.submission.toml, layout_, described_->train_records,
                       generation_, attempt_->number,       {}};
  for (const auto& [shard, entry] : attempt_->written) commit.shards.push_back(entry);
  if (DISTTRAIN_MUTANT(kCursorOfAnotherStep)) commit.shards.front().pacer = pacer_report_;
  folder_work(turn, attempt_->ticket, std::move(commit));
}

void Job::on_committed(Turn& turn, const FolderAnswer& answer) {
  const Attempt attempt = std::move(*attempt_);
  attempt_.reset();
  failed_attempts_ = 0;
  attempt_error_.clear();
  const Step step = attempt.written.begin()->second.entry.version;
  if (!newest_ || step > newest_->step) fruitless_ = 0;
  newest_ = CheckpointRecord{id(), generation_, step, answer.path};
  newest_at_ = attempt.began;
  turn.persist(*newest_);
  set_next_due(step);
  Duration cut{};
  Duration parked{};
  Duration writing{};
  std::uint64_t bytes = 0;
  for (const auto& [shard, written] : attempt.written) {
    cut = std::max(cut, written.cut);
    parked = std::max(parked, written.parked);
    writing = std::max(writing, written.writing);
    bytes += written.file.bytes;
  }
  figures_.cut.observe(to_seconds(cut));
  figures_.park.observe(to_seconds(parked));
  figures_.write.observe(to_seconds(writing));
  figures_.commit.observe(to_seconds(turn.now - attempt.commit_began));
  figures_.bytes = bytes;
  committed_at_ = turn.now;
  const auto ms = [](Duration d) {
    return std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(d).count() / 1000.0).substr(0, 6) +
           " ms";
  };
  tell(turn, kCheckpointTaken, 1,
       "checkpoint of step " + std::to_string(step.value) + ": " + answer.path + ", " + std::to_string(bytes) +
           " bytes; the largest of each shard: copy " + ms(cut) + " at a time, parking " + ms(parked) + ", writing " +
           ms(writing) + "; whole " + ms(turn.now - attempt.began));
  if (!answer.warning.empty()) tell(turn, "checkpoint_retention", 2, answer.warning);
  for (const ClientId client : std::exchange(savers_, {}))
    turn.actions.push_back(AnswerClient{client, CheckpointSaved{answer.path, step}});
  if (stage_ == Stage::kFinalCut) return final_cut(turn);
  is_saved_ = attempt.holds;
  join_prepared(turn);
}

// The member has a new connection: what it was asked over the one before may be lost. What it has said of the attempt
// it says again by itself.
void Job::repeat_attempt(Turn& turn, const Member& member) {
  const bool trains = stage_ == Stage::kTrain || stage_ == Stage::kSettle || stage_ == Stage::kFinalCut;
  if (!trains || !takes_checkpoints()) return;
  const bool is_cut = attempt_ && attempt_->phase == Attempt::Phase::kCut;
  if (!is_owner(member)) {
    if (is_cut && !is_sync() && is_in_roster(member))
      send(turn, member.task, MarkChannels{id(), generation_, attempt_->number});
    return;
  }
  // A hold that isn't ended would last for ever: the end of the attempt before may be what was lost.
  const auto abandon = [&](std::uint64_t number) {
    send(turn, member.task, AbandonCheckpoint{id(), generation_, number});
  };
  if (!attempt_) {
    if (!is_saved_) abandon(std::max(last_attempt_, turn.term.value << 32));
    return;
  }
  switch (attempt_->phase) {
    case Attempt::Phase::kBegin:
      return abandon(attempt_->number - 1);
    case Attempt::Phase::kPrepare:
      if (attempt_->owed.count(member) != 0)
        send(turn, member.task,
             PrepareCheckpoint{id(), generation_, attempt_->number, attempt_->folder, attempt_->holds});
      return;
    case Attempt::Phase::kCut:
      if (is_sync() && member == pacer())
        send(turn, member.task, TakeCut{id(), generation_, attempt_->number, attempt_->at});
      return;
    case Attempt::Phase::kCommit:
      if (!attempt_->holds) abandon(attempt_->number);
      return;
  }
}

bool Job::is_owed_by(const Member& ps) const {
  if (!attempt_ || attempt_->phase == Attempt::Phase::kCommit) return false;
  for (std::uint32_t s = 0; s < owners_.size(); ++s)
    if (owners_[s].ps == ps && attempt_->written.count(ShardId(s)) == 0) return true;
  return false;
}

void Job::interrupt_attempt(Turn& turn, const std::string& why) {
  if (!attempt_) return;
  if (attempt_->phase != Attempt::Phase::kCommit) return abandon_attempt(turn, why);
  attempt_->holds = false;
  for (const Member& ps : holders()) send(turn, ps.task, AbandonCheckpoint{id(), generation_, attempt_->number});
}

// The checkpoint before stays, and training goes on.
void Job::abandon_attempt(Turn& turn, const std::string& why, bool fails) {
  if (!attempt_) return;
  const Attempt attempt = std::move(*attempt_);
  attempt_.reset();
  for (const Member& ps : holders()) send(turn, ps.task, AbandonCheckpoint{id(), generation_, attempt.number});
  if (fails) ++figures_.failures;
  if (fails) ++failed_attempts_;
  if (fails) attempt_error_ = why;
  if (fails && attempt.holds) ++failed_saves_;
  next_try_ = turn.now + std::max<Duration>(std::chrono::seconds(1), back_off(failed_attempts_));
  tell(turn, "checkpoint_failed", 2, "a checkpoint was given up, the one before stays: " + why);
  for (const ClientId client : std::exchange(savers_, {}))
    turn.actions.push_back(AnswerClient{client, Refused{ErrorCode::kFailed, "the checkpoint was given up: " + why}});
  if (stage_ != Stage::kFinalCut) return;
  if (fails) reason_ = (stopping_ ? end_reason_ + "; " : "") + "waits to take the last checkpoint: " + why;
  if (!fails || turn.now < final_until_) return;
  fail_final_cut(turn, why);
}

void Job::fail_final_cut(Turn& turn, const std::string& why) {
  fail(turn,
       Error{ErrorCode::kFailed, "trained " + std::to_string(pacer_report_.global_step.value) +
                                     " steps, but the last checkpoint couldn't be taken: " + why},
       std::nullopt);
}

void Job::note_broken(Turn& turn, const std::vector<std::string>& broken) {
  for (const std::string& what : broken) {
    warn("a checkpoint can't be used: " + what);
    tell(turn, "checkpoint_broken", 3, "a checkpoint can't be used: " + what);
  }
}

// After the last step: what was learnt is kept before anything else is done with it.
void Job::final_cut(Turn& turn) {
  const bool is_taken = newest_ && newest_->generation == generation_ && newest_->step == pacer_report_.global_step;
  const bool is_same = restore_ && restore_->step == pacer_report_.global_step;
  if (!takes_checkpoints() || !config().checkpoint.at_end || is_taken || is_same) return evaluate(turn);
  if (stage_ != Stage::kFinalCut) {
    stage_ = Stage::kFinalCut;
    failed_attempts_ = 0;
    final_until_ = turn.now + kFinalPatience * setup_.timeouts.setup;
    deadline_.reset();
    reason_ = (stopping_ ? end_reason_ + "; " : "") + "takes the last checkpoint";
    // The next tick sees whether it was of the last step.
    if (attempt_) return cut_now(turn);
  }
  if (is_folder_open_) return begin_attempt(turn, Step());
  deadline_ = final_until_;
  ask_newest(turn);
}

}  // namespace disttrain::chiefd
