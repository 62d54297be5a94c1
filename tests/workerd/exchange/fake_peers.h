// The peers of a worker, which a test plays over real TCP on loopback, or over shared memory: shards that apply each
// frame at once, and a scripted chief. All of them run on the test's own loop.
#pragma once

#include <gtest/gtest.h>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/layout.h"
#include "common/messages/session.h"
#include "transport/factory/factory.h"
#include "transport/wire/codec.h"

namespace disttrain::workerd {

// Runs the loop until `done` returns true. If this takes too long, the test fails.
inline void run_until(asio::io_context& loop, const std::function<bool()>& done) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(15);
  while (!done()) {
    if (std::chrono::steady_clock::now() > deadline) {
      ADD_FAILURE() << "nothing happened for 15 s";
      return;
    }
    loop.run_one_for(std::chrono::milliseconds(100));
  }
}

// The transport of workers and shards: tcp, or what DISTTRAIN_TEST_TRANSPORT says.
inline std::unique_ptr<transport::Transport> transport_of_steps() {
  const char* const kind = std::getenv("DISTTRAIN_TEST_TRANSPORT");
  TransportConfig config;
  config.kind = kind != nullptr ? kind : "tcp";
  auto made = transport::make_transport(config, "test");
  EXPECT_TRUE(made) << made.error().message;
  return std::move(*made);
}

// One accepted connection.
class Peer : public transport::ConnectionHandler {
 public:
  using OnFrame = std::function<void(Peer&, const wire::FrameHeader&, wire::Bytes control, wire::Bytes payload)>;

  Peer(std::unique_ptr<transport::Connection> taken, OnFrame on_frame)
      : connection(std::move(taken)), on_frame_(std::move(on_frame)) {
    connection->start(*this);
  }

  void send(wire::FrameType type, wire::Bytes control, wire::Bytes payload = {}, JobId job = {},
            Generation generation = {}, std::optional<std::uint64_t> answer_at = std::nullopt) {
    transport::OutgoingFrame frame;
    frame.answer_at = answer_at;
    frame.header.type = type;
    frame.header.job = job;
    frame.header.generation = generation;
    frame.control = control;
    frame.payload = payload;
    frame.lifetime = transport::Payload::kCopied;
    connection->send(frame);
  }
  void tell(const wire::ControlMessage& message) {
    const auto encoded = wire::encode(message);
    ASSERT_TRUE(encoded);
    send(encoded->type, encoded->control(), encoded->payload());
  }

  std::unique_ptr<transport::Connection> connection;
  bool closed = false;
  bool is_open = false;
  std::optional<ChannelHello> channel;

 private:
  Result<transport::MutableBytes> payload_landing(const wire::FrameHeader& header, wire::Bytes) override {
    landing_.resize(header.payload_bytes);
    return transport::MutableBytes(landing_);
  }
  void on_frame(const wire::FrameHeader& header, wire::Bytes control, wire::Bytes payload) override {
    on_frame_(*this, header, control, payload);
  }
  void on_sent(std::uint64_t) override {}
  void on_closed(const Error&) override { closed = true; }

  const OnFrame on_frame_;
  std::vector<std::byte> landing_;
};

// All shards of a layout, at one address. They are asynchronous: each frame is added to the parameters when it arrives.
class FakeShards {
 public:
  static constexpr std::chrono::milliseconds kBeat{20};

  FakeShards(asio::io_context& loop, Layout layout_of_job) : layout(std::move(layout_of_job)), loop_(loop) {
    values.assign(element_count(layout.model), 0.0F);
    versions.assign(layout.shards, 0);
    last.assign(layout.shards, 0);
    auto listener = transport_->listen(
        loop, "127.0.0.1:0", {}, [this](std::unique_ptr<transport::Arrival> arrival) { welcome(std::move(arrival)); });
    EXPECT_TRUE(listener);
    listener_ = std::move(*listener);
    keep_alive();
  }
  ~FakeShards() { *alive_ = false; }

  // From now on, the shards send only answers, and no keep-alives.
  void keep_silent() { is_silent_ = true; }

  std::vector<Owner> owners() const {
    return std::vector<Owner>(layout.shards, Owner{Member{TaskId{Role::kPs, 0}, Incarnation(1)}, listener_->address()});
  }

  Layout layout;
  std::vector<float> values;
  std::vector<std::uint64_t> versions;  // by shard
  std::vector<std::uint64_t> last;      // by shard: frames taken
  std::vector<std::unique_ptr<Peer>> peers;
  std::uint64_t hellos = 0;
  std::uint64_t beats = 0;     // at least one each kBeat
  std::uint64_t examples = 0;  // examples that shard 0 has seen
  std::vector<Interval> visited;
  // If this is set, it may answer a channel's hello. If it returns true, the shards don't send Welcome.
  std::function<bool(Peer&, const ChannelHello&)> answer_hello;
  // Called before a push or a pull is handled. If it returns true, the shards ignore the frame.
  std::function<bool(Peer&, const wire::FrameHeader&)> intercept;
  std::uint64_t finish_after = 0;  // steps at shard 0, 0 = never

 private:
  // Sends something to each worker at regular intervals, as real shards do.
  void keep_alive() {
    timer_.expires_after(kBeat);
    timer_.async_wait([this, alive = alive_](asio::error_code cancelled) {
      if (cancelled || !*alive) return;
      ++beats;
      if (!is_silent_)
        for (const auto& peer : peers)
          if (peer->channel && peer->is_open) peer->send(wire::FrameType::kAlive, {});
      keep_alive();
    });
  }

  void welcome(std::unique_ptr<transport::Arrival> arrival) {
    ++hellos;
    const auto hello = wire::decode_hello(arrival->hello());
    ASSERT_TRUE(hello) << hello.error().message;
    const auto* channel = std::get_if<ChannelHello>(&hello->who);
    ASSERT_NE(channel, nullptr);
    peers.push_back(std::make_unique<Peer>(arrival->adopt(loop_),
                                           [this](Peer& peer, const wire::FrameHeader& header, wire::Bytes control,
                                                  wire::Bytes payload) { on_frame(peer, header, control, payload); }));
    Peer& peer = *peers.back();
    peer.channel = *channel;
    if (answer_hello && answer_hello(peer, *channel)) return;
    Welcome answer;
    answer.last_sequence = Sequence(last[channel->shard.value]);
    peer.send(wire::FrameType::kWelcome, wire::encode(answer));
    peer.is_open = true;
  }

  void on_frame(Peer& peer, const wire::FrameHeader& header, wire::Bytes control, wire::Bytes payload) {
    if (intercept && intercept(peer, header)) return;
    const std::uint32_t s = peer.channel->shard.value;
    if (header.type == wire::FrameType::kPull) {
      const auto pull = wire::decode_pull(control);
      ASSERT_TRUE(pull);
      return answer_all(peer, s, PushOutcome::kNone, pull->id);
    }
    ASSERT_EQ(header.type, wire::FrameType::kPush);
    const auto push = wire::decode_push(control);
    ASSERT_TRUE(push) << push.error().message;
    PushOutcome outcome = PushOutcome::kDuplicate;
    if (header.sequence.value > last[s]) {
      ASSERT_EQ(header.sequence.value, last[s] + 1) << "a gap";
      last[s] = header.sequence.value;
      outcome = push->skipped ? PushOutcome::kSkipped : PushOutcome::kApplied;
      apply(s, *push, payload);
    }
    if (push->want == Want::kAll) return answer_all(peer, s, outcome, 0);
    if (push->want == Want::kBucket) return answer(peer, s, push->bucket, outcome, push->last, 0);
    peer.send(wire::FrameType::kAcknowledge,
              wire::encode(Acknowledge{Sequence(last[s]), outcome, finished()}, scratch_), {}, header.job,
              header.generation);
  }

  void apply(std::uint32_t s, const Push& push, wire::Bytes payload) {
    const Bucket& bucket = layout.buckets.at(push.bucket.value);
    ASSERT_EQ(bucket.shard.value, s);
    if (!payload.empty()) {
      ASSERT_EQ(payload.size(), bucket.words * sizeof(float));
      const auto* gradients = reinterpret_cast<const float*>(payload.data());
      for (std::uint64_t i = 0; i < bucket.words; ++i) values[bucket.flat_begin + i] += gradients[i];
    }
    if (!push.last) return;
    ++versions[s];
    if (s != 0) return;
    examples += push.examples;
    visited.insert(visited.end(), push.visited.begin(), push.visited.end());
  }

  bool finished() const { return finish_after > 0 && versions[0] >= finish_after; }

  void answer_all(Peer& peer, std::uint32_t s, PushOutcome outcome, std::uint64_t pull_id) {
    const auto buckets = buckets_of(layout, ShardId(s));
    for (std::size_t i = buckets.size(); i-- > 0;) answer(peer, s, buckets[i], outcome, i == 0, pull_id);
  }
  void answer(Peer& peer, std::uint32_t s, BucketId bucket, PushOutcome outcome, bool is_last, std::uint64_t pull_id) {
    const Bucket& place = layout.buckets[bucket.value];
    Parameters parameters;
    parameters.bucket = bucket;
    parameters.version = Step(versions[s]);
    parameters.outcome = outcome;
    parameters.last = is_last;
    parameters.finished = finished();
    parameters.roster = RosterVersion(1);
    parameters.pull_id = pull_id;
    parameters.acknowledged = Sequence(last[s]);
    peer.send(wire::FrameType::kParameters, wire::encode(parameters, scratch_),
              std::as_bytes(std::span(values).subspan(place.flat_begin, place.words)), peer.channel->job,
              peer.channel->generation, place.flat_begin * sizeof(float));
  }

  asio::io_context& loop_;
  asio::steady_timer timer_{loop_};
  bool is_silent_ = false;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  const std::unique_ptr<transport::Transport> transport_ = transport_of_steps();
  wire::ScratchBuffer scratch_;
  std::unique_ptr<transport::Listener> listener_;
};

// A chief that keeps the worker's messages by type, and sends the messages that the test wants.
class FakeChief {
 public:
  explicit FakeChief(asio::io_context& loop, const std::string& at = "127.0.0.1:0") : loop_(loop) {
    auto listener = transport_->listen(
        loop, at, {}, [this](std::unique_ptr<transport::Arrival> arrival) { take(std::move(arrival)); });
    EXPECT_TRUE(listener) << listener.error().message;
    listener_ = std::move(*listener);
  }

  const std::string& address() const { return listener_->address(); }
  Peer& worker() { return *peers.back(); }

  template <typename T>
  std::vector<T> heard() const {
    std::vector<T> found;
    for (const wire::ControlMessage& message : messages)
      if (const T* one = std::get_if<T>(&message)) found.push_back(*one);
    return found;
  }
  template <typename T>
  T wait_for() {
    run_until(loop_, [this] { return !heard<T>().empty(); });
    return heard<T>().empty() ? T{} : heard<T>().back();
  }

  std::vector<std::unique_ptr<Peer>> peers;
  std::vector<TaskHello> hellos;
  std::vector<wire::ControlMessage> messages;
  JournalId journal{77};
  std::function<bool(Peer&)> answer_hello;  // true: it has answered
  std::function<void(Peer&, const wire::ControlMessage&)> on_message;

 private:
  void take(std::unique_ptr<transport::Arrival> arrival) {
    const auto hello = wire::decode_hello(arrival->hello());
    ASSERT_TRUE(hello) << hello.error().message;
    hellos.push_back(std::get<TaskHello>(hello->who));
    peers.push_back(std::make_unique<Peer>(arrival->adopt(loop_), [this](Peer& peer, const wire::FrameHeader& header,
                                                                         wire::Bytes control, wire::Bytes payload) {
      auto message = wire::decode_control(header.type, control, payload);
      ASSERT_TRUE(message) << message.error().message;
      messages.push_back(*message);
      if (on_message) on_message(peer, *message);
    }));
    if (answer_hello && answer_hello(*peers.back())) return;
    Welcome welcome;
    welcome.term = Term(1);
    welcome.journal = journal;
    welcome.heartbeat_timeout = std::chrono::milliseconds(500);
    peers.back()->send(wire::FrameType::kWelcome, wire::encode(welcome));
  }

  asio::io_context& loop_;
  const std::unique_ptr<transport::Transport> transport_ = transport::make_client_transport();
  std::unique_ptr<transport::Listener> listener_;
};

}  // namespace disttrain::workerd
