// Which tasks are alive: the tasks of the cluster file, and unlisted workers, each with its current process. A task is
// silent after the heartbeat timeout. It is dead only by proof: no process listens at its address, or another process
// took its place. Pure; stepped by Cluster.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "chiefd/core/events.h"
#include "chiefd/core/example_rate.h"
#include "chiefd/core/status.h"
#include "common/config/cluster_config.h"
#include "common/timeouts.h"

namespace disttrain::chiefd {

struct Task {
  Member member;          // incarnation 0: no process said hello yet
  bool is_listed = true;  // in the cluster file
  TaskState state = TaskState::kWaiting;
  std::string reason;
  TaskHello hello;
  bool connected = false;
  bool probing = false;
  bool leaving = false;  // the task was told to end, and waits to be let go
  Instant joined;        // when this process joined
  Instant last_heard;    // with all its shard threads moving
  Instant silent_since;
  Instant probe_after;  // no probe before, while the task is away or silent
  Heartbeat heartbeat;  // the last one
  ExampleRate rate;     // in the job and generation of `heartbeat`
  Instant last_heartbeat;
  Instant worked;               // when Heartbeat::work was last seen to grow, in the job and generation of `heartbeat`
  std::vector<Instant> turned;  // ps: when each shard thread was last seen to have moved
  Losses losses;
  std::deque<TaskHello> superseded;  // of the last few processes whose place another one took
  // The newest process that claims this task's place; whether the current process is probed for it, and has answered.
  std::optional<TaskHello> claim;
  bool probed_for_claim = false;
  bool keeps_place = false;
  // The process that answered at the address when this one lost its place. It is expected to join until `kept_until`.
  std::optional<Member> heir;
  Instant kept_until;

  bool is_there() const { return state == TaskState::kReady; }
  // The task may be given new work.
  bool takes_work() const { return is_there() && connected && !leaving; }
};

// A change in the state of one process.
struct Finding {
  enum class What { kJoined, kReturned, kSilent, kLost, kLeft };  // kLeft: in good order
  What what = What::kJoined;
  Member member;
  std::string why;
  bool was_told_to_end = false;  // let go or not: such a loss doesn't count
};
using Findings = std::vector<Finding>;

class Tasks {
 public:
  // Both must outlive this object; `timeouts` may change.
  Tasks(const ClusterConfig& cluster, const Timeouts& timeouts);

  const std::map<TaskId, Task>& all() const { return tasks_; }
  // Nothing if the file doesn't name it.
  const Task* find(TaskId id) const;
  // The member is the current process of its task, and isn't given up.
  bool is_current(const Member& member) const;
  // The process hears the chief, and the chief hears it. A task without a connection is asked again when it reconnects.
  // A task that only doesn't hear the chief drops its connection within JobSetup::answer_limit().
  bool hears_both_ways(const Member& member) const;

  // The functions below append their findings and actions.
  //
  // A taken place goes to another process only when its holder was lost (I29):
  //   1. A process claims the place. The chief probes the holder, and asks the claimant to retry (kTemporary).
  //   2. The holder answers: the claim is refused for good. A claimant that was displaced before ends with kTemporary,
  //      to be started again; a claimant with a wrong index ends with kConfig.
  //   3. The holder is proven lost, or is silent and doesn't answer: the claimant gets the place at its next hello.
  // A process that lost its place to the process at the task's address, and says hello before that process does, ends
  // with kTemporary, too.
  //
  // The chief and the tasks dial the addresses of the cluster file. An unlisted worker is dialled at `peer_host`, where
  // its connection comes from: a hello doesn't choose which host the chief dials.
  void join(Instant now, const TaskHello& hello, const std::string& peer_host, Findings& findings, Actions& actions);
  // The task obeys another chief: refuses it, and leaves its place unchanged.
  void turn_away(const TaskHello& hello, const std::string& why, Actions& actions);
  void lose_connection(Instant now, const Member& member, const std::string& why, Findings& findings, Actions& actions);
  // A ps counts as heard only while all its shard threads move: a daemon with only its main loop alive does no work.
  void hear(Instant now, const Member& member, const Heartbeat& heartbeat, Findings& findings);
  void accuse(TaskId accused, Actions& actions);
  // If another process of that task answers at the address, the holder of the place is gone. If no process listens
  // there, a task is dead only if it isn't heard otherwise: the address may be wrong. If nothing answers, a silent task
  // loses its place to a process that claims it.
  void finish_probe(const ProbeDone& done, Findings& findings, Actions& actions);
  // Detects silence. A chief that missed its own ticks gives the tasks as much more time. If most tasks fall silent at
  // once, the chief suspects itself and removes none before Timeouts::silent_ps. When most are back, the others get one
  // timeout more, because they don't all come back at the same moment.
  // A silent task, or one without a connection, is probed at each interval, and after Timeouts::silent_ps less often.
  // One probe isn't enough: it may have met a dying process whose port was still open, or may have been too slow.
  void tick(Instant now, Findings& findings, Actions& actions);

  // The task was told to end. False: that was known. leaving() lists the tasks that wait to be let go; let_go() ends
  // that.
  bool begin_leave(const Member& member);
  std::vector<Member> leaving() const;
  void let_go(const Member& member, Findings& findings, Actions& actions);
  // The timeouts were `before` until now. Tasks still go by those for a few heartbeats, so no task falls silent for
  // three intervals. Tasks that are silent or gone stay so.
  void forgive_change(Instant now, const Timeouts& before);

  // Sends nothing to a task without a connection: the sender repeats the request when the task is back.
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
  Instant last_tick_;
  bool ticked_ = false;
  std::optional<Instant> suspected_;  // when the chief last suspected itself
  Instant forgiven_;                  // no task falls silent before this
};

}  // namespace disttrain::chiefd
