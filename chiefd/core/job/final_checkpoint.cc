#include "chiefd/core/job/final_checkpoint.h"

#include "chiefd/core/job/parts.h"

namespace disttrain::chiefd {
namespace {

// If the disk is full, the chief waits for this many setup timeouts, so that the operator can make room.
constexpr int kPatience = 5;

}  // namespace

FinalCheckpoint::FinalCheckpoint(JobParts& parts)
    : setup_(parts.setup),
      stage_(parts.stage),
      condition_(parts.condition),
      progress_(parts.progress),
      generation_(parts.generation),
      folder_(parts.folder),
      schedule_(parts.schedule),
      checkpointing_(parts.checkpointing),
      ending_(parts.ending) {}

void FinalCheckpoint::take(Turn& turn) {
  const std::optional<CheckpointRecord>& newest = folder_.newest();
  const Step step = progress_.step();
  const bool is_taken = newest && newest->generation == generation_.number() && newest->step == step;
  const bool is_same = generation_.restore() && generation_.restore()->step == step;
  // A job that has made no step has nothing to save. Its shards may have no values, if a worker was to give them.
  const bool has_trained = step != Step();
  if (!setup_.takes_checkpoints() || !setup_.config().checkpoint.at_end || is_taken || is_same || !has_trained)
    return ending_.evaluate(turn);
  if (!stage_.is(Stage::kFinalCut)) {
    stage_.enter(Stage::kFinalCut);
    schedule_.forget_failures();
    until_ = turn.now + kPatience * setup_.timeouts.setup;
    stage_.clear_deadline();
    condition_.explain(why_it_ends() + "the job takes the last checkpoint");
    // An attempt is already under way. When it ends, take() is called again and checks whether the attempt was of the
    // last step.
    if (checkpointing_.is_under_way()) return checkpointing_.cut_now(turn);
  }
  if (folder_.is_open()) return checkpointing_.begin(turn, Step());
  stage_.set_deadline(until_);
  folder_.ask_newest(turn);
}

void FinalCheckpoint::on_abandoned(Turn& turn, const std::string& why, bool fails) {
  if (!fails) return;
  condition_.explain(why_it_ends() + "the job waits to take the last checkpoint: " + why);
  if (turn.now >= until_) fail(turn, why);
}

std::string FinalCheckpoint::why_it_ends() const {
  return condition_.is_stopping() ? condition_.end_reason() + "; " : "";
}

void FinalCheckpoint::fail(Turn& turn, const std::string& why) {
  ending_.fail(turn,
               Error{ErrorCode::kFailed, "trained " + std::to_string(progress_.step().value) +
                                             " steps, but the last checkpoint couldn't be taken: " + why},
               std::nullopt);
}

}  // namespace disttrain::chiefd
