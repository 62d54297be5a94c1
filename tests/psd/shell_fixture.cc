#include "tests/psd/shell_fixture.h"

#include "common/config/reader/reader.h"

#include <future>

namespace disttrain::psd::test {

FakeChief::FakeChief(asio::io_context& loop, transport::Transport& transport) : loop_(loop) {
  auto listener = transport.listen(loop, "127.0.0.1:0", {},
                                   [this](std::unique_ptr<transport::Arrival> a) { on_arrival(std::move(a)); });
  listener_ = std::move(*listener);
}

void FakeChief::on_arrival(std::unique_ptr<transport::Arrival> arrival) {
  const auto said = wire::decode_hello(arrival->hello());
  ASSERT_TRUE(said.has_value());
  hello = std::get<TaskHello>(said->who);
  ++hellos;
  link_ = std::make_unique<transport::ControlLink>(arrival->adopt(loop_), *this);
  if (refusal) {
    link_->answer(*refusal);
    return;
  }
  Welcome welcome;
  welcome.term = Term(1);
  welcome.journal = journal;
  welcome.heartbeat_timeout = heartbeat_timeout;
  link_->answer(welcome);
}

void FakeChief::send(const wire::ControlMessage& message) {
  ASSERT_NE(link_, nullptr);
  ASSERT_TRUE(link_->send(message).has_value());
}

void FakeChief::on_message(wire::ControlMessage message) {
  if (const auto* beat = std::get_if<Heartbeat>(&message)) {
    last_heartbeat = *beat;
    ++heartbeats;
    // The result doesn't matter, because the daemon may have ended in the meantime.
    static_cast<void>(link_->send(HeartbeatAnswer{Term(1)}));
  } else {
    messages.push_back(std::move(message));
  }
}

FakePeer::FakePeer(asio::io_context& loop, transport::Transport& transport, const std::string& address,
                   const Hello& hello) {
  const std::vector<std::byte> bytes = wire::encode(hello);
  transport::OutgoingFrame frame;
  frame.header.type = wire::FrameType::kHello;
  frame.control = bytes;
  const bool may_lend = &transport.for_steps() != &transport;
  if (may_lend) lent_.emplace(arena_, std::size_t{16} << 20, Paging::kOnDemand);
  transport.for_steps().dial(loop, address, frame, std::chrono::seconds(5),
                             [this](Result<std::unique_ptr<transport::Connection>> dialled) {
                               if (!dialled) {
                                 dial_error = dialled.error().message;
                                 return;
                               }
                               connection_ = std::move(*dialled);
                               if (lent_) connection_->share(arena_);
                               connection_->start(*this);
                             });
}

void FakePeer::send(wire::FrameType type, transport::Bytes control, transport::Bytes payload, std::uint64_t sequence) {
  transport::OutgoingFrame frame;
  frame.header.type = type;
  frame.header.job = job;
  frame.header.generation = generation;
  frame.header.sequence = Sequence(sequence);
  frame.control = control;
  frame.payload = payload;
  frame.lifetime = transport::Payload::kCopied;
  if (lent_ && !payload.empty() && payload.size() < lent_->size() / 2) {
    if (lent_end_ + payload.size() > lent_->size()) lent_end_ = 0;
    std::memcpy(lent_->bytes().data() + lent_end_, payload.data(), payload.size());
    frame.payload = transport::Bytes(lent_->bytes()).subspan(lent_end_, payload.size());
    frame.lifetime = transport::Payload::kFrozenUntilAnswered;
    lent_end_ = (lent_end_ + payload.size() + 63) / 64 * 64;
  }
  connection_->send(frame);
}

void FakePeer::push(std::uint64_t sequence, const Push& push, const std::vector<float>& gradient) {
  send(wire::FrameType::kPush, wire::encode(push, scratch_), std::as_bytes(std::span(gradient)), sequence);
}

void FakePeer::pull(std::uint64_t id) {
  send(wire::FrameType::kPull, wire::encode(Pull{id}, scratch_), {});
}

void FakePeer::mark(std::uint64_t attempt) {
  send(wire::FrameType::kMark, wire::encode(Mark{attempt}, scratch_), {});
}

Result<transport::MutableBytes> FakePeer::payload_landing(const wire::FrameHeader& header, transport::Bytes) {
  landing_.resize(header.payload_bytes);
  return transport::MutableBytes(landing_);
}

void FakePeer::on_frame(const wire::FrameHeader& header, transport::Bytes control, transport::Bytes payload) {
  if (!answer) {
    answer = wire::decode_hello_answer(header.type, control).value();
  } else if (header.type == wire::FrameType::kParameters) {
    std::vector<float> values(payload.size() / sizeof(float));
    std::memcpy(values.data(), payload.data(), payload.size());
    heard.push_back(Heard{wire::decode_parameters(control).value(), std::move(values)});
  } else if (header.type == wire::FrameType::kAcknowledge) {
    heard.push_back(Heard{wire::decode_acknowledge(control).value(), {}});
  } else if (header.type == wire::FrameType::kAlive) {
    ++alive;
  } else if (header.type == wire::FrameType::kMarkTaken) {
    let_go.push_back(wire::decode_mark_taken(control).value().attempt);
  }
}

std::unique_ptr<transport::Transport> make_test_transport() {
  TransportConfig config;
  const char* const kind = std::getenv("DISTTRAIN_TEST_TRANSPORT");
  config.kind = kind != nullptr ? kind : "tcp";
  return transport::make_transport(config, "shell-test").value();
}

PsShell::PsShell(std::uint32_t threads, Duration heartbeat, std::uint32_t credits, const std::string& log_level,
                 const std::string& transport_kind, Duration patience)
    : chief_(loop_, *transport_) {
  chief_.heartbeat_timeout = heartbeat;
  daemon::Startup startup;
  startup.cluster.name = "shell-test";
  startup.cluster.chief.address = chief_.address();
  startup.cluster.ps.push_back(PsConfig{"127.0.0.1:0", threads, 0, {}});
  startup.cluster.heartbeat.timeout = heartbeat;
  startup.cluster.transport.credits = credits;
  startup.cluster.log.level = log_level;
  startup.cluster.transport.kind = transport_kind;
  startup.task = ps_.task;
  startup.incarnation = ps_.incarnation;
  startup.address = startup.listen_address = "127.0.0.1:0";
  std::promise<std::string> listening;
  thread_ = std::thread([this, startup, patience, &listening] {
    daemon::Log log(startup.task, startup.cluster.log);
    const std::unique_ptr<transport::Transport> transport = make_test_transport();
    PsDaemon ps(daemon_loop_, *transport, files_, startup, log, {.patience = patience, .end = [this] {
                                                                   has_hung_ = true;
                                                                   daemon_loop_.stop();
                                                                 }});
    const Status started = ps.start();
    listening.set_value(started ? ps.address() : started.error().message);
    daemon_loop_.run();
    exit_code_ = ps.exit_code();
  });
  address_ = listening.get_future().get();
}

PsShell::~PsShell() {
  daemon_loop_.stop();
  thread_.join();
}

Hello PsShell::hello_of(const std::variant<TaskHello, ClientHello, ChannelHello, ShardPeerHello>& who) const {
  Hello hello;
  hello.cluster = "shell-test";
  hello.who = who;
  return hello;
}

std::unique_ptr<FakePeer> PsShell::dial(const Hello& hello) {
  auto peer = std::make_unique<FakePeer>(loop_, *transport_, address_, hello);
  EXPECT_TRUE(until([&] { return peer->answer.has_value() || peer->closed || !peer->dial_error.empty(); }));
  return peer;
}

std::unique_ptr<FakePeer> PsShell::open_channel(std::uint32_t worker_index, std::uint32_t shard, std::uint64_t token) {
  return dial(hello_of(ChannelHello{JobId(5), Generation(3), ShardId(shard), worker(worker_index), token}));
}

CreateShards PsShell::order(std::uint32_t shards, std::uint32_t workers, const std::string& mode,
                            const std::string& more_train) const {
  CreateShards order;
  order.job = JobId(5);
  order.generation = Generation(3);
  order.token = 99;
  const std::string toml =
      "[job]\nname = \"shell\"\nseed = 7\n[model]\nbuiltin = \"mlp\"\nlayers = [2, 2]\n"
      "[data]\npath = \"/tmp\"\nfiles = \"x*\"\n"
      "[train]\nbatch_size = 10\nepochs = 1\nmode = \"" +
      mode + "\"\noptimizer = { rule = \"sgd\", learning_rate = 0.5 }\n" + more_train;
  const Result<JobConfig> config = config::read_job(toml);
  EXPECT_TRUE(config) << config.error().message;
  order.config = std::make_shared<const JobConfig>(config.value_or(JobConfig()));
  order.layout = small_layout(shards);
  for (std::uint32_t shard = 0; shard < shards; ++shard) order.owners.push_back(Owner{ps_, address_});
  order.roster = roster_of(workers);
  order.train_records = 1000;
  return order;
}

void PsShell::create_job(std::uint32_t shards, std::uint32_t workers, const std::string& mode) {
  create_job(order(shards, workers, mode));
}

void PsShell::create_job(const CreateShards& order) {
  ASSERT_TRUE(until([&] { return chief_.connected(); }));
  chief_.send(order);
  std::optional<ShardsCreated> created;
  ASSERT_TRUE(until([&] {
    if (const auto failed = chief_.take<TaskFailed>()) ADD_FAILURE() << failed->reason;
    created = chief_.take<ShardsCreated>();
    return created.has_value();
  }));
  EXPECT_EQ(created->job, JobId(5));
}

}  // namespace disttrain::psd::test
