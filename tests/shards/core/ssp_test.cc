// The bound of ssp on how far a worker may be ahead of the slowest.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "tests/shards/core/async_training.h"

namespace disttrain::shards::test {
namespace {

// I9: a worker gets no parameters while its clock is ahead of the slowest worker's by more than the bound.
TEST(Ssp, TheBoundHoldsWithASlowWorkerAndAllMoveOn) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    TrainSection train = async_train(0);
    train.mode = Mode::kSsp;
    train.staleness = seed % 4;
    AsyncTraining run(1 + seed % 3, train, 3, seed);
    const auto hear_all = run.cluster.on_heard;
    run.cluster.on_heard = [&](std::uint32_t shard, std::uint32_t w, const Heard& heard) {
      hear_all(shard, w, heard);
      if (!run.models[w].ready()) return;  // the worker waits for other answers
      std::uint64_t slowest = 1000;
      for (const WorkerModel& model : run.models) slowest = std::min(slowest, model.clock);
      ASSERT_LE(run.models[w].clock, slowest + train.staleness);
    };
    for (int guard = 0; guard < 20000; ++guard) {
      for (WorkerModel& model : run.models) {
        if (!model.ready() || model.clock >= 20) continue;
        if (model.index == 0 && run.random.below(20) != 0) continue;  // slow
        push_all(run.cluster, model, model.clock + 1, random_gradient(seed, model.index, 1, 22),
                 {.final = model.clock + 1 == 20});
      }
      run.cluster.deliver_one(run.random);
    }
    for (const WorkerModel& model : run.models) EXPECT_EQ(model.clock, 20U);
    EXPECT_EQ(run.report().global_step, Step(60));
  }
}

TEST(Ssp, AWorkerThatEndsHoldsNobodyBack) {
  enum class End { kFinalPush, kFenced, kLeftRoster };
  for (End end : {End::kFinalPush, End::kFenced, End::kLeftRoster}) {
    TrainSection train = async_train(0);
    train.mode = Mode::kSsp;
    train.staleness = 1;
    AsyncTraining run(2, train, 2, 3);
    push_all(run.cluster, run.models[1], 1, random_gradient(1, 1, 1, 22), {});
    run.cluster.deliver_all(run.random);
    ASSERT_TRUE(run.models[1].ready());
    push_all(run.cluster, run.models[1], 2, random_gradient(1, 1, 2, 22), {});
    run.cluster.deliver_all(run.random);
    ASSERT_FALSE(run.models[1].ready());
    if (end == End::kFinalPush) {
      for (std::uint32_t bucket : {0U, 1U}) {  // an empty push to each shard
        Push push;
        push.bucket = BucketId(bucket);
        push.clock = Step(1);
        push.last = push.final = true;
        run.cluster.send(0, push, {});
      }
    } else if (end == End::kFenced) {
      for (std::uint32_t s = 0; s < 2; ++s) run.cluster.node(s).handle(Fence{worker(0)});
    } else {
      Roster roster = roster_of(2, 2);
      roster.members.erase(roster.members.begin());
      run.cluster.node(0).handle(RosterSet{roster});
    }
    run.cluster.deliver_all(run.random);
    EXPECT_TRUE(run.models[1].ready()) << static_cast<int>(end);
    EXPECT_EQ(run.report().global_step, Step(2));
  }
}

TEST(Ssp, AWorkerWhoseConnectionIsAwayHoldsTheOthersToTheBound) {
  TrainSection train = async_train(0);
  train.mode = Mode::kSsp;
  train.staleness = 1;
  AsyncTraining run(1, train, 2, 3);
  run.cluster.close(0);
  push_all(run.cluster, run.models[1], 1, random_gradient(1, 1, 1, 22), {});
  run.cluster.deliver_all(run.random);
  EXPECT_TRUE(run.models[1].ready());
  push_all(run.cluster, run.models[1], 2, random_gradient(1, 1, 2, 22), {});
  run.cluster.deliver_all(run.random);
  EXPECT_FALSE(run.models[1].ready());
}

TEST(Ssp, AWorkerThatComesBackAfterItsFarewellHasNothingToMakeUpForAndIsWaitedFor) {
  TrainSection train = async_train(0);
  train.mode = Mode::kSsp;
  train.staleness = 1;
  AsyncTraining run(2, train, 2, 3);
  for (std::uint32_t bucket : {0U, 1U}) {
    Push farewell;
    farewell.bucket = BucketId(bucket);
    farewell.clock = Step(1);
    farewell.last = farewell.final = true;
    run.cluster.send(0, farewell, {});
  }
  const auto push = [&run](std::uint32_t worker, std::uint64_t clock) {
    push_all(run.cluster, run.models[worker], clock, random_gradient(1, worker, clock, 22), {});
    run.cluster.deliver_all(run.random);
    return run.models[worker].ready();
  };
  for (std::uint64_t clock = 1; clock <= 5; ++clock) EXPECT_TRUE(push(1, clock)) << "no other worker is active";
  run.cluster.begin(0, Step(1));
  run.cluster.deliver_all(run.random);
  EXPECT_EQ(run.models[0].begun, (std::vector<std::uint64_t>{5, 5})) << "the slowest of the others";
  EXPECT_TRUE(push(1, 6));
  EXPECT_FALSE(push(1, 7)) << "the other worker is active, so the bound counts it";
  EXPECT_TRUE(push(0, 6)) << "one step from where it began";
  EXPECT_TRUE(run.models[1].ready());
}

TEST(Ssp, AWorkerThatLoadsHoldsNobodyUntilItBegins) {
  TrainSection train = async_train(0);
  train.mode = Mode::kSsp;
  train.staleness = 1;
  AsyncTraining run(1, train, 2, 3);
  Roster roster = roster_of(3, 2);
  roster.members.erase(roster.members.begin());
  run.cluster.node(0).handle(RosterSet{roster});
  run.cluster.open(2);
  const auto push = [&run](std::uint64_t clock) {
    push_all(run.cluster, run.models[1], clock, random_gradient(1, 1, clock, 22), {});
    run.cluster.deliver_all(run.random);
    return run.models[1].ready();
  };
  run.cluster.on_heard = [&run](std::uint32_t shard, std::uint32_t w, const Heard& heard) {
    if (w == 1) hear(run.cluster, run.models[1], shard, heard);
  };
  run.cluster.pull(2, 0, 1);
  for (std::uint64_t clock = 1; clock <= 5; ++clock) EXPECT_TRUE(push(clock)) << clock;
  run.cluster.begin(2, Step(0));
  EXPECT_TRUE(push(6));
  EXPECT_FALSE(push(7));
}

// All workers have left. The chief tells the two new workers different clocks, but they must begin with the same one.
TEST(Ssp, WorkersThatComeWhenNobodyIsAtWorkStartTogether) {
  TrainSection train = async_train(0);
  train.mode = Mode::kSsp;
  train.staleness = 1;
  AsyncTraining run(1, train, 2, 3);
  for (std::uint64_t clock = 1; clock <= 5; ++clock) {
    for (WorkerModel& model : run.models)
      push_all(run.cluster, model, clock, random_gradient(1, model.index, clock, 22), {});
    run.cluster.deliver_all(run.random);
  }
  Roster roster = roster_of(4, 2);
  roster.members.erase(roster.members.begin(), roster.members.begin() + 2);
  run.cluster.node(0).handle(RosterSet{roster});
  EXPECT_EQ(run.cluster.node(0).shard.core().report().slowest_clock, Step(5))
      << "the clock of a worker that begins now";
  std::map<std::uint32_t, Step> begun;
  run.cluster.on_heard = [&begun](std::uint32_t, std::uint32_t w, const Heard& heard) {
    begun[w] = std::get<Parameters>(heard.message).clock;
  };
  for (const std::uint32_t w : {2U, 3U}) run.cluster.open(w);
  run.cluster.begin(2, Step(0));
  run.cluster.begin(3, Step(5));
  run.cluster.deliver_all(run.random);
  EXPECT_EQ(begun[2], Step(5));
  EXPECT_EQ(begun[3], Step(5));
}

}  // namespace
}  // namespace disttrain::shards::test
