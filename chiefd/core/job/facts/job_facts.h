// All that the chief knows of one job. Each member is a bookkeeper: it holds facts, keeps them consistent, and knows no
// other. The rules (chiefd/core/job/rules) read the facts, and only the flow (chiefd/core/job/flow) changes them.
#pragma once

#include <map>
#include <utility>

#include "chiefd/core/job/facts/absences.h"
#include "chiefd/core/job/facts/attempts.h"
#include "chiefd/core/job/facts/candidates.h"
#include "chiefd/core/job/facts/checkpoint_schedule.h"
#include "chiefd/core/job/facts/checkpoint_stats.h"
#include "chiefd/core/job/facts/closing.h"
#include "chiefd/core/job/facts/condition.h"
#include "chiefd/core/job/facts/disk.h"
#include "chiefd/core/job/facts/evaluations.h"
#include "chiefd/core/job/facts/faults.h"
#include "chiefd/core/job/facts/fences.h"
#include "chiefd/core/job/facts/folder.h"
#include "chiefd/core/job/facts/generation.h"
#include "chiefd/core/job/facts/held_actions.h"
#include "chiefd/core/job/facts/loans.h"
#include "chiefd/core/job/facts/pauses.h"
#include "chiefd/core/job/facts/progress.h"
#include "chiefd/core/job/facts/reclaim.h"
#include "chiefd/core/job/facts/rollbacks.h"
#include "chiefd/core/job/facts/stage.h"
#include "chiefd/core/job/facts/start.h"
#include "chiefd/core/job/facts/warnings.h"
#include "chiefd/core/job/facts/worker_figures.h"
#include "chiefd/core/job/facts/worker_losses.h"
#include "chiefd/core/job/facts/workers.h"
#include "chiefd/core/job/setup.h"
#include "chiefd/core/links.h"

namespace disttrain::chiefd {

// A task has reported that it can't go on, perhaps because of another task.
struct Suspicion {
  Error error;
  Instant since;
};

struct JobFacts {
  explicit JobFacts(JobSetup the_setup) : setup(std::move(the_setup)) {}
  JobFacts(const JobFacts&) = delete;

  const JobSetup setup;

  // ---- the job
  StageWait stage;
  Condition condition;
  Progress progress;
  Pauses pauses;
  Rollbacks rollbacks;
  Warnings warnings;
  HeldActions held;
  AbsenceFacts absences;
  ClosingFacts closing;
  DiskFacts disk;

  // ---- its generation
  StartFacts start;
  GenerationPlan generation{setup};
  Loans loans;
  Fences fences;
  ReclaimFacts reclaim;
  std::optional<Instant> idle_since;  // since when the workers have finished although records are left

  // ---- its tasks
  Workers workers;
  Candidates candidates;
  WorkerLosses worker_losses{setup};
  WorkerFigures worker_figures;
  Faults faults;
  Links links;
  std::map<Member, Suspicion> suspicions;  // for each task that has reported, its first report

  // ---- its checkpoints
  FolderFacts folder;
  CheckpointSchedule schedule{setup};
  AttemptFacts attempts;
  Savers savers;
  CheckpointStats stats;
  EvaluationFacts evaluations;
};

}  // namespace disttrain::chiefd
