// Knows which tasks are alive. These are the tasks of the cluster file and the unlisted workers, each with its current
// process. A task that hasn't sent a heartbeat for the heartbeat timeout is silent. A task is dead only if there is
// proof: no process listens at its address, or another process has taken its place. This class does no I/O; Cluster
// passes it the events.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "chiefd/core/events.h"
#include "chiefd/core/example_rate.h"
#include "chiefd/core/status.h"
#include "common/config/cluster_config.h"
#include "common/timeouts.h"

namespace disttrain::chiefd {

struct Task {
  Member member;          // its incarnation is 0 before a process has said hello
  bool is_listed = true;  // in the cluster file
  TaskState state = TaskState::kWaiting;
  std::string reason;
  TaskHello hello;
  bool connected = false;
  bool probing = false;
  bool leaving = false;  // true: the task was told to end, and waits for permission to leave
  // The job that has ended and that the worker still holds: its threads may hang in that job's program or data. Until
  // the worker has released it, it gets no other job. 0: none.
  JobId unreleased;
  Instant joined;      // when this process joined
  Instant last_heard;  // the last time at which the task and all its shard threads were known to run
  Instant silent_since;
  Instant probe_after;  // the earliest time of the next probe, while the task is away or silent
  Heartbeat heartbeat;  // the last one
  ExampleRate rate;     // the worker's rate in the job and generation of `heartbeat`
  Instant last_heartbeat;
  Instant worked;               // when Heartbeat::work last grew in this generation of the job
  std::vector<Instant> turned;  // of a ps: when each of its shard threads last moved
  Losses losses;
  std::deque<TaskHello> superseded;  // the last few processes that lost this place to another process
  // The newest process that claims this task's place.
  std::optional<TaskHello> claim;
  // If true, the chief probes the current process because of this claim.
  bool probed_for_claim = false;
  // If true, the current process has answered that probe.
  bool keeps_place = false;
  // Another process of this task, which has answered a probe at the task's address. Because of this answer the current
  // process has lost its place. The chief expects the other process to join, and keeps the place for it until
  // `kept_until`.
  std::optional<Member> heir;
  Instant kept_until;
  bool doubts_itself = false;          // the process can't reach its own address, and the chief probes that address
  std::optional<TaskHello> misplaced;  // the last process that isn't at the task's address

  bool is_there() const { return state == TaskState::kReady; }
  // Returns true if the chief may give new work to the task.
  bool takes_work() const { return is_there() && connected && !leaving && unreleased == JobId(); }
};

// Returns true if both hellos come from the same process, though perhaps as different members.
bool is_same_process(const TaskHello& a, const TaskHello& b);

// A change in the state of one process.
struct Finding {
  enum class What { kJoined, kReturned, kSilent, kLost, kLeft };  // kLeft: in good order
  What what = What::kJoined;
  Member member;
  std::string why;
  // A process that was told to end isn't counted as lost, even if it left without permission.
  bool was_told_to_end = false;
  // kLost: the process lives, and has said hello as another member.
  bool has_started_over = false;
};
using Findings = std::vector<Finding>;

class Tasks {
 public:
  // `cluster` and `timeouts` must outlive this object. `timeouts` may change.
  Tasks(const ClusterConfig& cluster, const Timeouts& timeouts);

  const std::map<TaskId, Task>& all() const { return tasks_; }
  // Null if the task isn't in the cluster file and has never joined as an unlisted worker.
  const Task* find(TaskId id) const;
  // Returns true if the member is the current process of its task, and the chief hasn't given it up.
  bool is_current(const Member& member) const;
  // Returns true if the process and the chief hear each other. If a task has no connection, the chief repeats its
  // requests when the task reconnects. If the chief hears a task that doesn't hear the chief, the task drops its
  // connection within JobSetup::answer_limit().
  bool hears_both_ways(const Member& member) const;

  // The functions below append their findings and actions.
  //
  // Handles a hello. If a process holds the task's place, another process gets this place only when the holder is lost
  // (I29):
  //   1. A process claims the place with a hello. The chief probes the holder, and asks the claimant to retry
  //      (kTemporary).
  //   2. If the holder answers the probe, the chief refuses the claimant for good. A claimant that held the place
  //      before must end with kTemporary, so that it is started again. Any other claimant has a wrong index, and must
  //      end with kConfig.
  //   3. If the holder is proven lost, or is silent and doesn't answer the probe, the claimant gets the place at its
  //      next hello.
  // When a process has lost its place because another process answers at the task's address, the place is kept for that
  // other process. If the former holder says hello first, it must end with kTemporary.
  //
  // The chief and the tasks dial the addresses in the cluster file. They dial an unlisted worker at `peer_host`, the
  // host from which it has connected. So a hello can't choose the host that the chief dials.
  void join(Instant now, const TaskHello& hello, const std::string& peer_host, Findings& findings, Actions& actions);
  // Refuses a task that obeys another chief. The task's place stays unchanged.
  void turn_away(const TaskHello& hello, const std::string& why, Actions& actions);
  void lose_connection(Instant now, const Member& member, const std::string& why, Findings& findings, Actions& actions);
  // Notes a heartbeat. The heartbeat of a ps counts only if all its shard threads move, because a ps whose shard
  // threads stand still does no work.
  void hear(Instant now, const Member& member, const Heartbeat& heartbeat, Findings& findings);
  void accuse(TaskId accused, Actions& actions);
  // The task can't reach its own address. If nobody listens there, as the probe then shows, the process runs elsewhere
  // and is lost: the other tasks can't reach it either. It must end with kTemporary.
  void doubt(TaskId task, Actions& actions);
  // Handles the result of a probe. If another process of the task answers at the address, the holder of the place is
  // gone. If no process listens at the address, the task is dead, unless the chief still hears from it: then the
  // address may be wrong. If there is no answer, a silent task loses its place to a process that claims the place.
  void finish_probe(const ProbeDone& done, Findings& findings, Actions& actions);
  // Detects silent tasks. If ticks of the chief itself came late, all tasks get that much more time. If most tasks fall
  // silent at once, the chief suspects its own host, and calls none of them silent before Timeouts::silent_ps. When
  // most tasks are back, the chief waits one more heartbeat timeout for the others, because not all tasks come back at
  // the same moment.
  //
  // Probes each task that is silent or has no connection. At first it does so every half heartbeat interval, and after
  // Timeouts::silent_ps less often. One probe isn't enough, because the task may have been dying with its port still
  // open, or may have been too slow to answer.
  void tick(Instant now, Findings& findings, Actions& actions);

  // Notes that the task was told to end. Returns false if the chief knew this already. leaving() lists the tasks that
  // wait for permission to leave, and let_go() gives it to one of them.
  bool begin_leave(const Member& member);
  std::vector<Member> leaving() const;
  void let_go(const Member& member, Findings& findings, Actions& actions);
  // The timeouts have changed from `before` to their current values. Tasks use the former values for a few more
  // heartbeats, so no task becomes silent during the next three heartbeat intervals. A task that is silent or gone
  // stays so.
  void forgive_change(Instant now, const Timeouts& before);

  // The worker still holds this job, which it was told to release. Does nothing for other tasks: a ps gives the memory
  // of an older job back before it makes new shards.
  void note_unreleased(const Member& member, JobId job);
  // The worker has released the job. If the chief has waited for this, it is a finding: the worker takes work again.
  void note_released(const Member& member, JobId job, Findings& findings);
  // The member's heartbeat says which job it holds (0: none). So it has released each other job, also if the message
  // that said so was lost.
  void note_holds(const Member& member, JobId job, Findings& findings);

  // Sends the message if the task has a connection. Otherwise drops it, because the sender repeats its request when the
  // task is back.
  void send(Send message, Actions& actions) const;

 private:
  bool is_kept_for_another(Instant now, const Task& task, const TaskHello& hello) const;
  void contest(Task& task, const TaskHello& claim, Actions& actions);
  std::string dialled_address(const Task& task, const TaskHello& hello, const std::string& peer_host) const;
  void probe(Task& task, Actions& actions);
  void probe_again(Instant now, Task& task, Actions& actions);
  void lose(Task& task, std::uint64_t Losses::*how, std::string why, Findings& findings, Actions& actions);

  const Timeouts& timeouts_;
  const bool takes_unlisted_;
  const ClusterConfig& cluster_;
  std::map<TaskId, Task> tasks_;
  std::set<TaskId>
      leavers_;  // the tasks with Task::leaving. leaving() is asked after each event, and mostly there are none
  Instant last_tick_;
  bool ticked_ = false;
  std::optional<Instant> suspected_;  // when the chief last suspected itself
  Instant forgiven_;                  // no task becomes silent within one timeout after this
};

}  // namespace disttrain::chiefd
