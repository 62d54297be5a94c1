#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "common/interval_set.h"
#include "tests/shards/core/worker_model.h"

namespace disttrain::shards::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TrainSection async_train(std::uint64_t steps) {
  TrainSection train;
  train.mode = Mode::kAsync;
  train.batch_size = 10;
  train.steps = steps;
  train.optimizer.rule = Rule::kSgd;
  train.optimizer.learning_rate = 0.5;
  return train;
}

struct AsyncTraining {
  AsyncTraining(std::uint32_t shards, const TrainSection& train, std::uint32_t workers, std::uint64_t seed,
                std::uint64_t records = 0)
      : cluster(small_layout(shards), train, workers, records), random(seed) {
    for (std::uint32_t w = 0; w < workers; ++w) {
      models.push_back(WorkerModel{});
      models.back().index = w;
      start(cluster, models.back());
    }
    cluster.on_heard = [this](std::uint32_t shard, std::uint32_t w, const Heard& heard) {
      hear(cluster, models[w], shard, heard);
    };
    if (train.mode != Mode::kSsp) return;
    for (const WorkerModel& model : models) cluster.begin(model.index, Step());
    cluster.deliver_all(this->random);
  }

  PacerReport report() { return cluster.node(0).shard.core().report(); }

  ShardCluster cluster;
  Random random;
  std::vector<WorkerModel> models;
};

// The reference implementation applies each frame when it comes: it computes p -= 0.5 * g for one element after the
// other.
TEST(Async, EqualsTheNaiveTwinFrameByFrame) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const std::uint32_t shards = 1 + seed % 3;
    AsyncTraining run(shards, async_train(0), 1 + seed % 4, seed);
    std::vector<float> twin = run.cluster.model();
    std::uint64_t frames = 0;
    run.cluster.on_push = [&](std::uint32_t, std::uint32_t, const Push& push, const std::vector<float>& gradient) {
      ++frames;
      if (std::any_of(gradient.begin(), gradient.end(), [](float g) { return g != g; })) return;
      const std::uint64_t begin = run.cluster.layout().buckets[push.bucket.value].flat_begin;
      for (std::size_t i = 0; i < gradient.size(); ++i) twin[begin + i] = twin[begin + i] - 0.5F * gradient[i];
    };
    std::uint64_t pushes = 0;
    for (int guard = 0; guard < 4000; ++guard) {
      for (WorkerModel& model : run.models)
        if (model.ready() && model.clock < 15) {
          ++pushes;
          push_all(run.cluster, model, model.clock + 1, random_gradient(seed, model.index, model.clock + 1, 22),
                   {.want = seed % 2 == 0 ? Want::kBucket : Want::kAll, .nonfinite = model.clock % 7 == 6});
        }
      if (!run.cluster.deliver_one(run.random)) break;
    }
    ASSERT_THAT(run.cluster.closed, testing::IsEmpty());
    EXPECT_EQ(run.cluster.model(), twin);
    EXPECT_EQ(run.report().global_step.value, pushes);
    // I6: the shards have taken as many frames as the workers' last sequence numbers say. Sequence numbers begin with
    // 1.
    std::uint64_t sum = 0;
    for (std::uint32_t w = 0; w < run.models.size(); ++w)
      for (std::uint32_t s = 0; s < shards; ++s) sum += run.cluster.last_sequence(w, s);
    EXPECT_EQ(frames, sum);
  }
}

TEST(Async, StopsAtTheStepAndSaysSo) {
  AsyncTraining run(1, async_train(3), 1, 1);
  for (std::uint64_t clock = 1; clock <= 4; ++clock) {
    push_all(run.cluster, run.models[0], clock, random_gradient(1, 0, clock, 22), {});
    run.cluster.deliver_all(run.random);
  }
  EXPECT_THAT(run.models[0].outcomes,
              ElementsAre(PushOutcome::kApplied, PushOutcome::kApplied, PushOutcome::kApplied, PushOutcome::kApplied))
      << "what was under way at the end is applied";
  EXPECT_TRUE(run.models[0].finished);
  EXPECT_EQ(run.report().global_step, Step(4));
  EXPECT_GE(run.cluster.reports_now, 1);
}

TEST(Async, StalenessOfEachGradientIsCountedByThePacer) {
  AsyncTraining run(1, async_train(0), 2, 1);
  run.cluster.deliver_all(run.random);
  // Meanwhile worker 1 computes with its first parameters.
  for (std::uint64_t clock = 1; clock <= 3; ++clock)
    push_all(run.cluster, run.models[0], clock, random_gradient(1, 0, clock, 22), {});
  run.cluster.deliver_all(run.random);
  push_all(run.cluster, run.models[1], 1, random_gradient(1, 1, 1, 22), {});
  run.cluster.deliver_all(run.random);
  const StepsHistogram& staleness = run.cluster.node(0).shard.core().gradient_staleness();
  EXPECT_EQ(std::accumulate(staleness.counts().begin(), staleness.counts().end(), std::uint64_t{0}), 4u);
  EXPECT_GE(staleness.sum(), 3.0);
}

TEST(Async, APullIsAnsweredWithAllBucketsAndItsNumber) {
  AsyncTraining run(1, async_train(0), 1, 1);
  std::vector<std::uint64_t> ids;
  run.cluster.on_heard = [&ids](std::uint32_t, std::uint32_t, const Heard& heard) {
    ids.push_back(std::get<Parameters>(heard.message).pull_id);
  };
  run.cluster.pull(0, 0, 99);
  run.cluster.deliver_all(run.random);
  EXPECT_EQ(ids, std::vector<std::uint64_t>(6, 99));
}

TEST(Async, ASkippedPushCountsAndItsRecordsAreVisited) {
  AsyncTraining run(1, async_train(0), 1, 1, 100);
  Push push;
  push.clock = Step(1);
  push.last = push.skipped = true;
  push.want = Want::kAll;
  push.examples = 10;
  push.lease = LeaseId(1);
  push.visited = {{0, 10}};
  const std::vector<float> before = run.cluster.model();
  run.cluster.send(0, push, {});
  run.cluster.deliver_all(run.random);
  EXPECT_EQ(run.cluster.model(), before);
  EXPECT_THAT(run.models[0].outcomes, ElementsAre(PushOutcome::kSkipped));
  EXPECT_EQ(run.report().skipped, 1U);
  ASSERT_EQ(run.report().ledger.size(), 1U);
  EXPECT_THAT(run.report().ledger[0].visited, ElementsAre(Interval{0, 10}));
}

// Both workers push 1.5 as every element. In the layout, the state is all of bucket 1.
TEST(Async, WithLowestRankOnlyThePushesOfRank0ChangeTheState) {
  for (const StateRule rule : {StateRule::kMean, StateRule::kLowestRank}) {
    TrainSection train = async_train(0);
    train.state = rule;
    Layout layout = small_layout(2);
    layout.model.variables[1].kind = VariableKind::kState;
    Random random(1);
    ShardCluster cluster(layout, train, 2);
    std::vector<WorkerModel> models(2);
    for (std::uint32_t w : {0U, 1U}) {
      models[w].index = w;
      start(cluster, models[w]);
    }
    const float first = cluster.model()[4];
    push_all(cluster, models[1], 1, std::vector<float>(22, 1.5F), {});
    cluster.deliver_all(random);
    const float mixed = first + 0.5F * (1.5F - first);
    EXPECT_EQ(cluster.model()[4], rule == StateRule::kMean ? mixed : first);
    push_all(cluster, models[0], 1, std::vector<float>(22, 1.5F), {});
    cluster.deliver_all(random);
    EXPECT_EQ(cluster.model()[4], rule == StateRule::kMean ? mixed + 0.5F * (1.5F - mixed) : 1.5F);
  }
}

// State isn't a gradient, but a NaN in it would spoil the model too. So the step is skipped at every shard.
TEST(Sync, ANanInStateSkipsTheStep) {
  for (const StateRule rule : {StateRule::kMean, StateRule::kLowestRank}) {
    TrainSection train = async_train(0);
    train.mode = Mode::kSync;
    train.state = rule;
    Layout layout = small_layout(2);
    layout.model.variables[2].kind = VariableKind::kState;  // the first three elements
    Random random(1);
    ShardCluster cluster(layout, train, 1);
    WorkerModel model;
    start(cluster, model);
    cluster.on_heard = [&](std::uint32_t shard, std::uint32_t, const Heard& heard) {
      hear(cluster, model, shard, heard);
    };
    const std::vector<float> before = cluster.model();
    PushOptions options;
    options.nonfinite = true;  // in element 0
    push_all(cluster, model, 1, std::vector<float>(22, 1.5F), options);
    cluster.deliver_all(random);
    EXPECT_EQ(cluster.model(), before);
    EXPECT_EQ(cluster.node(0).shard.core().report().skipped, 1U);
  }
}

// The gradient is finite, but its square isn't.
TEST(Async, AnUpdateThatOverflowsIsSkipped) {
  TrainSection train = async_train(0);
  train.optimizer.rule = Rule::kAdam;
  AsyncTraining run(1, train, 1, 1);
  const std::vector<float> before = run.cluster.model();
  std::vector<float> gradient(22, 0.0F);  // only the first bucket has a gradient
  gradient[1] = std::numeric_limits<float>::max();
  push_all(run.cluster, run.models[0], 1, gradient, {});
  run.cluster.deliver_all(run.random);
  EXPECT_EQ(run.cluster.model(), before);
  EXPECT_EQ(run.models[0].outcomes.back(), PushOutcome::kSkipped);
  EXPECT_EQ(run.report().skipped, 1U);
  push_all(run.cluster, run.models[0], 2, random_gradient(1, 0, 2, 22), {});
  run.cluster.deliver_all(run.random);
  EXPECT_EQ(run.models[0].outcomes.back(), PushOutcome::kApplied);
  EXPECT_NE(run.cluster.model(), before);
}

TEST(Frames, ADuplicateChangesNothingAndIsAnswered) {
  AsyncTraining run(1, async_train(0), 1, 1);
  push_all(run.cluster, run.models[0], 1, random_gradient(1, 0, 1, 22), {});
  run.cluster.deliver_all(run.random);
  const std::vector<float> after = run.cluster.model();
  Push again;
  again.clock = Step(1);
  again.bucket = BucketId(5);
  again.last = true;
  again.want = Want::kAll;
  again.examples = 10;
  run.cluster.send(0, again, {1.0F, 1.0F}, 6);
  run.cluster.deliver_all(run.random);
  EXPECT_EQ(run.cluster.model(), after);
  EXPECT_EQ(run.models[0].outcomes.back(), PushOutcome::kDuplicate);
  EXPECT_EQ(run.report().global_step, Step(1));
}

TEST(Frames, AGapClosesTheChannelAndChangesNothing) {
  AsyncTraining run(1, async_train(0), 1, 1);
  const std::vector<float> before = run.cluster.model();
  Push push;
  push.clock = Step(1);
  run.cluster.send(0, push, {1.0F, 1.0F, 1.0F, 1.0F}, 2);
  run.cluster.deliver_all(run.random);
  ASSERT_EQ(run.cluster.closed.size(), 1U);
  EXPECT_THAT(run.cluster.closed[0], HasSubstr("a gap"));
  EXPECT_EQ(run.cluster.model(), before);
}

TEST(Frames, AReopenedChannelGoesOnAfterTheLastFrame) {
  AsyncTraining run(1, async_train(0), 1, 1);
  push_all(run.cluster, run.models[0], 1, random_gradient(1, 0, 1, 22), {});
  run.cluster.deliver_all(run.random);
  run.cluster.close(0);
  run.cluster.open(0);
  push_all(run.cluster, run.models[0], 2, random_gradient(1, 0, 2, 22), {});
  run.cluster.deliver_all(run.random);
  EXPECT_THAT(run.cluster.closed, testing::IsEmpty());
  EXPECT_EQ(run.report().global_step, Step(2));
}

TEST(Frames, AFencedWorkerChangesNothingMore) {
  AsyncTraining run(2, async_train(0), 2, 1);
  push_all(run.cluster, run.models[0], 1, random_gradient(1, 0, 1, 22), {});
  run.cluster.deliver_all(run.random);
  const std::vector<float> before = run.cluster.model();
  push_all(run.cluster, run.models[0], 2, random_gradient(1, 0, 2, 22), {});
  for (std::uint32_t s = 0; s < 2; ++s) run.cluster.node(s).handle(Fence{worker(0)});
  run.cluster.deliver_all(run.random);
  EXPECT_EQ(run.cluster.model(), before);
  ASSERT_EQ(run.cluster.fences.size(), 2U);
  EXPECT_EQ(run.cluster.fences[0].last_sequence, Sequence(3));
  EXPECT_EQ(run.cluster.fences[0].last_clock, Step(1));
  run.cluster.open(0);
  EXPECT_EQ(run.cluster.refused.size(), 2U);
}

TEST(Frames, AStrangerIsRefused) {
  AsyncTraining run(1, async_train(0), 1, 1);
  run.cluster.open(5);
  ASSERT_EQ(run.cluster.refused.size(), 1U);
  EXPECT_THAT(run.cluster.refused[0].reason, HasSubstr("roster"));
}

// I11: whatever the order of the pushes, the ledger has exactly the pushed records, and each epoch completes once.
TEST(Ledger, CompletesAnEpochWhenAllItsRecordsWereVisited) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    AsyncTraining run(2, async_train(0), 2, seed, 60);
    std::uint64_t next = 0;
    while (next < 120 || !run.models[0].ready() || !run.models[1].ready()) {
      for (WorkerModel& model : run.models)
        if (model.ready() && next < 120) {
          const Interval records{next % 60, next % 60 + 10};
          push_all(run.cluster, model, model.clock + 1, random_gradient(seed, 0, 1, 22),
                   {.lease = LeaseId(1), .epoch = static_cast<std::uint32_t>(next / 60), .visited = {records}});
          next += 10;
        }
      ASSERT_TRUE(run.cluster.deliver_one(run.random));
    }
    run.cluster.deliver_all(run.random);
    EXPECT_EQ(run.report().complete_epochs, 2U);
    EXPECT_TRUE(run.report().ledger.empty());
    EXPECT_EQ(run.report().examples, 120U);
  }
}

TEST(Ledger, RecordsThatDontExistCloseTheChannel) {
  AsyncTraining run(1, async_train(0), 1, 1, 60);
  push_all(run.cluster, run.models[0], 1, random_gradient(1, 0, 1, 22), {.lease = LeaseId(1), .visited = {{55, 65}}});
  run.cluster.deliver_all(run.random);
  ASSERT_FALSE(run.cluster.closed.empty());
  EXPECT_THAT(run.cluster.closed[0], HasSubstr("[55, 65)"));
  EXPECT_EQ(run.report().global_step, Step(0));
}

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

TEST(Pacer, MeasuresFromTheLastStepOfWarmUp) {
  Pacer pacer(NonfiniteConfig{}, 3, 0, PacerReport{});
  Instant now{};
  for (int step = 1; step <= 10; ++step) {
    now += std::chrono::seconds(step <= 3 ? 100 : 1);
    pacer.step_done(now, StepDone{10, 2.0, 0.0, false});
  }
  const PacerReport report = pacer.report(false);
  EXPECT_EQ(report.measured_steps, 7U);
  EXPECT_EQ(report.measured_examples, 70U);
  EXPECT_EQ(report.training, std::chrono::seconds(7));
  EXPECT_DOUBLE_EQ(report.loss, 2.0);
}

TEST(Pacer, FailsAtTheFirstWhereAsked) {
  Pacer pacer(NonfiniteConfig{NonfiniteAction::kFail, 10}, 0, 0, PacerReport{});
  EXPECT_FALSE(pacer.verdict());
  pacer.step_done(Instant{}, StepDone{10, 2.0, 0.0, true});
  EXPECT_TRUE(pacer.verdict());
}

// The shell drops all actions behind an update that fails, also the order to fail the job.
TEST(AsyncShard, AnUpdateThatFailsAfterTheJobHasFailedFailsItAgain) {
  ShardOptions options;
  options.train.mode = Mode::kAsync;
  options.train.nonfinite = {NonfiniteAction::kFail, 0};
  options.roster = roster_of(1);
  ShardCore shard(small_layout(1), options);
  Actions actions;
  for (int i = 0; i < 2; ++i) {
    actions.clear();
    shard.step({}, UpdateFailed{BucketId(0), false}, actions);
    ASSERT_EQ(actions.size(), 1U);
    EXPECT_TRUE(std::holds_alternative<FailJob>(actions[0]));
  }
}

// The first worker sent its mark and waits until the attempt ends. The chief that ordered this attempt is gone. When a
// later chief gives up a later attempt, all earlier attempts must end, too.
TEST(AsyncShard, AnAttemptOfALaterTermThatIsGivenUpEndsThoseBeforeIt) {
  ShardOptions options;
  options.train.mode = Mode::kAsync;
  options.roster = roster_of(2);
  const Layout layout = small_layout(1);
  ShardCore shard(layout, options);
  Actions actions;
  const std::uint64_t first = (std::uint64_t{1} << 32) + 7;
  for (std::uint32_t w : {0U, 1U}) shard.step({}, ChannelOpened{ChannelId(w + 1), worker(w)}, actions);
  shard.step({}, AttemptPrepared{first}, actions);
  shard.step({}, MarkArrived{ChannelId(1), Mark{first}}, actions);
  actions.clear();
  shard.step({}, AttemptAbandoned{first - 1}, actions);
  EXPECT_TRUE(actions.empty()) << "an earlier attempt";
  shard.step({}, AttemptAbandoned{std::uint64_t{2} << 32}, actions);
  ASSERT_EQ(actions.size(), 1U);
  const auto* taken = std::get_if<SendMarkTaken>(&actions[0]);
  ASSERT_NE(taken, nullptr);
  EXPECT_EQ(taken->channel, ChannelId(1));
}

// After this cut, the shards must apply no more pushes, because the rollback that follows would lose them.
TEST(AsyncShard, AnAttemptThatHoldsKeepsTheMarkedUntilItIsGivenUp) {
  ShardOptions options;
  options.train.mode = Mode::kAsync;
  options.roster = roster_of(2);
  const Layout layout = small_layout(1);
  ShardCore shard(layout, options);
  Actions actions;
  for (std::uint32_t w : {0U, 1U}) shard.step({}, ChannelOpened{ChannelId(w + 1), worker(w)}, actions);
  shard.step({}, AttemptPrepared{5, true}, actions);
  shard.step({}, MarkArrived{ChannelId(1), Mark{5}}, actions);
  actions.clear();
  shard.step({}, MarkArrived{ChannelId(2), Mark{5}}, actions);
  ASSERT_EQ(actions.size(), 1U) << "the copy only: no worker is released";
  EXPECT_TRUE(std::holds_alternative<CopyForCheckpoint>(actions[0]));
  actions.clear();
  shard.step({}, MarkArrived{ChannelId(1), Mark{5}}, actions);
  EXPECT_TRUE(actions.empty()) << "the mark is sent again after a reconnection";
  Push push;
  push.clock = Step(1);
  push.last = true;
  EXPECT_FALSE(shard.landing(ChannelId(1), Sequence(1), push, layout.buckets[0].words * sizeof(float)));
  shard.step({}, AttemptAbandoned{4}, actions);
  EXPECT_TRUE(actions.empty()) << "an earlier attempt";
  shard.step({}, AttemptAbandoned{5}, actions);
  EXPECT_EQ(actions.size(), 2U);
  EXPECT_TRUE(shard.landing(ChannelId(1), Sequence(1), push, layout.buckets[0].words * sizeof(float)));
}

}  // namespace
}  // namespace disttrain::shards::test
