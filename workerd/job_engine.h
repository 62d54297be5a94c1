// Makes the engine that a job asks for: a trainer's process, or one that computes inside workerd (engine/factory.h).
#pragma once

#include <string>
#include <vector>

#include "workerd/prepared_job.h"

namespace disttrain::workerd {

// `device` is the worker's. prepared_job.h explains the other arguments. Errors: those of TrainerEngine::make() and of
// make_engine().
Result<MadeEngine> make_job_engine(const JobConfig& config, const std::vector<ColumnSpec>& columns, Arena& arena,
                                   const EngineWorld& world, const std::string& device);

}  // namespace disttrain::workerd
