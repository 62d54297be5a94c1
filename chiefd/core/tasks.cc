#include "chiefd/core/tasks.h"

#include <algorithm>
#include <utility>

#include "common/format_duration.h"
#include "common/mutant.h"

namespace disttrain::chiefd {
namespace {

constexpr std::size_t kMaxSuperseded = 8;

std::string silence_of(const Task& task, Instant now) {
  const auto oldest = std::min_element(task.turned.begin(), task.turned.end());
  if (oldest != task.turned.end() && *oldest < task.last_heartbeat)
    return "it sends heartbeats, but its shard thread " + std::to_string(oldest - task.turned.begin()) +
           " has stood still for " + format_duration(now - *oldest);
  return "no heartbeat for " + format_duration(now - task.last_heard);
}

bool was_superseded(const Task& task, const TaskHello& hello) {
  return std::any_of(task.superseded.begin(), task.superseded.end(),
                     [&hello](const TaskHello& former) { return is_same_process(former, hello); });
}

std::string place_taken(const TaskHello& before, const TaskHello& now) {
  const std::string process = "pid " + std::to_string(now.pid) + " on " + now.host;
  if (is_same_process(before, now)) return "it has started over (" + process + ")";
  return "another process (" + process + ") took its place";
}

bool is_given_up(TaskState state) {
  return state == TaskState::kWaiting || state == TaskState::kDead || state == TaskState::kLeft;
}

}  // namespace

// A process number says little in containers: there each process may have the number 1, and keep its host name when it
// is restarted. So it decides only for tasks that don't say more.
bool is_same_process(const TaskHello& a, const TaskHello& b) {
  if (a.member.incarnation == b.member.incarnation) return true;
  if (a.process.value != 0 || b.process.value != 0) return a.process == b.process;
  return a.pid != 0 && a.pid == b.pid && a.host == b.host;
}

const char* to_string(TaskState state) {
  switch (state) {
    case TaskState::kWaiting:
      return "waiting";
    case TaskState::kReady:
      return "ready";
    case TaskState::kRunning:
      return "running";
    case TaskState::kBusy:
      return "busy";
    case TaskState::kSilent:
      return "silent";
    case TaskState::kDead:
      return "dead";
    case TaskState::kLeft:
      return "left";
  }
  return "unknown";
}

Tasks::Tasks(const ClusterConfig& cluster, const Timeouts& timeouts)
    : timeouts_(timeouts), takes_unlisted_(cluster.allow_unlisted_workers), cluster_(cluster) {
  const auto add = [this, &cluster](TaskId id) {
    Task& task = tasks_[id];
    task.member.task = id;
    task.reason = "hasn't said hello yet";
    task.hello.address = address_of(cluster, id);
  };
  for (std::uint32_t i = 0; i < cluster.ps.size(); ++i) add(TaskId{Role::kPs, i});
  for (std::uint32_t i = 0; i < cluster.workers.size(); ++i) add(TaskId{Role::kWorker, i});
  for (std::uint32_t i = 0; i < cluster.evaluators.size(); ++i) add(TaskId{Role::kEvaluator, i});
}

const Task* Tasks::find(TaskId id) const {
  const auto task = tasks_.find(id);
  return task == tasks_.end() ? nullptr : &task->second;
}

bool Tasks::is_current(const Member& member) const {
  const Task* task = find(member.task);
  return task != nullptr && task->member == member && !is_given_up(task->state);
}

bool Tasks::hears_both_ways(const Member& member) const {
  const Task* task = find(member.task);
  return task != nullptr && task->member == member && task->connected && task->state != TaskState::kSilent;
}

void Tasks::join(Instant now, const TaskHello& hello, const std::string& peer_host, Findings& findings,
                 Actions& actions) {
  const bool may_be_new = takes_unlisted_ && hello.member.task.role == Role::kWorker && tasks_.size() < kMaxWorkers;
  if (may_be_new && tasks_.count(hello.member.task) == 0) {
    Task& task = tasks_[hello.member.task];
    task.member.task = hello.member.task;
    task.is_listed = false;
  }
  const auto found = tasks_.find(hello.member.task);
  const auto refuse = [&actions, &hello](std::string reason, ErrorCode code = ErrorCode::kConfig, bool ends = false) {
    actions.push_back(RefuseTask{hello.member, Refused{code, std::move(reason), ends, {}}});
  };
  const std::string name = to_string(hello.member.task);
  if (found == tasks_.end())
    return refuse("the chief's cluster file has no " + name +
                  ": give all tasks the same cluster file, or set cluster.allow_unlisted_workers at the chief");
  Task& task = found->second;
  const bool is_new = task.member.incarnation != hello.member.incarnation && !DISTTRAIN_MUTANT(kRestartUnseen);
  if (is_new && !is_given_up(task.state) && !DISTTRAIN_MUTANT(kClaimDisplaces)) return contest(task, hello, actions);
  if (is_kept_for_another(now, task, hello))
    return refuse(name + " is taken by the process that answers at " + task.hello.address +
                      " and took the place while this process was away",
                  ErrorCode::kTemporary, true);
  if (task.misplaced && is_same_process(*task.misplaced, hello))
    return refuse(name + " must run where the other tasks dial it: nobody listens at " + task.hello.address,
                  ErrorCode::kTemporary, true);
  task.misplaced.reset();
  std::erase_if(task.superseded, [&hello](const TaskHello& former) { return is_same_process(former, hello); });
  if (is_new && task.member.incarnation.value != 0) {
    if (!is_same_process(task.hello, hello)) task.superseded.push_back(task.hello);
    if (task.superseded.size() > kMaxSuperseded) task.superseded.pop_front();
    if (!is_given_up(task.state)) {
      lose(task, &Losses::replaced, place_taken(task.hello, hello), findings, actions);
      findings.back().has_started_over = is_same_process(task.hello, hello);
    }
  }
  const bool was_given_up = is_given_up(task.state);
  if (is_new || was_given_up) {
    task.joined = now;
    task.heartbeat = Heartbeat{};
    task.rate = ExampleRate{};
    task.worked = Instant();
    task.turned.clear();
    task.leaving = false;
    leavers_.erase(task.member.task);
    task.probing = false;
    task.probed_for_claim = false;
    task.doubts_itself = false;
  }
  const bool was_silent = task.state == TaskState::kSilent;
  const std::string address = dialled_address(task, hello, peer_host);
  if (is_new && !hello.address.empty() && hello.address != address)
    actions.push_back(Note{
        2,
        name + " says that its address is " + hello.address + ", but others dial it at " + address +
            (task.is_listed ? ", its address in the cluster file" : ", because its connection comes from that host")});
  task.member = hello.member;
  task.hello = hello;
  task.hello.address = address;
  task.claim.reset();
  task.heir.reset();
  task.connected = true;
  task.unreleased = JobId();
  task.last_heard = now;
  if (!task.is_there()) task.state = TaskState::kReady;
  task.reason.clear();
  actions.push_back(Admit{hello.member});
  if (is_new || was_given_up)
    findings.push_back({Finding::What::kJoined, hello.member, "said hello", false});
  else if (was_silent)
    findings.push_back({Finding::What::kReturned, hello.member, "said hello again", false});
}

// Returns true if the chief must refuse `hello`, because the hello comes from a former holder of the place and the
// place is kept for another process (Task::heir). The former holder may live on elsewhere, and may say hello before the
// other process does. Without this rule, the two processes would take the place from each other for ever.
bool Tasks::is_kept_for_another(Instant now, const Task& task, const TaskHello& hello) const {
  const bool is_kept = task.heir && is_given_up(task.state) && now < task.kept_until;
  if (!is_kept || *task.heir == hello.member) return false;
  return is_same_process(task.hello, hello) || was_superseded(task, hello);
}

void Tasks::turn_away(const TaskHello& hello, const std::string& why, Actions& actions) {
  actions.push_back(RefuseTask{hello.member, Refused{ErrorCode::kTemporary, why}});
  const auto task = tasks_.find(hello.member.task);
  if (task == tasks_.end() || task->second.is_there()) return;
  if (std::exchange(task->second.reason, why) != why) actions.push_back(Note{3, why});
}

void Tasks::contest(Task& task, const TaskHello& claim, Actions& actions) {
  const std::string name = to_string(task.member.task);
  const std::string taken = name + " is taken by process " + std::to_string(task.hello.pid) + " on " + task.hello.host;
  const auto refuse = [&actions, &claim](std::string reason, ErrorCode code, bool ends) {
    actions.push_back(RefuseTask{claim.member, Refused{code, std::move(reason), ends, {}}});
  };
  const bool is_heard = task.connected && task.state != TaskState::kSilent;
  if (task.keeps_place && is_heard && task.claim && task.claim->member == claim.member) {
    task.claim.reset();
    task.keeps_place = false;
    const std::string lives = taken + ", which answers at " + task.hello.address;
    if (task.leaving)
      return refuse(lives + " but was told to end; try again when it has ended", ErrorCode::kTemporary, false);
    if (was_superseded(task, claim))
      return refuse(lives + " and took the place while this process was away", ErrorCode::kTemporary, true);
    return refuse(lives + ": give each process its own index", ErrorCode::kConfig, true);
  }
  // If a probe is under way already, its answer may be older than the claim, also if it was sent for an earlier claim
  // of another process. Then wait for the next probe.
  const bool is_repeated = task.claim && task.claim->member == claim.member;
  task.probed_for_claim = !task.probing || (task.probed_for_claim && is_repeated);
  task.claim = claim;
  task.keeps_place = false;
  probe(task, actions);
  refuse(taken + ", and the chief is checking whether that process still lives: try again", ErrorCode::kTemporary,
         false);
}

namespace {

// Splits "host:port" into "host" and "port". For example, "[::1]:7100" becomes "[::1]" and "7100".
std::pair<std::string, std::string> split_address(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos) return {address, ""};
  return {address.substr(0, colon), address.substr(colon + 1)};
}

}  // namespace

std::string Tasks::dialled_address(const Task& task, const TaskHello& hello, const std::string& peer_host) const {
  const std::string port = split_address(hello.address).second;
  if (!task.is_listed) return peer_host.empty() ? hello.address : peer_host + ":" + port;
  const std::string listed = address_of(cluster_, task.member.task);
  const auto [host, listed_port] = split_address(listed);
  return listed_port == "0" ? host + ":" + port : listed;  // port 0: the task has chosen a free port
}

void Tasks::lose_connection(Instant, const Member& member, const std::string& why, Findings&, Actions& actions) {
  if (!is_current(member)) return;
  Task& task = tasks_[member.task];
  task.connected = false;
  task.reason = "its control connection closed (" + why + "), and the chief probes its address";
  probe(task, actions);
}

void Tasks::hear(Instant now, const Member& member, const Heartbeat& heartbeat, Findings& findings) {
  if (!is_current(member)) return;
  Task& task = tasks_[member.task];
  task.last_heartbeat = now;
  task.turned.resize(heartbeat.turns.size(), now);
  Instant heard = now;
  for (std::size_t i = 0; i < heartbeat.turns.size(); ++i) {
    const auto& before = task.heartbeat.turns;
    if (i >= before.size() || heartbeat.turns[i] != before[i]) task.turned[i] = now;
    heard = std::min(heard, task.turned[i]);
  }
  const bool is_same_job = heartbeat.job == task.heartbeat.job && heartbeat.generation == task.heartbeat.generation;
  if (!is_same_job) task.rate = ExampleRate{};
  if (!is_same_job) task.worked = Instant();
  if (is_same_job && heartbeat.work > task.heartbeat.work) task.worked = now;
  task.rate.hear(now, heartbeat.examples);
  task.heartbeat = heartbeat;
  task.last_heard = std::max(task.last_heard, heard);
  if (task.state != TaskState::kSilent || now - task.last_heard > timeouts_.silent) return;
  task.state = TaskState::kReady;
  task.reason.clear();
  findings.push_back(
      {Finding::What::kReturned, member, "was silent for " + format_duration(now - task.silent_since), false});
}

void Tasks::accuse(TaskId accused, Actions& actions) {
  const auto task = tasks_.find(accused);
  if (task != tasks_.end() && !is_given_up(task->second.state)) probe(task->second, actions);
}

void Tasks::doubt(TaskId id, Actions& actions) {
  const auto task = tasks_.find(id);
  if (task == tasks_.end() || is_given_up(task->second.state)) return;
  // If a probe is under way already, its answer may be older. Then the task's next complaint counts.
  if (!task->second.probing) task->second.doubts_itself = true;
  probe(task->second, actions);
}

void Tasks::probe(Task& task, Actions& actions) {
  if (std::exchange(task.probing, true)) return;
  actions.push_back(Probe{task.member, task.hello.address});
}

void Tasks::probe_again(Instant now, Task& task, Actions& actions) {
  if (now < task.probe_after) return;
  const bool is_long = now - task.last_heard > timeouts_.silent_ps;
  task.probe_after = now + (is_long ? timeouts_.silent : timeouts_.interval / 2);
  probe(task, actions);
}

void Tasks::finish_probe(const ProbeDone& done, Findings& findings, Actions& actions) {
  if (!is_current(done.member)) return;
  Task& task = tasks_[done.member.task];
  task.probing = false;
  const bool is_for_claim = std::exchange(task.probed_for_claim, false) && task.claim;
  const bool doubts_itself = std::exchange(task.doubts_itself, false);
  // A task keeps its place while the chief hears from it. A task that doesn't answer the probe may only be slow, so
  // only the heartbeat timeout makes it silent.
  const bool is_heard = task.connected && task.state != TaskState::kSilent;
  const bool is_known = done.outcome == ProbeOutcome::kAnswered && done.answered_by.task == done.member.task;
  if (is_known && done.answered_by == done.member) {
    task.keeps_place = is_for_claim;
    return;
  }
  if (is_known && done.answered_by.incarnation.value != 0) {
    const bool is_claim = task.claim && task.claim->member == done.answered_by;
    task.heir = done.answered_by;
    task.kept_until = last_tick_ + timeouts_.silent + timeouts_.dial + timeouts_.reconnect_longest;
    lose(task, &Losses::replaced,
         is_claim ? place_taken(task.hello, *task.claim)
                  : "it has started over, or another process answers now at " + task.hello.address,
         findings, actions);
    findings.back().has_started_over = is_claim && is_same_process(task.hello, *task.claim);
    return;
  }
  if (is_heard && doubts_itself && done.outcome == ProbeOutcome::kRefused) {
    task.misplaced = task.hello;
    return lose(task, &Losses::silent,
                "it runs, but nobody listens at " + task.hello.address + ", where the other tasks dial it", findings,
                actions);
  }
  if (is_heard) return;
  if (task.claim && (done.outcome == ProbeOutcome::kRefused || task.state == TaskState::kSilent))
    return lose(task, &Losses::replaced, place_taken(task.hello, *task.claim), findings, actions);
  if (done.outcome != ProbeOutcome::kRefused) return;
  const auto gone = task.heartbeat.job.value != 0 ? &Losses::crash : &Losses::left;
  lose(task, task.connected ? &Losses::silent : gone,
       task.connected ? "it is silent and nobody listens at " + task.hello.address + " any more"
                      : "its connection closed and nobody listens at " + task.hello.address + " any more",
       findings, actions);
}

void Tasks::lose(Task& task, std::uint64_t Losses::*how, std::string why, Findings& findings, Actions& actions) {
  task.state = task.heartbeat.job.value != 0 ? TaskState::kDead : TaskState::kLeft;
  task.reason = why;
  task.connected = false;
  ++(task.leaving ? task.losses.left : task.losses.*how);
  actions.push_back(Disconnect{task.member});
  findings.push_back({Finding::What::kLost, task.member, std::move(why), task.leaving});
}

bool Tasks::begin_leave(const Member& member) {
  if (!is_current(member)) return false;
  leavers_.insert(member.task);
  return !std::exchange(tasks_[member.task].leaving, true);
}

std::vector<Member> Tasks::leaving() const {
  std::vector<Member> members;
  for (const TaskId id : leavers_)
    if (const Task& task = tasks_.at(id); !is_given_up(task.state)) members.push_back(task.member);
  return members;
}

void Tasks::let_go(const Member& member, Findings& findings, Actions& actions) {
  if (!is_current(member)) return;
  Task& task = tasks_[member.task];
  send(Send{member.task, LeaveGranted{}}, actions);
  task.state = TaskState::kLeft;
  task.reason = "it was told to end";
  task.connected = false;
  ++task.losses.left;
  findings.push_back({Finding::What::kLeft, member, task.reason, true});
}

void Tasks::note_unreleased(const Member& member, JobId job) {
  if (member.task.role == Role::kWorker && is_current(member)) tasks_[member.task].unreleased = job;
}

void Tasks::note_released(const Member& member, JobId job, Findings& findings) {
  if (!is_current(member) || job == JobId() || tasks_[member.task].unreleased != job) return;
  tasks_[member.task].unreleased = JobId();
  findings.push_back({Finding::What::kReturned, member, "it has released job " + std::to_string(job.value), false});
}

void Tasks::note_holds(const Member& member, JobId job, Findings& findings) {
  if (is_current(member) && tasks_[member.task].unreleased != job)
    note_released(member, tasks_[member.task].unreleased, findings);
}

// A task learns the new timeout from the answer to its next heartbeat. At that time it has already set its timer for
// the heartbeat after that. So it takes up to three intervals until the task and its shard threads use the new timeout.
void Tasks::forgive_change(Instant now, const Timeouts& before) {
  forgiven_ = now + 3 * before.heartbeat;
}

void Tasks::tick(Instant now, Findings& findings, Actions& actions) {
  const Duration since_last = ticked_ ? now - last_tick_ : Duration::zero();
  last_tick_ = now;
  ticked_ = true;
  if (since_last > 2 * timeouts_.interval)
    for (auto& [id, task] : tasks_) task.last_heard += since_last - timeouts_.interval;

  std::size_t expected = 0;
  std::vector<Task*> late;
  for (auto& [id, task] : tasks_) {
    if (is_given_up(task.state)) continue;
    if (!task.connected || task.state == TaskState::kSilent) probe_again(now, task, actions);
    ++expected;
    const Instant heard = std::max(task.last_heard, forgiven_);
    if (task.state == TaskState::kSilent || now - heard > timeouts_.silent) late.push_back(&task);
  }
  if (late.size() > 1 && late.size() * 2 > expected) suspected_ = now;
  const bool suspects_itself = suspected_ && now - *suspected_ <= timeouts_.silent;
  for (Task* task : late) {
    if (task->state == TaskState::kSilent) continue;
    if (suspects_itself && now - task->last_heard <= timeouts_.silent_ps) {
      task->reason =
          "it is silent, but most tasks are or were silent too: the chief suspects that its own host is the cause";
      continue;
    }
    task->state = TaskState::kSilent;
    task->silent_since = task->last_heard;
    task->reason = silence_of(*task, now);
    findings.push_back({Finding::What::kSilent, task->member, task->reason, task->leaving});
  }
}

void Tasks::send(Send message, Actions& actions) const {
  const Task* task = find(message.task);
  if (task != nullptr && task->connected && !is_given_up(task->state)) actions.push_back(std::move(message));
}

}  // namespace disttrain::chiefd
