#include "chiefd/core/job/checkpoint_folder.h"

#include <algorithm>
#include <utility>

#include "chiefd/core/job/parts.h"

namespace disttrain::chiefd {

CheckpointFolder::CheckpointFolder(JobParts& parts)
    : setup_(parts.setup),
      stage_(parts.stage),
      events_(parts.events),
      condition_(parts.condition),
      generation_(parts.generation),
      stats_(parts.stats),
      gathering_(parts.gathering),
      launch_(parts.launch),
      evaluators_(parts.evaluators),
      final_checkpoint_(parts.final_checkpoint),
      ending_(parts.ending) {}

void CheckpointFolder::ask_newest(Turn& turn) {
  ask_again_.reset();
  asked_ = turn.now;
  stage_.set_ticket(turn.next_ticket());
  const std::string committed = newest_ ? newest_->path : "";
  const std::string columns = generation_.described() ? generation_.described()->columns : "";
  if (is_open_) return turn.folder_work(setup_.id, stage_.ticket(), FindNewest{generation_.mark(), committed, columns});
  const bool must_be_empty = setup_.config().checkpoint.restore == Restore::kNone && generation_.number().value == 0;
  turn.folder_work(setup_.id, stage_.ticket(),
                   OpenFolder{setup_.config().checkpoint.directory, setup_.name(), must_be_empty, generation_.mark(),
                              committed, setup_.config().model.program, columns});
}

void CheckpointFolder::on_newest(Turn& turn, const Result<FolderAnswer>& answer) {
  if (stage_.is(Stage::kClose) || stage_.is(Stage::kReleased) || condition_.has_ended()) return;
  const bool is_waited_for = stage_.is(Stage::kFolder) || stage_.is(Stage::kFind) || stage_.is(Stage::kFinalCut);
  if (!answer) return on_failure(turn, answer.error(), is_waited_for);
  is_open_ = true;
  error_.clear();
  mark_ = answer->mark;
  newest_generation_ = std::max(newest_generation_, answer->newest_generation);
  note_broken(turn, answer->broken);
  if (!answer->program_warning.empty()) events_.tell(turn, "checkpoint_program", 2, answer->program_warning);
  if (answer->newest) stats_.note_bytes(answer->newest->bytes);
  if (!answer->warning.empty()) events_.warn(answer->warning);
  evaluators_.resume(turn, *answer);
  evaluators_.on_kept(turn, *answer);
  if (!is_waited_for) return;
  stage_.clear_deadline();
  if (stage_.is(Stage::kFinalCut)) return final_checkpoint_.take(turn);
  begin_with(turn, *answer);
}

// Called in the stages kFolder and kFind, when the chief has read the folder. The next generation begins with the
// newest checkpoint. If the folder never had one, the generation begins with initial values.
void CheckpointFolder::begin_with(Turn& turn, const FolderAnswer& answer) {
  // With checkpoint.restore = "none" the operator has given up earlier checkpoints, so a broken one doesn't fail the
  // job.
  const bool had_some = newest_ || (!answer.broken.empty() && setup_.config().checkpoint.restore != Restore::kNone);
  if (!answer.newest && had_some) {
    Error error = nothing_left(answer);
    newest_.reset();
    return ending_.fail(turn, std::move(error), std::nullopt);
  }
  generation_.restore_from(answer.newest);
  if (const auto& restore = generation_.restore())
    newest_ = CheckpointRecord{setup_.id, restore->generation, restore->step, restore->path};
  if (stage_.is(Stage::kFolder)) return gathering_.find_init(turn);
  if (Status status = generation_.check_restore(); !status) return ending_.fail(turn, status.error(), std::nullopt);
  launch_.begin_generation(turn);
}

void CheckpointFolder::review(Turn& turn) {
  if (ask_again_ && turn.now >= *ask_again_) ask_newest(turn);
}

void CheckpointFolder::set_aside(Turn& turn, const std::string& damage) {
  damage_ = damage;
  note_broken(turn, {damage_});
  stage_.enter(Stage::kFind);
  stage_.await_nobody();
  stage_.set_deadline(turn.now + setup_.timeouts.setup);
  stage_.set_ticket(turn.next_ticket());
  turn.folder_work(setup_.id, stage_.ticket(), SetAside{generation_.restore()->path, generation_.mark()});
}

void CheckpointFolder::close(Turn& turn) {
  // The chief sends CloseFolder even if the folder isn't open yet, because an order to open it may be under way.
  if (setup_.takes_checkpoints() || setup_.has_init()) turn.actions.push_back(CloseFolder{setup_.id});
  is_open_ = false;
  ask_again_.reset();
}

std::string CheckpointFolder::problem(Instant now, const std::string& within) const {
  const bool hangs = !ask_again_ && now - asked_ > setup_.timeouts.silent;
  if (!error_.empty() && !hangs) return "the job's checkpoint folder couldn't be used" + within + ": " + error_;
  return setup_.config().checkpoint.directory + " couldn't be read" + within + ": does its file system hang?" +
         (error_.empty() ? "" : " Before that: " + error_);
}

// Returns the error of a job that had checkpoints and can't use any of them. The job fails, because beginning again
// with initial values would throw the training away, and the operator may have a copy of the damaged file.
Error CheckpointFolder::nothing_left(const FolderAnswer& answer) const {
  std::string what = answer.broken.empty() ? newest_->path + " is gone" : answer.broken.back();
  if (!damage_.empty()) what = damage_;
  const std::string folder = setup_.config().checkpoint.directory + "/" + setup_.name();
  return Error{ErrorCode::kData, "no checkpoint in " + folder + " can be used any more (" + what +
                                     "): to go on, put a good copy of a checkpoint there and submit the job again; to "
                                     "begin anew, set checkpoint.restore to \"none\""};
}

// A disk that is full or failing may recover, so the chief retries each second until the stage's deadline. If the
// folder doesn't exist or belongs to another job, a job that was just submitted fails at once. If the job has used the
// folder before, the chief retries in these cases too, because the folder may come back.
void CheckpointFolder::on_failure(Turn& turn, const Error& error, bool is_waited_for) {
  const bool may_pass =
      error.code == ErrorCode::kFailed || !stage_.is(Stage::kFolder) || generation_.number().value != 0;
  if (is_waited_for && !may_pass) return ending_.fail(turn, error, std::nullopt);
  const bool is_restore = stage_.is(Stage::kFolder) || stage_.is(Stage::kFind);
  if (!is_restore) stats_.note_failure();
  if (may_pass) ask_again_ = turn.now + std::chrono::seconds(1);
  const bool is_new = std::exchange(error_, error.message) != error.message;
  if (is_waited_for) condition_.explain("waits for its checkpoint folder: " + error.message);
  if (!is_new) return;
  events_.tell(
      turn, "checkpoint_failed", 2,
      (is_waited_for ? "the job waits for its checkpoint folder: " : "no checkpoints can be taken: ") + error.message);
}

void CheckpointFolder::note_broken(Turn& turn, const std::vector<std::string>& broken) {
  for (const std::string& what : broken) {
    events_.warn("a checkpoint can't be used: " + what);
    events_.tell(turn, "checkpoint_broken", 3, "a checkpoint can't be used: " + what);
  }
}

}  // namespace disttrain::chiefd
