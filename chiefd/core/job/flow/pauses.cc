// The workers pause while there is a reason (chiefd/core/job/facts/pauses.h), and go on when none is left.
#include "chiefd/core/job/flow/flow.h"

#include <string>

#include "chiefd/core/job/views/checkpoints.h"
#include "chiefd/core/job/views/workers.h"

namespace disttrain::chiefd::flow {

void tell_pause(JobFacts& job, Turn& turn, bool paused, const std::string& reason) {
  turn.send_to(job.workers.living(), PauseJob{job.setup.id, job.generation.number(), paused, reason});
}

void resume(JobFacts& job, Turn& turn, const std::string& why) {
  job.progress.moved(turn.now);
  give_fences_time(job, turn.now);
  give_pacer_time(job, turn);
  if (job.stage.is(Stage::kTrain) && job.condition.is_stopping() && job.stage.deadline())
    give_steps_time(job, turn.now);
  if ((job.condition.state() != JobState::kPaused && !job.condition.is_stopping()) ||
      views::holds_workers(job, turn.tasks))
    return;
  tell_pause(job, turn, false, why);
  const bool trains = (job.stage.is(Stage::kTrain) || job.stage.is(Stage::kReclaim)) && !job.condition.is_stopping();
  if (trains) return set_state(job, turn, JobState::kRunning, why);
  if (job.condition.is_stopping())
    return set_state(job, turn, JobState::kStopping, job.condition.end_reason() + "; " + why);
  set_state(job, turn, JobState::kEvaluating, why);
}

void pause(JobFacts& job, Turn& turn, const std::string& reason) {
  tell_pause(job, turn, true, reason);
  set_state(job, turn, JobState::kPaused, reason);
}

void pause_for_ps(JobFacts& job, Turn& turn, const PauseForPs& verdict) {
  const TaskId ps = verdict.ps.task;
  job.pauses.note_silent(ps, Silence{turn.now});
  if (views::is_owed_by(job, verdict.ps)) abandon_attempt(job, turn, to_string(ps) + " is silent");
  pause(job, turn, verdict.reason);
}

void pause_for_workers(JobFacts& job, Turn& turn, const std::string& reason) {
  job.pauses.begin_shortage(turn.now);
  interrupt_attempt(job, turn, reason);  // a lost worker would never mark its channels
  pause(job, turn, reason);
}

void end_shortage(JobFacts& job, Turn& turn, const std::string& why) {
  job.pauses.end_shortage();
  job.progress.moved(turn.now);
  if (views::holds_workers(job, turn.tasks)) return;
  tell_pause(job, turn, false, why);
  set_state(job, turn, job.condition.is_stopping() ? JobState::kStopping : JobState::kRunning, why);
}

void pause_for_disk(JobFacts& job, Turn& turn, const std::string& reason) {
  job.pauses.set_disk_late(true);
  pause(job, turn, reason);
}

void end_disk_pause(JobFacts& job, Turn& turn, const std::string& why) {
  job.pauses.set_disk_late(false);
  if (!why.empty()) resume(job, turn, why);
}

}  // namespace disttrain::chiefd::flow
