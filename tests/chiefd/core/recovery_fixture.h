// A training cluster whose job may have checkpoints, for tests of losses and recoveries.
#pragma once

#include "tests/chiefd/core/cluster_fixture.h"

namespace disttrain::chiefd {

class RecoveryTest : public TrainingTest {
 protected:
  static JobConfig with_checkpoints(Mode mode = Mode::kAsync) {
    JobConfig config = job_config("a", mode);
    config.checkpoint.directory = "/checkpoints";
    return config;
  }
  // The config of a job that fails at the first loss that counts.
  static JobConfig without_restarts() {
    JobConfig config = job_config("a");
    config.job.max_restarts = 0;
    return config;
  }
  static RestorePoint restore_point(std::uint64_t step) {
    PacerReport pacer;
    pacer.global_step = Step(step);
    return RestorePoint{"/checkpoints/a/step", Generation(1), Step(step), pacer, 1000, {}};
  }
};

}  // namespace disttrain::chiefd
