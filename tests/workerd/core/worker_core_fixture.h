// A worker's core alone, for tests that play its surroundings: the shards, the engine, the input and the chief.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "workerd/core/worker_core.h"

namespace disttrain::workerd {

// One core, whose surroundings the test plays. Shard 0 has buckets 0 and 2, and shard 1 has bucket 1.
class WorkerCoreTest : public ::testing::Test {
 protected:
  WorkerCoreTest() {
    facts_.self = Member{TaskId{Role::kWorker, 0}, Incarnation(7)};
    facts_.roster = Roster{RosterVersion(1), {facts_.self}};
    facts_.layout.shards = 2;

    facts_.layout.buckets = {Bucket{ShardId(0), 0, 0, 4}, Bucket{ShardId(1), 4, 0, 4}, Bucket{ShardId(0), 8, 4, 4}};
    facts_.shard_names = {"shard 0 (ps/0)", "shard 1 (ps/1)"};
    facts_.train_records = 100;
    facts_.config.train.batch_size = 10;
    facts_.config.train.epochs = 1;
    facts_.config.data.sharding = Sharding::kNone;
  }

  void begin() {
    core_ = std::make_unique<WorkerCore>(facts_, now_);
    give(ChannelOpened{ShardId(0), Sequence(0)});
    give(ChannelOpened{ShardId(1), Sequence(0)});
    EXPECT_EQ(take<ReportOpened>().size(), 1U);
    give(Start{});
  }
  // Runs the core until it begins its first computation.
  void begin_and_pull(Step version = Step(0)) {
    begin();
    for (const SendPull& pull : take<SendPull>()) answer_pull(pull, version);
    make_batches_ready();
    begin_work(version);
  }
  // In ssp, answers the pull with which a worker begins. Call this after the first batch is ready.
  void begin_work(Step version = Step(0)) {
    for (const SendPull& pull : take<SendPull>()) {
      EXPECT_TRUE(pull.pull.begins);
      answer_pull(pull, version);
    }
  }

  void give(const Event& event) { core_->step(now_, event, actions_); }
  void wait(Duration time) { now_ += time; }
  void wait_in_ticks(int ticks) {
    for (int i = 0; i < ticks; ++i) {
      wait(std::chrono::seconds(1));
      give(Tick{});
    }
  }

  // Removes and returns the actions of one kind.
  template <typename T>
  std::vector<T> take() {
    std::vector<T> found;
    std::erase_if(actions_, [&found](const Action& action) {
      if (!std::holds_alternative<T>(action)) return false;
      found.push_back(std::get<T>(action));
      return true;
    });
    return found;
  }
  void make_batches_ready() {
    for (const RequestBatch& request : take<RequestBatch>()) give(BatchReady{request.order.ticket});
  }
  void answer_pull(const SendPull& pull, Step version) {
    for (std::uint32_t b = 0; b < 3; ++b) {
      if (facts_.layout.buckets[b].shard != pull.shard) continue;
      Parameters answer;
      answer.bucket = BucketId(b);
      answer.version = version;
      answer.pull_id = pull.pull.id;
      answer.roster = roster_;
      answer.last = b != 0;
      if (pull.pull.begins) answer.clock = std::max(pull.pull.clock, slowest_);
      give(ParametersArrived{pull.shard, answer});
    }
  }
  // The answer to a Want::kAll.
  void answer_push(ShardId shard, Sequence acknowledged, Step version, bool finished = false) {
    for (std::uint32_t b = 0; b < 3; ++b) {
      if (facts_.layout.buckets[b].shard != shard) continue;
      Parameters answer;
      answer.bucket = BucketId(b);
      answer.version = version;
      answer.outcome = PushOutcome::kApplied;
      answer.acknowledged = acknowledged;
      answer.roster = roster_;
      answer.last = b != 0;
      answer.finished = finished;
      give(ParametersArrived{shard, answer});
    }
  }

  JobFacts facts_;
  RosterVersion roster_{1};
  Step slowest_;  // ssp: of the other workers
  Instant now_{std::chrono::seconds(1)};
  std::unique_ptr<WorkerCore> core_;
  Actions actions_;
};

}  // namespace disttrain::workerd
