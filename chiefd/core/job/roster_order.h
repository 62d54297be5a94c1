// Builds the order by which the pacer takes the roster of a job that trains or ends.
#pragma once

#include "chiefd/core/job/facts/condition.h"
#include "chiefd/core/job/facts/generation.h"
#include "chiefd/core/job/facts/stage.h"
#include "chiefd/core/job/facts/workers.h"
#include "chiefd/core/job/setup.h"

namespace disttrain::chiefd {

// The order says that no step may follow (SetRoster::ends) if the job is being stopped and all its workers have
// finished. In the stages kSettle and kFinalCut each order says so, because an earlier one may have been lost.
inline SetRoster roster_order(const JobSetup& setup, const StageWait& stage, const Condition& condition,
                              const GenerationPlan& generation, const Workers& workers) {
  const bool ends = condition.is_stopping() && (stage.is(Stage::kSettle) || stage.is(Stage::kFinalCut));
  return SetRoster{setup.id, generation.number(), workers.roster(), ends};
}

}  // namespace disttrain::chiefd
