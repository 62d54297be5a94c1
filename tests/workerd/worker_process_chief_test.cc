// A chief that asks again, comes back, refuses the worker, or sends what the worker must not obey.
#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <vector>

#include "tests/workerd/worker_process_fixture.h"

namespace disttrain::workerd {
namespace {

TEST_F(WorkerProcessTest, LayoutOfAnotherModelIsRefused) {
  start_worker();
  OpenJob open = open_job();
  open.layout.model.variables[0].name = "other";
  chief_->worker().tell(open);
  EXPECT_EQ(chief_->wait_for<TaskFailed>().code, ErrorCode::kConfig);
  // A later chief may not have heard this answer, so it must ask again.
  const std::size_t hellos = chief_->hellos.size();
  chief_->worker().connection->close();
  run_until(loop_, [this, hellos] { return chief_->hellos.size() > hellos; });
  EXPECT_EQ(chief_->hellos.back().job, open.job);
  EXPECT_EQ(chief_->hellos.back().generation, Generation());
}

TEST_F(WorkerProcessTest, MessagesOfAnotherGenerationAreIgnored) {
  start_worker();
  lend_all();
  chief_->worker().tell(open_job());
  chief_->wait_for<JobOpened>();
  chief_->worker().tell(StartJob{JobId(5), Generation(2)});
  chief_->worker().tell(StartJob{JobId(4), Generation(1)});
  chief_->worker().tell(CloseJob{JobId(4), Generation(1), ""});
  EXPECT_EQ(chief_->wait_for<JobClosed>().job, JobId(4)) << "unknown jobs are closed all the same";
  EXPECT_TRUE(chief_->heard<LeaseRequest>().empty()) << "nothing has started";
  chief_->worker().tell(StartJob{JobId(5), Generation(1)});
  chief_->wait_for<WorkerFinished>();
}

TEST_F(WorkerProcessTest, ChiefThatComesBackHearsWhatItMissed) {
  start_worker();
  lend_all();
  close_gate();
  open_and_start();
  run_until(loop_, [this] { return is_inside(); });
  // The worker needs two leases. It asks for the second one only when the chief is back.
  chief_->worker().connection->close();
  open_gate();
  run_until(loop_, [this] { return chief_->peers.size() > 1; });
  EXPECT_EQ(chief_->hellos.back().job, JobId(5));
  EXPECT_EQ(chief_->hellos.back().journal, JournalId(77));
  EXPECT_EQ(chief_->wait_for<WorkerFinished>().steps, 13U);
  EXPECT_EQ(shards_.values, expected());
}

TEST_F(WorkerProcessTest, WhatTheChiefAsksTwiceIsAnsweredTwiceAndDoneOnce) {
  start_worker();
  lend_all();
  const auto reconnect = [this] {
    const std::size_t before = chief_->peers.size();
    chief_->worker().connection->close();
    run_until(loop_, [&] { return chief_->peers.size() > before; });
    chief_->messages.clear();
  };
  chief_->worker().tell(DescribeJob{JobId(5), job_config()});
  chief_->wait_for<JobDescribed>();
  reconnect();
  chief_->worker().tell(DescribeJob{JobId(5), job_config()});
  EXPECT_EQ(chief_->wait_for<JobDescribed>().train_records, kRecords);
  chief_->worker().tell(open_job());
  chief_->wait_for<JobOpened>();
  reconnect();
  chief_->worker().tell(open_job());
  chief_->wait_for<JobOpened>();
  EXPECT_EQ(shards_.hellos, 2U) << "one channel to each shard, opened once";
  for (int i = 0; i < 2; ++i) chief_->worker().tell(StartJob{JobId(5), Generation(1)});
  EXPECT_EQ(chief_->wait_for<WorkerFinished>().steps, 13U);
  reconnect();
  EXPECT_EQ(chief_->wait_for<WorkerFinished>().steps, 13U);
  chief_->worker().tell(Evaluate{JobId(5), Generation(1)});
  const Evaluated first = chief_->wait_for<Evaluated>();
  reconnect();
  chief_->worker().tell(Evaluate{JobId(5), Generation(1)});
  const Evaluated again = chief_->wait_for<Evaluated>();
  EXPECT_TRUE(again.final);
  EXPECT_EQ(again.examples, first.examples);
  EXPECT_EQ(again.parameters_hash, first.parameters_hash);
  EXPECT_EQ(shards_.values, expected());
}

TEST_F(WorkerProcessTest, FailureIsToldAgainWhenTheChiefIsBack) {
  shards_.answer_hello = [](Peer& peer, const ChannelHello&) {
    peer.send(wire::FrameType::kRefused, wire::encode(Refused{ErrorCode::kNoPermission, "the token is wrong"}));
    return true;
  };
  start_worker();
  chief_->worker().tell(open_job());
  chief_->wait_for<TaskFailed>();
  chief_->worker().connection->close();
  run_until(loop_, [this] { return chief_->peers.size() > 1; });
  chief_->messages.clear();
  EXPECT_NE(chief_->wait_for<TaskFailed>().reason.find("token"), std::string::npos);
}

TEST_F(WorkerProcessTest, ChiefWithAnotherJournalMakesTheWorkerDropItsJob) {
  start_worker();
  lend_all();
  close_gate();
  open_and_start();
  run_until(loop_, [this] { return is_inside(); });
  chief_->journal = JournalId(78);
  chief_->worker().connection->close();
  run_until(loop_, [this] { return chief_->peers.size() > 1; });
  open_gate();
  run_until(loop_, [this] { return shards_.peers[0]->closed && shards_.peers[1]->closed; });
  run_until(loop_, [this] {
    const auto beats = chief_->heard<Heartbeat>();
    return !beats.empty() && beats.back().job == JobId();
  });
  EXPECT_TRUE(chief_->heard<WorkerFinished>().empty());
}

TEST_F(WorkerProcessTest, RefusalByTheChiefEndsTheProcess) {
  chief_->answer_hello = [](Peer& peer) {
    peer.send(wire::FrameType::kRefused, wire::encode(Refused{ErrorCode::kConfig, "this is cluster other"}));
    return true;
  };
  start_worker();
  run_until(loop_, [this] { return refused_.has_value(); });
  EXPECT_EQ(refused_->code, ErrorCode::kConfig);
  EXPECT_NE(refused_->message.find("cluster other"), std::string::npos);
}

TEST_F(WorkerProcessTest, MessageThatMakesNoSenseIsDropped) {
  start_worker();
  chief_->wait_for<Heartbeat>();
  const std::vector<std::byte> nonsense(24, std::byte{0xff});
  chief_->worker().send(wire::FrameType::kControl, nonsense);
  chief_->worker().tell(DescribeJob{JobId(5), job_config()});
  EXPECT_EQ(chief_->wait_for<JobDescribed>().train_records, kRecords);
  EXPECT_EQ(chief_->peers.size(), 1U);
}

}  // namespace
}  // namespace disttrain::workerd
