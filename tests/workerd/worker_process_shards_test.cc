// Channels to shards that are cut, refused or full of garbage.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/workerd/worker_process_fixture.h"

namespace disttrain::workerd {
namespace {

TEST_F(WorkerProcessTest, CutChannelsLoseAndRepeatNothing) {
  start_worker();
  lend_all();
  std::uint64_t frames = 0;
  shards_.intercept = [&frames](Peer& peer, const wire::FrameHeader&) {
    if (++frames % 7 != 0) return false;
    peer.connection->close();  // closes the connection before the frame is handled
    return true;
  };
  open_and_start();
  chief_->wait_for<WorkerFinished>();
  EXPECT_EQ(shards_.examples, kRecords);
  EXPECT_EQ(shards_.values, expected());
  EXPECT_FALSE(chief_->heard<Accusation>().empty());
}

TEST_F(WorkerProcessTest, ShardThatSendsGarbageIsAccusedAndTrainingGoesOnOverANewChannel) {
  start_worker();
  lend_all();
  std::uint64_t frames = 0;
  const Peer* garbler = nullptr;  // the peer that sends garbage; its later frames are ignored
  shards_.intercept = [&frames, &garbler](Peer& peer, const wire::FrameHeader&) {
    if (++frames != 6) return &peer == garbler;
    garbler = &peer;
    const std::vector<std::byte> nonsense(24, std::byte{0xff});
    peer.send(wire::FrameType::kParameters, nonsense, {}, JobId(5), Generation(1));
    return true;
  };
  open_and_start();
  chief_->wait_for<WorkerFinished>();
  EXPECT_EQ(shards_.values, expected());
  EXPECT_EQ(chief_->wait_for<Accusation>().accused, (TaskId{Role::kPs, 0}));
}

TEST_F(WorkerProcessTest, RefusedChannelFailsTheJobNotTheTask) {
  shards_.answer_hello = [](Peer& peer, const ChannelHello&) {
    peer.send(wire::FrameType::kRefused, wire::encode(Refused{ErrorCode::kConfig, "wrong token"}));
    return true;
  };
  start_worker();
  chief_->worker().tell(open_job());
  const TaskFailed failed = chief_->wait_for<TaskFailed>();
  EXPECT_NE(failed.reason.find("wrong token"), std::string::npos) << failed.reason;
  chief_->worker().tell(CloseJob{JobId(5), Generation(1), ""});
  chief_->wait_for<JobClosed>();
}

}  // namespace
}  // namespace disttrain::workerd
