// What `up` does about daemons that stay down: the chief can't report its own end, and waits for tasks that won't come.
#pragma once

#include <chrono>
#include <optional>

#include "common/ids.h"
#include "common/result.h"
#include "tools/disttrain/json.h"
#include "tools/disttrain/up/supervisor.h"

namespace disttrain::cli {

// Whether the job (docs/json.md; null before there is one) waits for this task. Before it trains it waits for every
// task, while it is paused for those in `waits_for`. Pure.
bool waits_for(const Json& status, TaskId task);

class MissingTasks {
 public:
  // `daemons` outlives this. `ps`: number of ps tasks in the cluster.
  MissingTasks(const Supervisor& daemons, std::size_t ps) : daemons_(daemons), ps_(ps) {}

  // An error gives the job up: it can't go on without a daemon that stays down.
  std::optional<Error> judge(const Json& status);

  // The root cause of the error.
  const std::optional<EndedDaemon>& blamed() const { return blamed_; }

 private:
  bool is_indispensable(const Json& status, TaskId task) const;

  const Supervisor& daemons_;
  const std::size_t ps_;
  std::optional<std::chrono::steady_clock::time_point> awaited_since_;
  std::optional<EndedDaemon> blamed_;
};

}  // namespace disttrain::cli
