#include "workerd/exchange/ps_exchange.h"

#include <gtest/gtest.h>

#include "tests/workerd/exchange/fake_peers.h"

namespace disttrain::workerd {
namespace {

Layout two_shards() {
  Layout layout;
  layout.shards = 2;
  layout.model.variables = {VariableSpec{"v", {12}, VariableKind::kTrainable, {}, 1, 1}};
  layout.variable_begins = {0};
  layout.buckets = {Bucket{ShardId(0), 0, 0, 4}, Bucket{ShardId(1), 4, 0, 4}, Bucket{ShardId(0), 8, 4, 4}};
  return layout;
}

constexpr Duration kHeartbeatTimeout = std::chrono::milliseconds(200);

class PsExchangeTest : public ::testing::Test, public ExchangeHandler {
 protected:
  PsExchangeTest() : shards_(loop_, two_shards()), parameters_(12, -1.0F), gradients_(12, 0.0F) {}

  void open() {
    PsExchangeOptions options;
    options.cluster = "test";
    options.job = JobId(3);
    options.generation = Generation(1);
    options.token = 99;
    options.self = Member{TaskId{Role::kWorker, 1}, Incarnation(5)};
    options.owners = shards_.owners();
    options.timeouts = derive_timeouts(kHeartbeatTimeout);
    exchange_ = std::make_unique<PsExchange>(loop_, *transport_, shards_.layout, options, *this);
    exchange_->open(Roster{});
  }
  void open_and_wait() {
    open();
    run_until(loop_, [this] { return opened_.size() == 2; });
  }

  void on_channel_opened(ShardId shard, Sequence last) override { opened_.push_back({shard, last}); }
  void on_channel_lost(ShardId shard, const std::string& reason, Duration) override {
    lost_.push_back(shard);
    reason_ = reason;
  }
  void on_unreachable(ShardId, const std::string& reason, Duration lasts) override {
    unreachable_.push_back(lasts);
    reason_ = reason;
  }
  void on_reached(ShardId shard) override { reached_.push_back(shard); }
  void on_refused(const Error& why) override { refused_ = why; }
  void on_parameters(ShardId, const Parameters& parameters) override { answers_.push_back(parameters); }
  void on_mark_taken(ShardId, const MarkTaken& taken) override { marks_taken_.push_back(taken); }
  void on_acknowledge(ShardId, const Acknowledge& acknowledge) override { acknowledged_.push_back(acknowledge); }
  std::span<float> landing() override { return parameters_; }

  asio::io_context loop_;
  const std::unique_ptr<transport::Transport> transport_ = transport_of_steps();
  FakeShards shards_;
  std::vector<float> parameters_;
  std::vector<float> gradients_;
  std::vector<std::pair<ShardId, Sequence>> opened_;
  std::vector<ShardId> lost_;
  std::vector<Duration> unreachable_;
  std::vector<ShardId> reached_;
  std::string reason_;
  std::optional<Error> refused_;
  std::vector<Parameters> answers_;
  std::vector<Acknowledge> acknowledged_;
  std::vector<MarkTaken> marks_taken_;
  std::unique_ptr<PsExchange> exchange_;
};

TEST_F(PsExchangeTest, HelloShowsJobShardWorkerAndToken) {
  open_and_wait();
  ASSERT_EQ(shards_.peers.size(), 2U);
  const ChannelHello& hello = *shards_.peers[0]->channel;
  EXPECT_EQ(hello.job, JobId(3));
  EXPECT_EQ(hello.token, 99U);
  EXPECT_EQ(hello.worker.incarnation, Incarnation(5));
}

TEST_F(PsExchangeTest, PulledParametersLandInTheirPlaces) {
  for (std::size_t i = 0; i < 12; ++i) shards_.values[i] = static_cast<float>(i);
  open_and_wait();
  exchange_->pull(SendPull{ShardId(0), Pull{1}});
  exchange_->pull(SendPull{ShardId(1), Pull{1}});
  run_until(loop_, [this] { return answers_.size() == 3; });
  EXPECT_EQ(parameters_, shards_.values);
}

TEST_F(PsExchangeTest, PushedBucketLeavesFromItsPlaceAndItsAnswerIsThePull) {
  open_and_wait();
  for (std::size_t i = 0; i < 12; ++i) gradients_[i] = static_cast<float>(100 + i);
  Push push;
  push.bucket = BucketId(1);
  push.want = Want::kAll;
  push.last = true;
  exchange_->push(SendPush{ShardId(1), Sequence(1), push, 0, true}, gradients_);
  run_until(loop_, [this] { return answers_.size() == 1; });
  EXPECT_EQ(answers_[0].acknowledged, Sequence(1));
  EXPECT_EQ(answers_[0].version, Step(1));
  EXPECT_EQ(parameters_[4], 104.0F);
  EXPECT_EQ(parameters_[7], 107.0F);
  EXPECT_EQ(parameters_[8], -1.0F);
}

TEST_F(PsExchangeTest, TemporaryRefusalIsDialledAgain) {
  shards_.answer_hello = [this](Peer& peer, const ChannelHello&) {
    if (shards_.hellos > 4) return false;
    peer.send(wire::FrameType::kRefused, wire::encode(Refused{ErrorCode::kTemporary, "not yet"}));
    return true;
  };
  open_and_wait();
  EXPECT_FALSE(refused_);
  EXPECT_TRUE(lost_.empty()) << "what was never open can't be lost";
}

TEST_F(PsExchangeTest, OtherProcessAtTheAddressOfThePsIsComplainedOf) {
  shards_.answer_hello = [](Peer& peer, const ChannelHello&) {
    const Member other{TaskId{Role::kPs, 0}, Incarnation(777)};
    peer.send(wire::FrameType::kRefused, wire::encode(Refused{ErrorCode::kTemporary, "not yet", false, other}));
    return true;
  };
  open();
  run_until(loop_, [this] { return unreachable_.size() >= 3; });
  EXPECT_NE(reason_.find("another process answers at its address"), std::string::npos) << reason_;
  EXPECT_FALSE(refused_);
}

TEST_F(PsExchangeTest, OtherRefusalsEndTheAttemptAndNameTheShard) {
  shards_.answer_hello = [](Peer& peer, const ChannelHello&) {
    peer.send(wire::FrameType::kRefused, wire::encode(Refused{ErrorCode::kConfig, "wrong cluster"}));
    return true;
  };
  open();
  run_until(loop_, [this] { return refused_.has_value(); });
  EXPECT_EQ(refused_->code, ErrorCode::kConfig);
  EXPECT_NE(refused_->message.find("ps/0"), std::string::npos) << refused_->message;
  EXPECT_NE(refused_->message.find("wrong cluster"), std::string::npos) << refused_->message;
}

// The worker reports again and again that a ps doesn't answer, because the chief decides what to do about it.
TEST_F(PsExchangeTest, PsThatDoesNotAnswerIsComplainedOfAgainAndAgain) {
  bool answers = false;
  shards_.answer_hello = [&answers](Peer& peer, const ChannelHello&) {
    if (!answers) peer.connection->close();
    return !answers;
  };
  open();
  run_until(loop_, [this] { return unreachable_.size() >= 3; });
  EXPECT_GT(unreachable_.front(), std::chrono::milliseconds(200));
  EXPECT_LT(unreachable_.front(), unreachable_.back());
  EXPECT_TRUE(reached_.empty());
  EXPECT_FALSE(refused_);
  answers = true;
  run_until(loop_, [this] { return opened_.size() == 2; });
  EXPECT_EQ(reached_.size(), 1u) << "both shards are of one ps";
}

TEST_F(PsExchangeTest, PsThatAnswersButNeverTakesTheChannelIsGivenUp) {
  shards_.answer_hello = [](Peer& peer, const ChannelHello&) {
    peer.send(wire::FrameType::kRefused, wire::encode(Refused{ErrorCode::kTemporary, "not yet"}));
    return true;
  };
  open();
  run_until(loop_, [this] { return refused_.has_value(); });
  EXPECT_EQ(refused_->code, ErrorCode::kUnavailable);
  EXPECT_TRUE(unreachable_.empty()) << "its link is well";
}

TEST_F(PsExchangeTest, OpenChannelOnWhichNothingComesIsLostAndDialledAgain) {
  open_and_wait();
  shards_.keep_silent();
  run_until(loop_, [this] { return lost_.size() == 2; });
  EXPECT_NE(reason_.find("no answer"), std::string::npos) << reason_;
  run_until(loop_, [this] { return opened_.size() == 4; });
  EXPECT_FALSE(reached_.empty());
}

TEST_F(PsExchangeTest, OpenChannelThatIsKeptAliveStaysThoughNothingIsAsked) {
  open_and_wait();
  // Waits for longer than a channel may be silent.
  const std::uint64_t last = shards_.beats + 3 * derive_timeouts(kHeartbeatTimeout).silent / FakeShards::kBeat;
  run_until(loop_, [&] { return shards_.beats >= last; });
  EXPECT_TRUE(lost_.empty());
}

TEST_F(PsExchangeTest, SilentPeerIsDroppedAndDialledAgain) {
  shards_.answer_hello = [this](Peer&, const ChannelHello&) { return shards_.hellos <= 2; };
  open_and_wait();
  EXPECT_GE(shards_.hellos, 4U);
}

TEST_F(PsExchangeTest, WrongHelloAnswerIsNotAnOpenChannel) {
  shards_.answer_hello = [this](Peer& peer, const ChannelHello&) {
    if (shards_.hellos > 2) return false;
    wire::ScratchBuffer scratch;
    peer.send(wire::FrameType::kAcknowledge, wire::encode(Acknowledge{}, scratch), {}, JobId(3), Generation(1));
    return true;
  };
  open_and_wait();
  EXPECT_GE(shards_.hellos, 4U);
}

TEST_F(PsExchangeTest, LostChannelIsToldOnceAndOpenedAgainWithTheLastFrame) {
  open_and_wait();
  Push push;
  push.bucket = BucketId(0);
  push.want = Want::kNothing;
  exchange_->push(SendPush{ShardId(0), Sequence(1), push, 0, true}, gradients_);
  run_until(loop_, [this] { return !acknowledged_.empty(); });
  for (const auto& peer : shards_.peers)
    if (peer->channel->shard == ShardId(0)) peer->connection->close();
  run_until(loop_, [this] { return opened_.size() == 3; });
  EXPECT_EQ(lost_, std::vector<ShardId>{ShardId(0)});
  EXPECT_EQ(opened_[2].first, ShardId(0));
  EXPECT_EQ(opened_[2].second, Sequence(1));
}

// If a peer sends malformed bytes, its channel is closed. These bytes write nothing outside the parameters.
class PsExchangeNonsenseTest : public PsExchangeTest {
 protected:
  void expect_lost_after(const std::function<void(Peer&)>& nonsense) {
    open_and_wait();
    nonsense(*shards_.peers[0]);
    run_until(loop_, [this] { return !lost_.empty(); });
    EXPECT_TRUE(answers_.empty());
    EXPECT_EQ(parameters_, std::vector<float>(12, -1.0F));
  }
};

TEST_F(PsExchangeNonsenseTest, ParametersOfAForeignBucket) {
  expect_lost_after([](Peer& peer) {
    wire::ScratchBuffer scratch;
    Parameters parameters;
    parameters.bucket = peer.channel->shard == ShardId(0) ? BucketId(1) : BucketId(0);
    const std::vector<std::byte> payload(16);
    peer.send(wire::FrameType::kParameters, wire::encode(parameters, scratch), payload, JobId(3), Generation(1));
  });
}

TEST_F(PsExchangeNonsenseTest, ParametersOfABucketThatIsNone) {
  expect_lost_after([](Peer& peer) {
    wire::ScratchBuffer scratch;
    Parameters parameters;
    parameters.bucket = BucketId(1000);
    const std::vector<std::byte> payload(16);
    peer.send(wire::FrameType::kParameters, wire::encode(parameters, scratch), payload, JobId(3), Generation(1));
  });
}

TEST_F(PsExchangeNonsenseTest, ParametersOfTheWrongLength) {
  expect_lost_after([](Peer& peer) {
    wire::ScratchBuffer scratch;
    Parameters parameters;
    parameters.bucket = peer.channel->shard == ShardId(0) ? BucketId(0) : BucketId(1);
    const std::vector<std::byte> payload(20);
    peer.send(wire::FrameType::kParameters, wire::encode(parameters, scratch), payload, JobId(3), Generation(1));
  });
}

TEST_F(PsExchangeNonsenseTest, ControlPartThatIsNoMessage) {
  expect_lost_after([](Peer& peer) {
    const std::vector<std::byte> nonsense(24, std::byte{0xff});
    peer.send(wire::FrameType::kAcknowledge, nonsense, {}, JobId(3), Generation(1));
  });
}

TEST_F(PsExchangeTest, FramesOfAnotherGenerationAreIgnored) {
  open_and_wait();
  wire::ScratchBuffer scratch;
  shards_.peers[0]->send(wire::FrameType::kAcknowledge, wire::encode(Acknowledge{Sequence(7)}, scratch), {}, JobId(3),
                         Generation(9));
  shards_.peers[0]->send(wire::FrameType::kAcknowledge, wire::encode(Acknowledge{Sequence(8)}, scratch), {}, JobId(3),
                         Generation(1));
  run_until(loop_, [this] { return !acknowledged_.empty(); });
  EXPECT_EQ(acknowledged_[0].acknowledged, Sequence(8));
}

TEST_F(PsExchangeTest, NothingIsCalledAfterClose) {
  open();
  run_until(loop_, [this] { return !shards_.peers.empty(); });
  ASSERT_TRUE(opened_.empty()) << "the welcome is on its way";
  exchange_->close();
  run_until(loop_, [this] { return shards_.peers[0]->closed; });
  EXPECT_TRUE(opened_.empty());
  EXPECT_FALSE(refused_);
}

}  // namespace
}  // namespace disttrain::workerd
