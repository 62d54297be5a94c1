// Decides when `up` gives a job up because a daemon stays down. The chief can't decide that: it can't report its own
// end, and it would wait for ever for tasks that `up` doesn't restart.
#pragma once

#include <chrono>
#include <optional>

#include "common/ids.h"
#include "common/result.h"
#include "tools/disttrain/json.h"
#include "tools/disttrain/up/supervisor.h"

namespace disttrain::cli {

// Returns true if the job waits for this task. `status` is the job's (docs/json.md), or null if there is no job yet.
// Before the job trains, it waits for every task. While it is paused, it waits for the tasks in the status's
// `waits_for`.
bool waits_for(const Json& status, TaskId task);

class MissingTasks {
 public:
  // `daemons` must outlive this object. `ps` is the number of ps tasks in the cluster.
  MissingTasks(const Supervisor& daemons, std::size_t ps) : daemons_(daemons), ps_(ps) {}

  // Returns an error if the job can't go on, because it needs a daemon that stays down.
  std::optional<Error> judge(const Json& status);

  // The daemon that caused judge()'s error. None: judge() has returned no error yet.
  const std::optional<EndedDaemon>& blamed() const { return blamed_; }

 private:
  bool is_indispensable(const Json& status, TaskId task) const;

  const Supervisor& daemons_;
  const std::size_t ps_;
  std::optional<std::chrono::steady_clock::time_point> awaited_since_;
  std::optional<EndedDaemon> blamed_;
};

}  // namespace disttrain::cli
