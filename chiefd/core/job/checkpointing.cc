#include "chiefd/core/job/checkpointing.h"

#include <algorithm>
#include <utility>

#include "chiefd/core/job/parts.h"
#include "common/mutant.h"

namespace disttrain::chiefd {
namespace {

// The limit for a whole attempt. It is long because a disk may be slow.
constexpr int kLongestAttempt = 600;  // heartbeat timeouts

}  // namespace

Checkpointing::Checkpointing(JobParts& parts)
    : setup_(parts.setup),
      stage_(parts.stage),
      condition_(parts.condition),
      events_(parts.events),
      generation_(parts.generation),
      workers_(parts.workers),
      progress_(parts.progress),
      rollbacks_(parts.rollbacks),
      pauses_(parts.pauses),
      work_clock_(parts.work_clock),
      folder_(parts.folder),
      schedule_(parts.schedule),
      stats_(parts.stats),
      savers_(parts.savers),
      evaluators_(parts.evaluators),
      loans_(parts.loans),
      leaving_(parts.leaving),
      membership_(parts.membership),
      training_(parts.training),
      final_checkpoint_(parts.final_checkpoint) {}

void Checkpointing::advance(Turn& turn) {
  if (attempt_) {
    // An attempt may exceed its deadline while a ps makes progress with writing its files.
    const Instant written = work_clock_.newest_work(turn.tasks, generation_.holders()) + setup_.timeouts.setup;
    if (turn.now >= std::max(attempt_->deadline, written)) return abandon(turn, "it took too long", true);
    if (workers_.unfinished().empty()) cut_now(turn);
    return order_cut(turn);
  }
  if (!setup_.takes_checkpoints() || !folder_.is_open() || !schedule_.may_try(turn.now)) return;
  if (stage_.is(Stage::kFinalCut)) return final_checkpoint_.take(turn);
  if (!stage_.is(Stage::kTrain) || !workers_.joining().empty() || !loans_.is_allowed() || schedule_.is_saved()) return;
  if (leaving_.owner(turn.tasks)) return pauses_.is_any_silent() ? void() : begin(turn, Step());
  if (condition_.state() != JobState::kRunning) return;
  const std::optional<Step> at = schedule_.due(turn.now, progress_, savers_.is_any());
  if (!at) return;
  // In async and ssp, a worker can't mark its channels while it evaluates. Until the end of the evaluation the shards
  // couldn't cut, and the other workers would wait. So no attempt begins during an evaluation, unless a client has
  // asked for a checkpoint.
  if (training_.is_evaluating(turn.tasks) && !setup_.is_sync() && !savers_.is_any()) return;
  begin(turn, *at);
}

void Checkpointing::begin(Turn& turn, Step at) {
  last_number_ = std::max(last_number_, turn.term.value << 32) + 1;
  Attempt attempt;
  attempt.number = last_number_;
  attempt.at = at;
  attempt.holds = leaving_.owner(turn.tasks).has_value();
  attempt.ticket = turn.next_ticket();
  attempt.began = turn.now;
  attempt.deadline = turn.now + setup_.timeouts.silent * kLongestAttempt;
  attempt_ = std::move(attempt);
  turn.folder_work(setup_.id, attempt_->ticket, BeginAttempt{generation_.number(), attempt_->number});
}

void Checkpointing::on_folder(Turn& turn, const FolderDone& done) {
  if (!attempt_ || done.ticket != attempt_->ticket) return;
  if (!done.answer) return abandon(turn, done.answer.error().message, true);
  if (attempt_->phase == Attempt::Phase::kCommit) return on_committed(turn, *done.answer);
  attempt_->phase = Attempt::Phase::kPrepare;
  attempt_->folder = done.answer->path;
  for (const Member& ps : generation_.holders()) {
    attempt_->owed.insert(ps);
    turn.send(ps.task,
              PrepareCheckpoint{setup_.id, generation_.number(), attempt_->number, attempt_->folder, attempt_->holds});
  }
}

void Checkpointing::cut_now(Turn& turn) {
  if (attempt_->at == Step()) return;
  attempt_->at = Step();
  if (setup_.is_sync() && attempt_->phase == Attempt::Phase::kCut)
    turn.send(generation_.pacer().task, TakeCut{setup_.id, generation_.number(), attempt_->number, attempt_->at});
}

void Checkpointing::on_prepared(Turn& turn, const Member& from, const CheckpointPrepared& prepared) {
  if (!attempt_ || attempt_->phase != Attempt::Phase::kPrepare || prepared.attempt != attempt_->number) return;
  attempt_->owed.erase(from);
  order_cut(turn);
}

// In async and ssp, the cut waits until every joining worker has opened its channels. Before that a worker can't mark
// its channels, and the shards would wait for its marks.
void Checkpointing::order_cut(Turn& turn) {
  if (attempt_->phase != Attempt::Phase::kPrepare || !attempt_->owed.empty()) return;
  if (!setup_.is_sync() && !workers_.joining().empty()) return;
  attempt_->phase = Attempt::Phase::kCut;
  if (setup_.is_sync())
    turn.send(generation_.pacer().task, TakeCut{setup_.id, generation_.number(), attempt_->number, attempt_->at});
  else
    turn.send_to(workers_.living(), MarkChannels{setup_.id, generation_.number(), attempt_->number});
  commit(turn);
}

void Checkpointing::on_written(Turn& turn, const ShardWritten& written) {
  if (!attempt_ || written.attempt != attempt_->number) return;
  attempt_->written[written.shard] = written;
  commit(turn);
}

void Checkpointing::on_failed(Turn& turn, const Member& from, const CheckpointFailed& failed) {
  if (attempt_ && failed.attempt == attempt_->number) abandon(turn, to_string(from.task) + ": " + failed.reason, true);
}

// If no worker is left to mark, a shard may cut before another ps has reserved its space. So the chief commits only in
// phase kCut, which begins when every ps has reserved its space.
void Checkpointing::commit(Turn& turn) {
  if (attempt_->phase != Attempt::Phase::kCut || attempt_->written.size() < generation_.owners().size()) return;
  if (const auto problem = difference(attempt_->written, workers_.living()))
    return abandon(turn, "the shards' copies differ: " + *problem, true);
  if (!attempt_->written.begin()->second.pacer)
    return abandon(turn, "shard 0, the pacer, reported its file without the ledger", true);
  attempt_->phase = Attempt::Phase::kCommit;
  attempt_->commit_began = turn.now;
  attempt_->ticket = turn.next_ticket();
  CommitAttempt commit{setup_.config(),
                       setup_.submission.toml,
                       generation_.layout(),
                       generation_.described()->train_records,
                       generation_.number(),
                       attempt_->number,
                       {},
                       evaluators_.pinned(),
                       generation_.described()->columns};
  for (const auto& [shard, entry] : attempt_->written) commit.shards.push_back(entry);
  if (DISTTRAIN_MUTANT(kCursorOfAnotherStep)) commit.shards.front().pacer = progress_.report();
  turn.folder_work(setup_.id, attempt_->ticket, std::move(commit));
}

void Checkpointing::on_committed(Turn& turn, const FolderAnswer& answer) {
  const Attempt attempt = std::move(*attempt_);
  attempt_.reset();
  const Step step = attempt.written.begin()->second.entry.version;
  if (!folder_.newest() || step > folder_.newest()->step) rollbacks_.note_advance();
  const CheckpointRecord record{setup_.id, generation_.number(), step, answer.path};
  folder_.set_newest(record);
  turn.persist(record);
  schedule_.note_taken(attempt.began, step);
  stats_.note_committed(attempt, turn.now);
  events_.tell(turn, kCheckpointTaken, 1,
               "checkpoint of step " + std::to_string(step.value) + ": " + answer.path + ", " +
                   describe_costs(attempt, turn.now));
  if (!answer.warning.empty()) events_.tell(turn, "checkpoint_retention", 2, answer.warning);
  if (!answer.program_warning.empty()) events_.tell(turn, "checkpoint_program", 2, answer.program_warning);
  savers_.answer(turn, CheckpointSaved{answer.path, step});
  evaluators_.on_kept(turn, answer);
  evaluators_.advance(turn);
  if (stage_.is(Stage::kFinalCut)) return final_checkpoint_.take(turn);
  schedule_.set_saved(attempt.holds);
  membership_.join_prepared(turn);
}

// Repeats only the chief's requests. The task itself repeats its answers.
void Checkpointing::repeat(Turn& turn, const Member& member) {
  const bool trains = stage_.is(Stage::kTrain) || stage_.is(Stage::kSettle) || stage_.is(Stage::kFinalCut);
  if (!trains || !setup_.takes_checkpoints()) return;
  if (generation_.is_owner(member)) return repeat_to_ps(turn, member);
  if (is_cutting() && !setup_.is_sync() && workers_.is_in_roster(member))
    turn.send(member.task, MarkChannels{setup_.id, generation_.number(), attempt_->number});
}

// The old connection may have lost the message that ended the previous attempt (AbandonCheckpoint). Without this
// message a shard that holds would never apply a push again. So the chief sends the message again.
void Checkpointing::repeat_to_ps(Turn& turn, const Member& ps) {
  const auto send_end_of = [&](std::uint64_t number) {
    turn.send(ps.task, AbandonCheckpoint{setup_.id, generation_.number(), number});
  };
  if (!attempt_) {
    if (!schedule_.is_saved()) send_end_of(std::max(last_number_, turn.term.value << 32));
    return;
  }
  switch (attempt_->phase) {
    case Attempt::Phase::kBegin:
      return send_end_of(attempt_->number - 1);
    case Attempt::Phase::kPrepare:
      if (attempt_->owed.count(ps) != 0)
        turn.send(ps.task, PrepareCheckpoint{setup_.id, generation_.number(), attempt_->number, attempt_->folder,
                                             attempt_->holds});
      return;
    case Attempt::Phase::kCut:
      if (setup_.is_sync() && ps == generation_.pacer())
        turn.send(ps.task, TakeCut{setup_.id, generation_.number(), attempt_->number, attempt_->at});
      return;
    case Attempt::Phase::kCommit:
      if (!attempt_->holds) send_end_of(attempt_->number);
      return;
  }
}

bool Checkpointing::is_owed_by(const Member& ps) const {
  if (!attempt_ || attempt_->phase == Attempt::Phase::kCommit) return false;
  for (std::uint32_t s = 0; s < generation_.owners().size(); ++s)
    if (generation_.owners()[s].ps == ps && attempt_->written.count(ShardId(s)) == 0) return true;
  return false;
}

void Checkpointing::interrupt(Turn& turn, const std::string& why) {
  if (!attempt_) return;
  if (attempt_->phase != Attempt::Phase::kCommit) return abandon(turn, why);
  attempt_->holds = false;
  for (const Member& ps : generation_.holders())
    turn.send(ps.task, AbandonCheckpoint{setup_.id, generation_.number(), attempt_->number});
}

void Checkpointing::abandon(Turn& turn, const std::string& why, bool fails) {
  if (!attempt_) return;
  const Attempt attempt = std::move(*attempt_);
  attempt_.reset();
  for (const Member& ps : generation_.holders())
    turn.send(ps.task, AbandonCheckpoint{setup_.id, generation_.number(), attempt.number});
  if (fails) {
    stats_.note_failure();
    schedule_.note_failed(why, attempt.holds);
  }
  schedule_.note_abandoned(turn.now);
  events_.tell(turn, "checkpoint_failed", 2, "a checkpoint was given up: " + why + "; the previous checkpoint stays");
  savers_.refuse(turn, ErrorCode::kFailed, "the checkpoint was given up: " + why);
  if (stage_.is(Stage::kFinalCut)) final_checkpoint_.on_abandoned(turn, why, fails);
}

}  // namespace disttrain::chiefd
