// The chief's shell over real sockets on loopback. The test plays the tasks and the command lines.
#include "chiefd/chief.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <chrono>

#include <asio/io_context.hpp>
#include <filesystem>
#include <list>
#include <nlohmann/json.hpp>

#include "common/daemon/clock.h"
#include "transport/control_link.h"
#include "transport/factory/factory.h"

namespace disttrain::chiefd {
namespace {

using nlohmann::json;

// One connection to the chief, and all messages that the chief sent on it.
class Caller final : public transport::ConnectionHandler {
 public:
  void take(std::unique_ptr<transport::Connection> connection) {
    connection_ = std::move(connection);
    connection_->start(*this);
  }
  void say(const wire::ControlMessage& message) {
    const wire::EncodedControl encoded = *wire::encode(message);
    transport::OutgoingFrame frame;
    frame.header.type = encoded.type;
    frame.control = encoded.control();
    frame.payload = encoded.payload();
    frame.lifetime = transport::Payload::kCopied;
    connection_->send(frame);
  }
  void hang_up() { connection_.reset(); }

  template <typename Message>
  const Message* last() const {
    for (auto it = messages_.rbegin(); it != messages_.rend(); ++it)
      if (const Message* message = std::get_if<Message>(&*it)) return message;
    return nullptr;
  }
  template <typename Message>
  bool has() const {
    return last<Message>() != nullptr;
  }

  std::optional<wire::HelloAnswer> hello_answer;
  std::string error;  // of dialling
  bool closed = false;
  std::vector<wire::ControlMessage> messages_;

 private:
  Result<transport::MutableBytes> payload_landing(const wire::FrameHeader& header, transport::Bytes) override {
    landing_.resize(header.payload_bytes);
    return transport::MutableBytes(landing_);
  }
  void on_frame(const wire::FrameHeader& header, transport::Bytes control, transport::Bytes payload) override {
    if (!hello_answer) {
      hello_answer = *wire::decode_hello_answer(header.type, control);
      return;
    }
    messages_.push_back(*wire::decode_control(header.type, control, payload));
  }
  void on_sent(std::uint64_t) override {}
  void on_closed(const Error&) override { closed = true; }

  std::unique_ptr<transport::Connection> connection_;
  std::vector<std::byte> landing_;
};

constexpr char kJob[] = R"(
[job]
name = "JOB"
[model]
builtin = "mlp"
layers = [4, 2]
[data]
path = "/data"
files = "x*"
[train]
batch_size = 10
epochs = 1
)";

std::string job_toml(const std::string& name) {
  std::string toml = kJob;
  return toml.replace(toml.find("JOB"), 3, name);
}

class ChiefTest : public testing::Test {
 protected:
  ChiefTest() {
    std::string pattern = testing::TempDir() + "disttrain-chief-XXXXXX";
    directory_ = ::mkdtemp(pattern.data());
    config_.name = "test";
    config_.hash = 5;
    config_.ps.resize(1);
    config_.workers.resize(1);
    // Nobody listens at these addresses, so the chief counts a lost connection as a death.
    config_.ps[0].address = "127.0.0.1:1";
    config_.workers[0].address = "127.0.0.1:2";
    start_chief();
  }
  ~ChiefTest() override {
    callers_.clear();
    chief_.reset();
    loop_.poll();
    std::filesystem::remove_all(directory_);
  }

  void start_chief() {
    chief_.reset();
    address_.clear();
    Result<JournalFile::Opened> journal = JournalFile::open(directory_);
    ASSERT_TRUE(journal) << journal.error().message;
    journal->state.journal = JournalId(7);
    chief_ =
        std::make_unique<Chief>(loop_, *transport_, log_,
                                Chief::Setup{.cluster = config_,
                                             .listen_address = "127.0.0.1:0",
                                             .journal = std::move(*journal),
                                             .seed = 1,
                                             .on_listening = [this](const std::string& address) { address_ = address; },
                                             .on_failed = [](const Error& error) { FAIL() << error.message; }});
    until("the chief listens", [this] { return !address_.empty(); });
  }

  // Runs the loop until `predicate` holds. If this takes more than 30 s, the test fails.
  template <typename Predicate>
  void until(const std::string& what, Predicate predicate) {
    const Instant deadline = daemon::now() + std::chrono::seconds(30);
    while (!predicate()) {
      ASSERT_LT(daemon::now(), deadline) << "waited for: " << what;
      loop_.run_one_for(std::chrono::milliseconds(100));
    }
  }

  Caller& call(const Hello& hello) {
    Caller& caller = callers_.emplace_back();
    const std::vector<std::byte> bytes = wire::encode(hello);
    transport::OutgoingFrame frame;
    frame.header.type = wire::FrameType::kHello;
    frame.control = bytes;
    transport_->dial(loop_, address_, frame, std::chrono::seconds(10),
                     [&caller](Result<std::unique_ptr<transport::Connection>> connection) {
                       if (connection)
                         caller.take(std::move(*connection));
                       else
                         caller.error = connection.error().message;
                     });
    until("an answer to the hello", [&caller] { return caller.hello_answer || caller.closed || caller.error != ""; });
    return caller;
  }
  Caller& call_client() { return call(Hello{.cluster = "test", .who = ClientHello{"ada"}}); }

  Hello task_hello(TaskId task, std::uint64_t incarnation) {
    TaskHello hello;
    hello.member = Member{task, Incarnation(incarnation)};
    hello.address = address_of(config_, task);
    hello.host = "here";
    hello.pid = 4711;
    hello.shards = task.role == Role::kPs ? 1 : 0;
    return Hello{.cluster = "test", .cluster_hash = 5, .who = hello};
  }

  const Welcome* welcome(const Caller& caller) {
    return caller.hello_answer ? std::get_if<Welcome>(&*caller.hello_answer) : nullptr;
  }
  const Refused* refusal(const Caller& caller) {
    return caller.hello_answer ? std::get_if<Refused>(&*caller.hello_answer) : nullptr;
  }

  json status(Caller& client, const std::string& job = "") {
    client.messages_.clear();
    client.say(StatusRequest{job, false, {}});
    until("a status", [&client] { return client.has<StatusAnswer>() || client.has<Refused>(); });
    return client.has<StatusAnswer>() ? json::parse(client.last<StatusAnswer>()->json) : json();
  }

  asio::io_context loop_;
  const std::unique_ptr<transport::Transport> transport_ = transport::make_client_transport();
  daemon::Log log_{TaskId{Role::kChief, 0}, LogConfig{.level = "error", .format = "text", .rate = 100}};
  ClusterConfig config_;
  std::string directory_;
  std::string address_;
  std::unique_ptr<Chief> chief_;
  std::list<Caller> callers_;
};

constexpr TaskId kPs0{Role::kPs, 0};
constexpr TaskId kWorker0{Role::kWorker, 0};

TEST_F(ChiefTest, TaskIsWelcomedWithTheTermAndTheTimeout) {
  const Welcome* answer = welcome(call(task_hello(kPs0, 1)));
  ASSERT_NE(answer, nullptr);
  EXPECT_EQ(answer->term, Term(1));
  EXPECT_NE(answer->journal.value, 0u);
  EXPECT_EQ(answer->heartbeat_timeout, std::chrono::seconds(1));
  EXPECT_TRUE(answer->warnings.empty());
}

TEST_F(ChiefTest, TaskWithAnotherClusterFileGetsAWarning) {
  Hello hello = task_hello(kPs0, 1);
  hello.cluster_hash = 6;
  const Welcome* answer = welcome(call(hello));
  ASSERT_NE(answer, nullptr);
  EXPECT_EQ(answer->warnings.size(), 1u);
}

TEST_F(ChiefTest, AnotherClusterIsRefusedNamingBoth) {
  Hello hello = task_hello(kPs0, 1);
  hello.cluster = "other";
  const Refused* answer = refusal(call(hello));
  ASSERT_NE(answer, nullptr);
  EXPECT_EQ(answer->code, ErrorCode::kConfig);
  EXPECT_NE(answer->reason.find("\"test\""), std::string::npos);
  EXPECT_NE(answer->reason.find("\"other\""), std::string::npos);
}

TEST_F(ChiefTest, AnotherProtocolVersionIsRefused) {
  Hello hello = task_hello(kPs0, 1);
  hello.oldest_version = 2;
  hello.newest_version = 3;
  const Refused* answer = refusal(call(hello));
  ASSERT_NE(answer, nullptr);
  EXPECT_NE(answer->reason.find("2 to 3"), std::string::npos);
}

TEST_F(ChiefTest, TaskThatIsNotInTheFileIsRefused) {
  Hello hello = task_hello(kPs0, 1);
  std::get<TaskHello>(hello.who).member.task.index = 3;
  const Refused* answer = refusal(call(hello));
  ASSERT_NE(answer, nullptr);
  EXPECT_NE(answer->reason.find("ps/3"), std::string::npos);
}

TEST_F(ChiefTest, ChannelToAChiefIsRefused) {
  EXPECT_NE(refusal(call(Hello{.cluster = "test", .who = ChannelHello{}})), nullptr);
}

TEST_F(ChiefTest, PlaceOfATaskBelongsToTheProcessThatAnswersAtItsAddress) {
  Member lives{kPs0, Incarnation(1)};
  const auto listener =
      transport_->listen(loop_, "127.0.0.1:0", {}, [this, &lives](std::unique_ptr<transport::Arrival> arrival) {
        transport::refuse(loop_, *arrival, Refused{ErrorCode::kConfig, "a probe", false, lives});
      });
  ASSERT_TRUE(listener);
  config_.ps[0].address = (*listener)->address();
  start_chief();
  Caller& first = call(task_hello(kPs0, 1));
  until("the claim is refused for good", [&] {
    first.say(Heartbeat{});
    const Refused* refused = refusal(call(task_hello(kPs0, 2)));
    return refused != nullptr && refused->ends;
  });
  EXPECT_FALSE(first.closed);
  lives.incarnation = Incarnation(2);
  until("the place is the other's", [&] { return welcome(call(task_hello(kPs0, 2))) != nullptr; });
  until("the first is closed", [&first] { return first.closed; });
}

TEST_F(ChiefTest, HeartbeatIsAnswered) {
  Caller& ps = call(task_hello(kPs0, 1));
  ps.say(Heartbeat{});
  until("an answer", [&ps] { return ps.has<HeartbeatAnswer>(); });
  EXPECT_EQ(ps.last<HeartbeatAnswer>()->term, Term(1));
}

TEST_F(ChiefTest, TermGrowsWithEachStartAndTheJournalStays) {
  const Welcome first = *welcome(call_client());
  callers_.clear();
  start_chief();
  const Welcome second = *welcome(call_client());
  EXPECT_EQ(second.term, first.term.next());
  EXPECT_EQ(second.journal, first.journal);
}

TEST_F(ChiefTest, StatusBeforeAnyJobHasNullsAndAllTasks) {
  const json answer = status(call_client());
  EXPECT_TRUE(answer["job"].is_null());
  EXPECT_TRUE(answer["state"].is_null());
  ASSERT_EQ(answer["tasks"].size(), 3u);
  EXPECT_EQ(answer["tasks"][0]["task"], "chief/0");
  EXPECT_EQ(answer["tasks"][2]["state"], "waiting");
}

TEST_F(ChiefTest, RequestForOneEventGetsTheNewest) {
  call(task_hello(kPs0, 1));
  Caller& client = call_client();
  client.say(EventsRequest{"", true, false, 0});
  until("all events", [&client] { return client.has<EventsAnswer>(); });
  const json all = json::parse(client.last<EventsAnswer>()->json);
  ASSERT_GT(all.size(), 1u);
  client.messages_.clear();
  client.say(EventsRequest{"", true, false, 1});
  until("the newest", [&client] { return client.has<EventsAnswer>(); });
  EXPECT_EQ(json::parse(client.last<EventsAnswer>()->json), json::array({all.back()}));
}

TEST_F(ChiefTest, BadJobIsRefusedWithTheConfigReadersError) {
  Caller& client = call_client();
  client.say(SubmitJob{"[job]\nnam = 3\n", 0});
  until("a refusal", [&client] { return client.has<Refused>(); });
  EXPECT_EQ(client.last<Refused>()->code, ErrorCode::kConfig);
  EXPECT_NE(client.last<Refused>()->reason.find("nam"), std::string::npos);
}

TEST_F(ChiefTest, HostileJobsAreRefusedAndTheChiefGoesOn) {
  std::string deep;
  for (int i = 0; i < 60'000; ++i) deep += "a.";
  std::string wide;
  for (int i = 0; i < 20'000; ++i) wide += "k" + std::to_string(i) + "=1\n";
  Caller& client = call_client();
  for (const std::string& text : {deep + "a = 1", wide, "x = " + std::string(100'000, '['),
                                  job_toml("first") + "\n[evaluate]\npath = \"a\\u0000\""}) {
    client.messages_.clear();
    client.say(SubmitJob{text, 0});
    until("a refusal", [&client] { return client.has<Refused>(); });
    EXPECT_EQ(client.last<Refused>()->code, ErrorCode::kConfig);
    EXPECT_LT(client.last<Refused>()->reason.size(), 16'000u);
  }
  client.say(SubmitJob{job_toml("first"), 0});
  until("a number", [&client] { return client.has<JobSubmitted>(); });
}

TEST_F(ChiefTest, SubmittedJobIsShownAndKilledAndWaitersHearOfItsEnd) {
  Caller& client = call_client();
  client.say(SubmitJob{job_toml("first"), 0});
  until("a number", [&client] { return client.has<JobSubmitted>(); });
  EXPECT_EQ(client.last<JobSubmitted>()->job, JobId(1));
  const json before = status(client);
  EXPECT_EQ(before["job"], "first");
  EXPECT_EQ(before["id"], 1);
  EXPECT_EQ(before["state"], "starting");
  EXPECT_EQ(before["reason"], "waiting for 2 of 2 tasks: ps/0, worker/0");

  Caller& waiting = call_client();
  waiting.say(StatusRequest{"first", false, std::chrono::minutes(1)});
  Caller& other = call_client();
  other.say(StopRequest{"1", true});
  until("the end", [&waiting] { return waiting.has<StatusAnswer>(); });
  const json after = json::parse(waiting.last<StatusAnswer>()->json);
  EXPECT_EQ(after["state"], "stopped");
  EXPECT_EQ(after["reason"], "killed by ada");
  until("the answer", [&other] { return other.has<RequestDone>(); });
}

TEST_F(ChiefTest, DeadTaskIsTheRootCauseWithItsLastLogLines) {
  Caller& client = call_client();
  client.say(SubmitJob{job_toml("first\"\nmax_restarts = 0\n#"), 0});
  Caller& ps = call(task_hello(kPs0, 1));
  Caller& worker = call(task_hello(kWorker0, 2));
  until("the description is asked for", [&worker] { return worker.has<DescribeJob>(); });
  const ModelSpec model{{VariableSpec{"w", {4, 2}, VariableKind::kTrainable, {}, 4, 2}}, {}, {}, {}};
  worker.say(JobDescribed{JobId(1), model, 100, 0});
  until("shards are asked for", [&ps] { return ps.has<CreateShards>(); });
  const CreateShards create = *ps.last<CreateShards>();
  EXPECT_EQ(create.generation, Generation(1));
  Heartbeat heartbeat;
  heartbeat.job = JobId(1);
  heartbeat.generation = Generation(1);
  ps.say(heartbeat);
  // The root cause shows lines of the job's own time only.
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  ps.say(LogLines{{LogLine{nanoseconds, kWorker0, 3, "out of luck"}}, 0});
  until("the line is there", [&] {
    client.messages_.clear();
    client.say(LogsRequest{"", {kPs0}, 0, 0, false});
    until("lines", [&client] { return client.has<LogLines>(); });
    return !client.last<LogLines>()->lines.empty();
  });
  ps.hang_up();
  until("the job has failed", [&] { return status(client)["state"] == "failed"; });
  const json failed = status(client);
  EXPECT_EQ(failed["root_cause"]["task"], "ps/0");
  EXPECT_NE(failed["root_cause"]["log"][0].get<std::string>().find("out of luck"), std::string::npos);
  EXPECT_EQ(failed["code"], 1);
  until("the worker is told", [&worker] { return worker.has<CloseJob>(); });
}

TEST_F(ChiefTest, FollowersGetNewLines) {
  Caller& client = call_client();
  client.say(LogsRequest{"", {kPs0}, 2, 0, true});
  until("the lines so far", [&client] { return client.has<LogLines>(); });
  client.messages_.clear();
  Caller& ps = call(task_hello(kPs0, 1));
  ps.say(LogLines{{LogLine{1, kPs0, 1, "too quiet"}, LogLine{2, kPs0, 2, "loud"}}, 0});
  until("the new line", [&client] { return client.has<LogLines>(); });
  ASSERT_EQ(client.last<LogLines>()->lines.size(), 1u);
  EXPECT_EQ(client.last<LogLines>()->lines[0].text, "loud");
}

TEST_F(ChiefTest, UnknownJobIsRefusedByName) {
  Caller& client = call_client();
  status(client, "nothing");
  ASSERT_TRUE(client.has<Refused>());
  EXPECT_NE(client.last<Refused>()->reason.find("nothing"), std::string::npos);
}

TEST_F(ChiefTest, JobsSurviveARestart) {
  Caller& client = call_client();
  client.say(SubmitJob{job_toml("first"), 0});
  client.say(SubmitJob{job_toml("second"), 0});
  until("the second number",
        [&client] { return client.has<JobSubmitted>() && client.last<JobSubmitted>()->job == JobId(2); });
  callers_.clear();
  start_chief();
  Caller& again = call_client();
  EXPECT_EQ(status(again, "first")["state"], "starting");
  EXPECT_EQ(status(again, "first")["reason"], "waiting for 2 of 2 tasks: ps/0, worker/0");
  EXPECT_EQ(status(again, "second")["state"], "queued");
}

}  // namespace
}  // namespace disttrain::chiefd
