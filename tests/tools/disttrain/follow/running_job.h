// The status of a running job, as the chief reports it.
#pragma once

#include "tools/disttrain/json.h"

namespace disttrain::cli {

inline Json running() {
  return Json::parse(R"({"job": "mnist", "state": "running", "reason": "", "global_step": 500, "steps_target": 2000,
    "steps_per_second": 100.0, "examples_per_second": 12345.6, "loss": 0.25, "seconds": 5.0, "evaluation": null,
    "code": null, "root_cause": null, "tasks": []})");
}

}  // namespace disttrain::cli
