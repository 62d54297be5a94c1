#include "tests/sim/chief_link.h"

#include <algorithm>

namespace disttrain::sim {

TaskHello TaskNode::task_hello() const {
  TaskHello task;
  task.member = self();
  task.host = "host";
  task.pid = 1;  // each process is the first one of a container, which keeps its host name when it is restarted
  task.process = process_;
  task.journal = obedience_.journal();
  task.term = obedience_.term();
  task.chief = obedience_.chief();
  return task;
}

void TaskNode::dial_chief() {
  const auto other = network_.taken_over.find(chief_);
  if (other != network_.taken_over.end()) network_.harm.hit_link(address(), chief_);
  dial(other == network_.taken_over.end() ? chief_ : other->second, make_hello(), timeouts_.dial,
       [this, attempt = ++attempt_](std::optional<ConnectionId> connection, bool) {
         if (attempt != attempt_) {
           if (connection) close(*connection);
           return;
         }
         if (!connection) return link_lost();
         link_ = *connection;
         after(timeouts_.dial, [this, attempt] {
           if (attempt == attempt_ && !open_) link_lost();
         });
       });
}

void TaskNode::link_lost() {
  ++attempt_;
  const bool was_open = std::exchange(open_, false);
  if (link_ != 0) close(std::exchange(link_, 0));
  if (gone_) return end();
  if (was_open) on_away();
  pause_ = std::clamp(pause_ * 2, timeouts_.reconnect_first, timeouts_.reconnect_longest);
  after(pause_, [this, attempt = attempt_] {
    if (attempt == attempt_) dial_chief();
  });
}

void TaskNode::refused(const Refused& why) {
  if (!why.ends && (why.code == ErrorCode::kTemporary || why.code == ErrorCode::kUnavailable)) return link_lost();
  tell("is refused and ends: " + why.reason);
  ++attempt_;
  open_ = false;
  close(std::exchange(link_, 0));
  exit();
}

void TaskNode::rejoin() {
  self_.incarnation = Incarnation(world_.random().bits64() | (std::uint64_t{1} << 63));
  redial_chief();
}

void TaskNode::redial_chief() {
  ++attempt_;
  open_ = false;
  if (link_ != 0) close(std::exchange(link_, 0));
  dial_chief();
}

void TaskNode::on_link_message(const Payload& payload) {
  heard_ = now();
  if (const auto* answer = std::get_if<wire::HelloAnswer>(&payload)) {
    const auto* welcome = std::get_if<Welcome>(answer);
    if (welcome == nullptr) return refused(std::get<Refused>(*answer));
    const transport::Obedience::Verdict verdict = obedience_.hear(*welcome).verdict;
    if (verdict == transport::Obedience::Verdict::kRefuse) return link_lost();
    note_obeyed(*welcome);
    open_ = true;
    pause_ = Duration();
    if (verdict == transport::Obedience::Verdict::kObeyAnew) {
      waiting_.clear();
      on_other_journal();
      if (!open_) return;  // on_other_journal() dials again
    }
    on_welcome();
    if (gone_) tell_chief(LeaveRequest{});
    for (wire::ControlMessage& message : std::exchange(waiting_, {})) tell_chief(std::move(message));
    return;
  }
  const auto& message = std::get<wire::ControlMessage>(payload);
  if (const auto* answer = std::get_if<HeartbeatAnswer>(&message)) {
    timeouts_ = derive_timeouts(answer->heartbeat_timeout);
    timeouts_.heartbeat = answer->heartbeat_pause;
  } else if (gone_ && std::holds_alternative<LeaveGranted>(message)) {
    tell("gets leave from the chief, and ends");
    end();
  } else if (open_) {
    on_order(message);
  }
}

// I25: a task that has obeyed a term never obeys a lower one, and it obeys only one chief of each term.
void TaskNode::note_obeyed(const Welcome& welcome) {
  std::map<Term, Incarnation>& chiefs = obeyed_[welcome.journal];
  if (!chiefs.empty() && welcome.term < chiefs.rbegin()->first)
    network_.on_violation("I25: " + to_string(self().task) + " obeys term " + std::to_string(welcome.term.value) +
                          " after term " + std::to_string(chiefs.rbegin()->first.value));
  if (chiefs.try_emplace(welcome.term, welcome.chief).first->second != welcome.chief)
    network_.on_violation("I25: " + to_string(self().task) + " obeys two chiefs of term " +
                          std::to_string(welcome.term.value));
}

void TaskNode::leave(std::function<void()> gone) {
  if (gone_) return;
  gone_ = std::move(gone);
  tell("is told to end");
  world_.count(Happening::kTaskLeaves);
  after(timeouts_.leave, [this] { end(); });
  if (!open_) return end();
  tell_chief(LeaveRequest{});
}

// Runs gone_ after the current call has returned, because gone_ destroys this node.
void TaskNode::end() {
  world_.after(Duration(), gone_);
}

void TaskNode::tell_chief(wire::ControlMessage message) {
  const bool is_said_again = std::holds_alternative<Heartbeat>(message) ||
                             std::holds_alternative<Accusation>(message) ||
                             std::holds_alternative<LeaseRequest>(message);
  if (open_)
    send(link_, std::move(message));
  else if (!is_said_again)
    waiting_.push_back(std::move(message));
}

void TaskNode::beat() {
  if (open_ && now() - heard_ > 5 * timeouts_.silent) link_lost();
  before_heartbeat();
  tell_chief(make_heartbeat());
  after(timeouts_.heartbeat, [this] { beat(); });
}

}  // namespace disttrain::sim
