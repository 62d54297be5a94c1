// Writes a worker's metrics for Prometheus. They are for its current job or, between two jobs, for its last job.
#pragma once

#include <string>

#include "common/metrics/page.h"
#include "workerd/worker_figures.h"

namespace disttrain::workerd {

void collect(const WorkerFigures& figures, const std::string& task, metrics::Page& page);

}  // namespace disttrain::workerd
