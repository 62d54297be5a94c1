#include "chiefd/core/job/views/end.h"

#include <optional>

#include "chiefd/core/job/report.h"

namespace disttrain::chiefd::views {

std::optional<TaskId> leaving_owner(const JobFacts& job, const Tasks& tasks) {
  if (!job.stage.is(Stage::kTrain) || job.condition.is_stopping() || !job.setup.takes_checkpoints())
    return std::nullopt;
  for (const Owner& owner : job.generation.owners()) {
    const Task* task = tasks.find(owner.ps.task);
    if (task != nullptr && task->leaving && tasks.is_current(owner.ps)) return owner.ps.task;
  }
  return std::nullopt;
}

EndRecord end_record(const JobFacts& job, Instant now) {
  const JobStatus status = report::status(job, now);
  EndRecord end;
  end.job = job.setup.id;
  end.state = job.closing.end;
  end.reason = job.condition.end_reason();
  end.generation = status.generation;
  end.step = Step(status.global_step);
  end.steps_target = status.steps_target;
  end.examples = status.examples;
  end.training = job.progress.training();
  end.epochs = status.epoch;
  end.late = status.late;
  end.skipped = status.skipped;
  end.staleness = status.staleness;
  end.loss = status.loss;
  end.metrics = status.metrics;
  end.evaluation = status.evaluation;
  end.code = status.code;
  end.root_cause = status.root_cause;
  return end;
}

}  // namespace disttrain::chiefd::views
