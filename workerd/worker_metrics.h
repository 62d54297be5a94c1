// What a worker tells a Prometheus of the job that it holds, or held last.
#pragma once

#include <string>

#include "common/metrics/page.h"
#include "workerd/worker_figures.h"

namespace disttrain::workerd {

void collect(const WorkerFigures& figures, const std::string& task, metrics::Page& page);

}  // namespace disttrain::workerd
