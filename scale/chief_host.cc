#include "scale/chief_host.h"

namespace disttrain::scale {
namespace {

constexpr Duration kJournalWrite = std::chrono::milliseconds(1);
constexpr std::size_t kKeptHeartbeats = 2000;

chiefd::Cluster::Setup setup_of(const ClusterConfig& cluster) {
  chiefd::JournalState journal;
  journal.journal = JournalId(1);
  return {
      .config = cluster, .journal = std::move(journal), .jobs = {}, .seed = 1, .clocks = {}, .self = Incarnation(1)};
}

}  // namespace

ChiefHost::ChiefHost(Surroundings& around, const JobConfig& job, std::uint32_t workers)
    : around_(around),
      host_(around.network.add_host(TaskId{Role::kChief, 0})),
      job_(job),
      workers_(workers),
      cluster_(setup_of(around.cluster)) {}

void ChiefHost::start() {
  carry_out(cluster_.start(around_.queue.now()));
  tick();
}

void ChiefHost::tick() {
  step(chiefd::Tick{});
  around_.queue.after(cluster_.timeouts().interval / 2, [this] {
    if (!is_over_) tick();
  });
}

void ChiefHost::step(const chiefd::Event& event) {
  chiefd::Actions actions;
  around_.chief_core.run([&] { actions = cluster_.step(around_.queue.now(), event); });
  carry_out(actions);
}

template <typename Actions>
void ChiefHost::carry_out(const Actions& actions) {
  for (const chiefd::Action& action : actions) std::visit([this](const auto& a) { act(a); }, action);
}

void ChiefHost::on_hello(TaskHost& task, const TaskHello& hello) {
  tasks_[hello.member.task] = &task;
  step(chiefd::TaskJoined{hello, hello.host});
}

ChiefHost::Heartbeats ChiefHost::spent() const {
  return {0, around_.chief_core.spent().time, around_.chief_codec.spent().time};
}

ChiefHost::Heartbeats ChiefHost::handle_again() {
  Heartbeats again;
  for (const bool is_measured : {false, true}) {  // the first round fills the caches
    const Heartbeats before = spent();
    for (const Received& received : kept_) on_frame(received.from, received.frame);
    const Heartbeats after = spent();
    if (is_measured) again = {kept_.size(), after.core - before.core, after.codec - before.codec};
  }
  return again;
}

void ChiefHost::on_frame(const Member& from, const wire::EncodedControl& frame) {
  const Heartbeats before = spent();
  const std::uint64_t coded = around_.chief_codec.spent().events;
  Result<wire::ControlMessage> message = fail(ErrorCode::kData, "");
  around_.chief_codec.run([&] { message = wire::decode_control(frame.type, frame.control(), frame.payload()); });
  if (!message) return around_.fail("the chief can't read a message: " + message.error().message);
  const bool is_heartbeat = std::holds_alternative<Heartbeat>(*message);
  std::visit(
      [this, &from](auto& m) {
        if constexpr (std::is_constructible_v<chiefd::FromTask, decltype(m)>)
          step(chiefd::TaskMessage{from, std::move(m)});
      },
      *message);
  // After some heartbeats the chief also sends news to all workers, such as new leases. They count as they are.
  const bool is_only_answered = around_.chief_codec.spent().events <= coded + 2;
  if (!around_.is_measuring || !is_heartbeat || !is_only_answered) return;
  const Heartbeats after = spent();
  ++heartbeats_.count;
  heartbeats_.core += after.core - before.core;
  heartbeats_.codec += after.codec - before.codec;
  if (kept_.size() < kKeptHeartbeats) kept_.push_back({from, frame});
}

// The job is submitted when the chief has written its term.
void ChiefHost::act(const chiefd::Listen&) {
  chiefd::Submission submission{"scale", job_, 0, workers_};
  step(chiefd::Submit{chiefd::ClientId(1), std::move(submission)});
}

void ChiefHost::act(const chiefd::Admit& action) {
  TaskHost* task = tasks_.at(action.member.task);
  Welcome welcome;
  welcome.term = cluster_.term();
  welcome.journal = cluster_.journal();
  welcome.heartbeat_timeout = cluster_.timeouts().silent;
  welcome.chief = cluster_.self();
  around_.network.send(host_, task->host(), Traffic::kControl, frame_bytes(wire::HelloAnswer(welcome)),
                       [task, welcome] { task->on_welcome(welcome); });
}

void ChiefHost::act(const chiefd::RefuseTask& action) {
  around_.fail("the chief refuses " + to_string(action.member.task) + ": " + action.refused.reason);
}

void ChiefHost::act(const chiefd::Disconnect& action) {
  around_.fail("the chief disconnects " + to_string(action.member.task));
}

void ChiefHost::act(const chiefd::Send& action) {
  TaskHost* task = tasks_.at(action.task);
  wire::ControlMessage message = std::visit([](const auto& m) { return wire::ControlMessage(m); }, action.message);
  Result<wire::EncodedControl> encoded = fail(ErrorCode::kData, "");
  around_.chief_codec.run([&] { encoded = wire::encode(message); });
  if (!encoded) return around_.fail("the chief can't send a message: " + encoded.error().message);
  around_.network.send(host_, task->host(), Traffic::kControl, wire::kHeaderBytes + encoded->bytes.size(),
                       [task, message = std::move(message)] { task->on_message(message); });
}

void ChiefHost::act(const chiefd::Probe& action) {
  around_.queue.after(Duration(), [this, member = action.member] {
    step(chiefd::ProbeDone{member, chiefd::ProbeOutcome::kAnswered, member});
  });
}

void ChiefHost::act(const chiefd::Persist& action) {
  around_.queue.after(kJournalWrite, [this, ticket = action.ticket] { step(chiefd::Persisted{ticket}); });
}

void ChiefHost::act(const chiefd::FolderWork&) {
  around_.fail("the job uses a folder of checkpoints");
}

void ChiefHost::act(const chiefd::AnswerClient& action) {
  if (const auto* refused = std::get_if<Refused>(&action.answer)) around_.fail(refused->reason);
}

void ChiefHost::act(const chiefd::JobEnded& action) {
  is_over_ = true;
  const chiefd::JobStatus status = cluster_.status(action.job, around_.queue.now());
  if (status.state != chiefd::JobState::kFinished)
    around_.fail("the job is " + std::string(chiefd::to_string(status.state)) + ": " + status.reason);
}

}  // namespace disttrain::scale
