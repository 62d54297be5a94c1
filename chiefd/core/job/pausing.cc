#include "chiefd/core/job/pausing.h"

#include "chiefd/core/job/parts.h"

namespace disttrain::chiefd {

Pausing::Pausing(JobParts& parts)
    : setup_(parts.setup),
      stage_(parts.stage),
      condition_(parts.condition),
      progress_(parts.progress),
      generation_(parts.generation),
      workers_(parts.workers),
      pauses_(parts.pauses),
      fences_(parts.fences),
      requests_(parts.requests),
      leaving_(parts.leaving) {}

void Pausing::tell_workers(Turn& turn, bool paused, const std::string& reason) {
  turn.send_to(workers_.living(), PauseJob{setup_.id, generation_.number(), paused, reason});
}

void Pausing::resume(Turn& turn, const std::string& why) {
  progress_.moved(turn.now);
  fences_.give_time(turn.now);
  requests_.give_pacer_time(turn);
  if ((condition_.state() != JobState::kPaused && !condition_.is_stopping()) || holds_workers(turn.tasks)) return;
  tell_workers(turn, false, why);
  const bool trains = (stage_.is(Stage::kTrain) || stage_.is(Stage::kReclaim)) && !condition_.is_stopping();
  if (trains) return condition_.set(turn, JobState::kRunning, why);
  if (condition_.is_stopping()) return condition_.set(turn, JobState::kStopping, condition_.end_reason() + "; " + why);
  condition_.set(turn, JobState::kEvaluating, why);
}

bool Pausing::holds_workers(const Tasks& tasks) const {
  return pauses_.is_any() || leaving_.owner(tasks);
}

}  // namespace disttrain::chiefd
