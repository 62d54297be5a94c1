// A chief that is restarted while its job trains, for tests of the next chief.
#pragma once

#include <set>

#include "tests/chiefd/core/recovery_fixture.h"

namespace disttrain::chiefd {

class ReclaimTest : public RecoveryTest {
 protected:
  // Starts a new chief. All tasks connect to it, except the tasks in `lost`.
  void restart_chief_without(std::set<TaskId> lost) {
    for (const TaskId task : lost) silence(task);
    restart_chief();
    for (std::uint32_t i = 0; i < config_.ps.size(); ++i)
      if (lost.count(ps(i)) == 0) hello_again(ps(i));
    for (std::uint32_t i = 0; i < config_.workers.size(); ++i)
      if (lost.count(worker(i)) == 0) hello_again(worker(i));
  }
};

}  // namespace disttrain::chiefd
