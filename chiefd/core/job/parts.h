// Holds the parts of a job and connects them. Each part owns its state, and other parts change this state only through
// public methods. The constructor of a part gets JobParts, and takes references to the other parts that it needs. The
// part's header lists these parts. Two parts may need each other, so no constructor may call another part.
//
//   bookkeeping   stores facts, and decides nothing for other parts
//   questions     answers questions about several parts, and changes nothing
//   procedures    decides what to do, changes the bookkeeping, and issues actions
#pragma once

#include <utility>

#include "chiefd/core/job/absences.h"
#include "chiefd/core/job/candidates.h"
#include "chiefd/core/job/checkpoint_folder.h"
#include "chiefd/core/job/checkpoint_schedule.h"
#include "chiefd/core/job/checkpoint_stats.h"
#include "chiefd/core/job/checkpointing.h"
#include "chiefd/core/job/closing.h"
#include "chiefd/core/job/condition.h"
#include "chiefd/core/job/deadlines.h"
#include "chiefd/core/job/ending.h"
#include "chiefd/core/job/evaluators.h"
#include "chiefd/core/job/event_log.h"
#include "chiefd/core/job/faults.h"
#include "chiefd/core/job/fences.h"
#include "chiefd/core/job/final_checkpoint.h"
#include "chiefd/core/job/gathering.h"
#include "chiefd/core/job/generation.h"
#include "chiefd/core/job/held_actions.h"
#include "chiefd/core/job/invitations.h"
#include "chiefd/core/job/late_disk.h"
#include "chiefd/core/job/launch.h"
#include "chiefd/core/job/leaving.h"
#include "chiefd/core/job/link_failures.h"
#include "chiefd/core/job/loans.h"
#include "chiefd/core/job/members.h"
#include "chiefd/core/job/membership.h"
#include "chiefd/core/job/pauses.h"
#include "chiefd/core/job/pausing.h"
#include "chiefd/core/job/progress.h"
#include "chiefd/core/job/quorum.h"
#include "chiefd/core/job/reachability.h"
#include "chiefd/core/job/reclaim.h"
#include "chiefd/core/job/recovery.h"
#include "chiefd/core/job/regathering.h"
#include "chiefd/core/job/report.h"
#include "chiefd/core/job/requests.h"
#include "chiefd/core/job/restart.h"
#include "chiefd/core/job/rollback.h"
#include "chiefd/core/job/savers.h"
#include "chiefd/core/job/setup.h"
#include "chiefd/core/job/stage.h"
#include "chiefd/core/job/stall.h"
#include "chiefd/core/job/start_failures.h"
#include "chiefd/core/job/suspicions.h"
#include "chiefd/core/job/task_losses.h"
#include "chiefd/core/job/training_run.h"
#include "chiefd/core/job/turn.h"
#include "chiefd/core/job/work_clock.h"
#include "chiefd/core/job/worker_figures.h"
#include "chiefd/core/job/worker_losses.h"
#include "chiefd/core/job/workers.h"
#include "chiefd/core/links.h"

namespace disttrain::chiefd {

struct JobParts {
  explicit JobParts(JobSetup the_setup) : setup(std::move(the_setup)) {}
  JobParts(const JobParts&) = delete;

  // ---- bookkeeping
  const JobSetup setup;
  StageWait stage;
  HeldActions held;
  Progress progress;
  Rollbacks rollbacks;
  EventLog events{setup, progress, rollbacks};
  Condition condition{setup, events, held};
  GenerationPlan generation{setup};
  Workers workers;
  Candidates candidates;
  WorkerLosses worker_losses{setup};
  Faults faults;
  WorkerFigures worker_figures;
  Links links;
  Pauses pauses;
  CheckpointSchedule schedule{setup};
  CheckpointStats stats;

  // ---- questions
  const JobMembers members{*this};
  const WorkClock work_clock{*this};
  const Reachability reachability{*this};
  const JobReport report{*this};

  // ---- procedures
  Gathering gathering{*this};
  Launch launch{*this};
  TrainingRun training{*this};
  Stall stall{*this};
  Loans loans{*this};
  Fences fences{*this};
  Requests requests{*this};
  Membership membership{*this};
  Invitations invitations{*this};
  Quorum quorum{*this};
  Pausing pausing{*this};
  LinkFailures link_failures{*this};
  Recovery recovery{*this};
  Regathering regathering{*this};
  TaskLosses task_losses{*this};
  Restart restart{*this};
  Reclaim reclaim{*this};
  CheckpointFolder folder{*this};
  Checkpointing checkpointing{*this};
  Savers savers{*this};
  Evaluators evaluators{*this};
  FinalCheckpoint final_checkpoint{*this};
  Ending ending{*this};
  Closing closing{*this};
  Leaving leaving{*this};
  StartFailures start_failures{*this};
  Suspicions suspicions{*this};
  Absences absences{*this};
  Deadlines deadlines{*this};
  LateDisk late_disk{*this};
};

}  // namespace disttrain::chiefd
