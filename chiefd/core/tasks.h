// Who lives: the tasks that the cluster file names, each with the process that stands in its place now. Silent is
// known by the heartbeat timeout, dead only by proof: nobody listens at the task's address, or another process took its
// place. Pure and stepped by Cluster.
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
  Member member;          // incarnation 0: nobody said hello yet
  bool is_listed = true;  // in the cluster file
  TaskState state = TaskState::kWaiting;
  std::string reason;
  TaskHello hello;
  bool connected = false;
  bool probing = false;
  bool leaving = false;  // it was told to end, and waits to be let go
  Instant joined;        // this process
  Instant last_heard;    // alive in all its parts
  Instant silent_since;
  Instant probe_after;  // not before, while it is away or silent
  Heartbeat heartbeat;  // the last one
  ExampleRate rate;     // in the job and generation of that
  Instant last_heartbeat;
  Instant worked;               // when Heartbeat::work was last seen to grow, in the job and generation of `heartbeat`
  std::vector<Instant> turned;  // ps: when each shard thread was last seen to have moved
  Losses losses;
  std::deque<TaskHello> superseded;  // of processes whose place another one took; the last few
  // Another process that claims its place, the newest; whether this one is probed for that, and has answered.
  std::optional<TaskHello> claim;
  bool probed_for_claim = false;
  bool keeps_place = false;
  // The process that answered at the address when this one lost its place; it is expected to join until then.
  std::optional<Member> heir;
  Instant kept_until;

  bool is_there() const { return state == TaskState::kReady; }
  // Something new may be given to it.
  bool takes_work() const { return is_there() && connected && !leaving; }
};

// What the clocks and connections say about one process.
struct Finding {
  enum class What { kJoined, kReturned, kSilent, kLost, kLeft };  // kLeft: in good order
  What what = What::kJoined;
  Member member;
  std::string why;
  bool was_told_to_end = false;  // whether it was let go or not: nobody counts that as a loss
};
using Findings = std::vector<Finding>;

class Tasks {
 public:
  // Both outlive it; `timeouts` may change.
  Tasks(const ClusterConfig& cluster, const Timeouts& timeouts);

  const std::map<TaskId, Task>& all() const { return tasks_; }
  // Nothing if the file doesn't name it.
  const Task* find(TaskId id) const;
  // The process that is in its place now, and not given up.
  bool is_current(const Member& member) const;
  // The process hears the chief, and the chief hears it. A task whose connection is away is asked again once it is
  // back; one that merely doesn't hear the chief gives its connection up within JobSetup::answer_limit().
  bool hears_both_ways(const Member& member) const;

  // Each appends what it found and what is to be done.
  // A place that is taken is given to another process only when the one that has it was lost (I29). A claim makes the
  // chief probe who has it; meanwhile, the other is asked to try again (kTemporary). When the probe is answered, the
  // claim is refused for good: a process that was displaced before ends with kTemporary, to be started again, and
  // one with a wrong index with kConfig. A process that lost its place to the one at the task's address, and says hello
  // before that one does, ends with kTemporary too.
  // The chief, and the tasks that it names to each other, dial what the cluster file lists. An unlisted worker is
  // dialled at `peer_host`, where its connection comes from: a hello doesn't choose whom the chief dials.
  void join(Instant now, const TaskHello& hello, const std::string& peer_host, Findings& findings, Actions& actions);
  // The task obeys another chief: it isn't admitted, and its place is what it was.
  void turn_away(const TaskHello& hello, const std::string& why, Actions& actions);
  void lose_connection(Instant now, const Member& member, const std::string& why, Findings& findings, Actions& actions);
  // A ps is heard only as far as all its shard threads move: a daemon whose main loop alone lives does no work.
  void hear(Instant now, const Member& member, const Heartbeat& heartbeat, Findings& findings);
  void accuse(TaskId accused, Actions& actions);
  // Another process of that name lives at the address: the one that had the place is gone. Nobody listens there: that
  // proves death only of a task that isn't heard otherwise, for the address may be wrong. Nobody answers: whoever isn't
  // heard otherwise loses its place to a process that claims it.
  void finish_probe(const ProbeDone& done, Findings& findings, Actions& actions);
  // Silence. A chief that missed its own ticks forgives the others as much, and one to which most tasks fall silent at
  // once suspects itself: it removes nobody before Timeouts::silent_ps. When most are back the others have one timeout
  // more, for they don't all come back at the same moment.
  // A task whose connection is away, or that is silent, is probed at each interval, and after Timeouts::silent_ps more
  // rarely: the first probe may have met a dying process whose port was still open, or may have been too slow.
  void tick(Instant now, Findings& findings, Actions& actions);

  // It was told to end. False: that was known. Those that are still to be let go, and how one is.
  bool begin_leave(const Member& member);
  std::vector<Member> leaving() const;
  void let_go(const Member& member, Findings& findings, Actions& actions);
  // The heartbeat timeout was `before` until now: tasks go by it for some heartbeats more, and their silence counts
  // from then. Who is silent or gone stays so.
  void forgive_change(Instant now, const Timeouts& before);

  // To a task whose connection is away: nothing. When it is back, whoever asked asks again.
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
  std::optional<Instant> suspected_;  // when it suspected itself last
  Instant forgiven_;                  // until then nobody falls silent
};

}  // namespace disttrain::chiefd
