// Shows the report of a simulated run: as a text for people, and as JSON (docs/json.md, "bench scale").
#pragma once

#include <iosfwd>

#include "scale/cluster_run.h"
#include "tools/disttrain/json.h"

namespace disttrain::cli {

Json to_json(const scale::RunOptions& options, const scale::RunReport& report);
void print(std::ostream& out, const scale::RunOptions& options, const scale::RunReport& report);

// Prints only what a job would do on the cluster: the time of a step, its bound, and where the time goes.
void print_step(std::ostream& out, const scale::RunOptions& options, const scale::RunReport& report);

}  // namespace disttrain::cli
