// The links of a real ps to workers, and to shards on other ps tasks. The ps reports a broken link only if messages may
// have been lost with it.
#include <asio/ip/tcp.hpp>

#include "tests/psd/shell_fixture.h"

namespace disttrain::psd::test {
namespace {

// The ps has shard 0, the pacer. The test plays another ps, which has shard 1.
class PeerLinkTest : public PsShell {
 protected:
  using PsShell::PsShell;

  void create_pacer() {
    CreateShards order = this->order(2, 1, "sync");
    order.owners[1] = Owner{other_, "127.0.0.1:1"};
    create_job(order);
  }
  std::unique_ptr<FakePeer> open_peer() {
    auto peer = dial(hello_of(ShardPeerHello{JobId(5), Generation(3), ShardId(1), other_, 99}));
    EXPECT_TRUE(peer->answer && std::holds_alternative<Welcome>(*peer->answer));
    return peer;
  }
  // Sends a message that a new link wouldn't repeat, and waits until it has arrived.
  void carry(FakePeer& peer) {
    Staged staged;
    staged.shard = ShardId(1);
    staged.step = Step(1);
    peer.send(wire::FrameType::kStaged, wire::encode(staged, scratch_), {});
    let_heartbeats_pass(2);
  }
  // With more = 30, this waits for longer than the ps needs to report a lost link.
  void let_heartbeats_pass(int more) {
    const int before = chief_.heartbeats;
    EXPECT_TRUE(until([&] { return chief_.heartbeats >= before + more; }));
  }

  wire::ScratchBuffer scratch_;
  const Member other_{TaskId{Role::kPs, 1}, Incarnation(4712)};
};

class LoudPeerLinkTest : public PeerLinkTest {
 protected:
  LoudPeerLinkTest() : PeerLinkTest(2, std::chrono::milliseconds(500), 4, "warn") {}
};

TEST_F(PeerLinkTest, ALinkLostBeforeItCarriedAnythingGivesNoVerdict) {
  create_pacer();
  open_peer()->close();
  let_heartbeats_pass(2);
  auto again = open_peer();
  let_heartbeats_pass(30);
  EXPECT_FALSE(chief_.take<TaskFailed>());
  EXPECT_FALSE(chief_.take<Accusation>());
}

TEST_F(PeerLinkTest, ALinkLostAfterItCarriedSomethingGivesItsVerdict) {
  create_pacer();
  auto peer = open_peer();
  carry(*peer);
  peer->close();
  std::optional<Accusation> accusation;
  ASSERT_TRUE(until([&] { return (accusation = chief_.take<Accusation>()).has_value(); }));
  EXPECT_EQ(accusation->accused, other_.task);
  std::optional<TaskFailed> failed;
  ASSERT_TRUE(until([&] { return (failed = chief_.take<TaskFailed>()).has_value(); }));
  EXPECT_EQ(failed->code, ErrorCode::kUnavailable);
}

// The other ps lost its end of the first link, and with it perhaps messages on their way. It opens another link.
TEST_F(PeerLinkTest, APeerThatOpensAnotherLinkAfterOneThatCarriedSomethingGivesTheVerdict) {
  create_pacer();
  auto peer = open_peer();
  carry(*peer);
  auto again = open_peer();
  EXPECT_TRUE(until([&] { return chief_.take<TaskFailed>().has_value(); }));
}

TEST_F(PeerLinkTest, APeerOfWhichNothingComesIsAccused) {
  create_pacer();
  auto peer = open_peer();
  carry(*peer);
  std::optional<Accusation> accusation;
  ASSERT_TRUE(until([&] { return (accusation = chief_.take<Accusation>()).has_value(); }));
  EXPECT_EQ(accusation->accused, other_.task);
  EXPECT_GT(accusation->lasts, std::chrono::milliseconds(500));
  EXPECT_GT(peer->alive, 0) << "this end has shown life";
}

TEST_F(LoudPeerLinkTest, APacerThatDoesNotAnswerIsAccusedAgainAndAgainAndLoggedOnce) {
  testing::internal::CaptureStderr();
  CreateShards order = this->order(2, 1, "sync");
  order.owners[0] = Owner{other_, "127.0.0.1:1"};
  ASSERT_TRUE(until([&] { return chief_.connected(); }));
  chief_.send(order);
  std::optional<Accusation> first;
  ASSERT_TRUE(until([&] { return (first = chief_.take<Accusation>()).has_value(); }));
  EXPECT_EQ(first->accused, other_.task);
  std::optional<Accusation> second;
  ASSERT_TRUE(until([&] { return (second = chief_.take<Accusation>()).has_value(); }));
  EXPECT_GT(second->lasts, first->lasts);
  const std::string log = testing::internal::GetCapturedStderr();
  const std::size_t told = log.find("can't reach shard 0");
  ASSERT_NE(told, std::string::npos) << log;
  EXPECT_EQ(log.find("can't reach shard 0", told + 1), std::string::npos) << log;
}

// The peer's process hangs: its host accepts the connection, but nobody reads from it.
TEST_F(PeerLinkTest, APacerThatTakesTheConnectionAndSaysNothingIsAccused) {
  asio::ip::tcp::acceptor silent(loop_, {asio::ip::address_v4::loopback(), 0});
  CreateShards order = this->order(2, 1, "sync");
  order.owners[0] = Owner{other_, "127.0.0.1:" + std::to_string(silent.local_endpoint().port())};
  ASSERT_TRUE(until([&] { return chief_.connected(); }));
  chief_.send(order);
  std::optional<Accusation> accusation;
  ASSERT_TRUE(until([&] { return (accusation = chief_.take<Accusation>()).has_value(); }));
  EXPECT_EQ(accusation->accused, other_.task);
}

TEST_F(PeerLinkTest, AChannelShowsLifeWhereNothingIsAsked) {
  create_job(1, 1);
  auto channel = open_channel(0, 0);
  EXPECT_TRUE(until([&] { return channel->alive >= 5; }));
  EXPECT_FALSE(channel->closed);
}

}  // namespace
}  // namespace disttrain::psd::test
