// data.sharding = "none": what the pacer says of how far each worker has got in its own order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "shards/core/shard_core.h"
#include "tests/shards/core/shard_cluster.h"

namespace disttrain::shards::test {
namespace {

// 25 records and batches of 10: an epoch has 3 batches.
class OwnOrderTest : public testing::TestWithParam<Mode> {
 protected:
  OwnOrderTest() : core_(layout_, options()) {
    for (std::uint32_t w = 0; w < 2; ++w) core_.step(now_, ChannelOpened{ChannelId(w + 1), worker(w)}, actions_);
  }

  // The worker pushes this batch of its order as its step `clock`.
  void push(std::uint32_t w, std::uint64_t clock, std::uint64_t batch) {
    Push push;
    push.clock = Step(clock);
    push.last = true;
    push.examples = batch % 3 == 2 ? 5 : 10;
    push.epoch = static_cast<std::uint32_t>(batch / 3);
    push.visited = {Interval{batch % 3 * 10, batch % 3 * 10 + push.examples}};
    for (const BucketId bucket : buckets_of(layout_, ShardId(0))) {
      push.bucket = bucket;
      push.last = bucket == buckets_of(layout_, ShardId(0)).back();
      core_.step(now_,
                 PushArrived{ChannelId(w + 1), Sequence(++sequence_[w]), push,
                             layout_.buckets[bucket.value].words * sizeof(float)},
                 actions_);
    }
  }
  // "worker/0 5, worker/2 400"
  std::string cut() {
    core_.step(now_, AttemptPrepared{++attempt_}, actions_);
    actions_.clear();
    for (std::uint32_t w = 0; w < 2; ++w) core_.step(now_, MarkArrived{ChannelId(w + 1), Mark{attempt_}}, actions_);
    std::string text;
    for (const Action& action : actions_)
      if (const auto* copy = std::get_if<CopyForCheckpoint>(&action))
        for (const WorkerEntry& entry : copy->entry.workers)
          text += (text.empty() ? "" : ", ") + to_string(entry.worker.task) + " " + std::to_string(entry.batches.value);
    return text;
  }

  const Layout layout_ = small_layout(1);
  ShardCore core_;
  const Instant now_;
  Actions actions_;

 private:
  static ShardOptions options() {
    ShardOptions options;
    options.train.mode = GetParam();
    options.train.batch_size = 10;
    options.train.staleness = 1000;
    options.train_records = 25;
    options.roster = roster_of(2);
    options.own_orders = {{worker(0).task, Step(3)}, {worker(2).task, Step(400)}};
    return options;
  }
  std::uint64_t sequence_[2] = {0, 0};
  std::uint64_t attempt_ = 0;
};

TEST_P(OwnOrderTest, CheckpointSaysHowManyBatchesEachWorkerHasDone) {
  EXPECT_EQ(cut(), "worker/0 3, worker/1 0, worker/2 400") << "nobody has pushed since the checkpoint before";
  push(0, 1007, 3);  // in ssp its clock may be any number
  push(0, 1008, 4);
  push(1, 1007, 0);
  EXPECT_EQ(cut(), "worker/0 5, worker/1 1, worker/2 400");
  push(0, 1009, 5);
  EXPECT_EQ(cut(), "worker/0 6, worker/1 1, worker/2 400") << "the last batch of the epoch has fewer records";
}

TEST_P(OwnOrderTest, AnswerToARosterSaysItToo) {
  push(0, 1007, 3);
  actions_.clear();
  Roster roster = roster_of(1);
  roster.version = RosterVersion(7);
  core_.step(now_, RosterSet{roster}, actions_);
  std::string text;
  for (const Action& action : actions_)
    if (const auto* taken = std::get_if<RosterTaken>(&action))
      for (const OwnBatches& own : taken->batches)
        text += to_string(own.worker) + " " + std::to_string(own.batches.value) + ", ";
  EXPECT_EQ(text, "worker/0 4, worker/2 400, ");
}

// A message that names more workers can't be encoded.
TEST(OwnOrder, KeepsNoMoreWorkersThanAMessageMayName) {
  std::map<TaskId, Step> before;
  for (std::uint32_t index = 0; index < 2 * kMaxMembers; ++index) before[TaskId{Role::kWorker, index}] = Step(index);
  OwnOrder order(25, 10, before);
  EXPECT_EQ(order.all().size(), kMaxMembers);
  Push push;
  push.visited = {Interval{0, 10}};
  order.pushed(TaskId{Role::kWorker, 3 * kMaxMembers}, push);
  EXPECT_EQ(order.all().size(), kMaxMembers);
}

INSTANTIATE_TEST_SUITE_P(Each, OwnOrderTest, testing::Values(Mode::kAsync, Mode::kSsp));

}  // namespace
}  // namespace disttrain::shards::test
