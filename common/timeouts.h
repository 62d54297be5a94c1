// All time limits of the control plane. They derive from one number, which the operator sets ([heartbeat] timeout), so
// that a shorter wait always ends before the longer one that contains it.
//
// Work whose length depends on the data has no limit here, as long as it makes progress: 120 heartbeat timeouts would
// be too short to restore 40 GB, and any higher limit would be too short for a job with more data. Tasks count the
// pieces of a few MiB that they have done, and their heartbeats carry this count. While the count of one task grows,
// the deadline of the stage moves on for all, because a restored shard may wait for the pacer's shard, which isn't
// ready yet. A minimum rate was rejected, because nobody knows how slow a disk may be.
#pragma once

#include <algorithm>
#include <cstdint>

#include "common/time.h"

namespace disttrain {

// While a worker evaluates, the other workers may wait for job.stall_timeout times this number. An evaluation's batch
// may take as long.
inline constexpr int kEvaluationPatience = 10;

struct Timeouts {
  // timeout: a task is silent when the chief has heard nothing from it for this time.
  Duration silent;
  // timeout / 10: the longest time between two ticks of a process, at which it looks after its links and its peers.
  Duration interval;
  // heartbeat_pause(): the time between two heartbeats of a task.
  Duration heartbeat;
  // timeout / 4: how long the chief tries to find out whether a process still lives at a task's address.
  Duration probe;
  // 3 * timeout: when two tasks haven't reached each other for this time, the chief decides with which of them the job
  // goes on.
  Duration unreachable;
  // 2 * timeout: the pause until the chief asks a worker again which ps tasks it reaches.
  Duration relink;
  // 5 * timeout: the least time for which a job waits for a silent ps.
  Duration silent_ps;
  // timeout / 20: the first pause before a task retries to connect to the chief. The pauses then double.
  Duration reconnect_first;
  // timeout: the longest of these pauses.
  Duration reconnect_longest;
  // 2 * timeout: one attempt to connect, including the answer to the hello.
  Duration dial;
  // 120 * timeout: how long a stage of a job's start may go on without progress.
  Duration setup;
  // 5 * timeout: how long the chief waits for tasks to release a closed job, before it goes on without their answers.
  Duration close;
  // 60 * timeout: how long a worker that was told to end waits for the chief's permission to leave.
  Duration leave;
  // 660 * timeout: the same for a ps. It may have to wait for a checkpoint attempt, which the chief abandons after
  // 600 * timeout.
  Duration leave_ps;
};

// The time between two heartbeats of a task in a cluster of so many tasks: timeout / 10. With more than 200 tasks it
// grows with their number, so that the chief gets 2,000 heartbeats per timeout, but only to timeout / 4. So a task is
// never silent because of one late heartbeat.
//
// The chief's answer to a heartbeat has the heartbeat timeout and this pause. So an operator can change the timeout
// while jobs run, in the chief's file alone, and a task needn't know how many tasks there are. 1,100 tasks that sent a
// heartbeat every tenth of a second sent 11,000 per second, and got as many answers. A silent task is found as soon as
// before, because the timeout counts from the last heartbeat.
constexpr Duration heartbeat_pause(Duration timeout, std::uint64_t tasks) {
  constexpr std::int64_t kHeartbeatsPerTimeout = 2000;
  constexpr std::int64_t kMostTasks = kHeartbeatsPerTimeout / 4;
  const auto counted = static_cast<std::int64_t>(std::min<std::uint64_t>(tasks, kMostTasks));
  return std::max(timeout / 10, timeout * counted / kHeartbeatsPerTimeout);
}

// `tasks`: the number of tasks in the cluster, as far as it is known.
constexpr Timeouts derive_timeouts(Duration heartbeat_timeout, std::uint64_t tasks = 0) {
  return Timeouts{
      .silent = heartbeat_timeout,
      .interval = heartbeat_timeout / 10,
      .heartbeat = heartbeat_pause(heartbeat_timeout, tasks),
      .probe = heartbeat_timeout / 4,
      .unreachable = heartbeat_timeout * 3,
      .relink = heartbeat_timeout * 2,
      .silent_ps = heartbeat_timeout * 5,
      .reconnect_first = heartbeat_timeout / 20,
      .reconnect_longest = heartbeat_timeout,
      .dial = heartbeat_timeout * 2,
      .setup = heartbeat_timeout * 120,
      .close = heartbeat_timeout * 5,
      .leave = heartbeat_timeout * 60,
      .leave_ps = heartbeat_timeout * 660,
  };
}

}  // namespace disttrain
