#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "common/update/schedule.h"
#include "common/update/update_rule.h"
#include "tests/shards/core/worker_model.h"

namespace disttrain::shards::test {
namespace {

TrainSection sync_train(std::uint64_t steps) {
  TrainSection train;
  train.mode = Mode::kSync;
  train.batch_size = 10;
  train.steps = steps;
  train.optimizer.rule = Rule::kMomentum;
  train.optimizer.learning_rate = 0.1;
  return train;
}

// Trains the whole model in one process, with the same sums in the same order as the cluster.
class OneProcess {
 public:
  OneProcess(const TrainSection& train, std::vector<float> parameters)
      : train_(train), rule_(train), parameters_(std::move(parameters)), slot_(parameters_.size(), 0.0F) {}

  // Gradients and examples in rank order.
  void step(const std::vector<std::vector<float>>& gradients, const std::vector<std::uint32_t>& examples,
            std::uint64_t workers) {
    const bool equal = std::all_of(examples.begin(), examples.end(), [&](auto n) { return n == examples.front(); });
    std::vector<update::WeightedGradient> terms;
    double total = 0.0;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      terms.push_back({gradients[i], equal ? 1.0F : static_cast<float>(examples[i])});
      total += static_cast<double>(terms.back().weight);
    }
    const double rate = update::learning_rate(train_, steps_, workers);
    if (!terms.empty()) rule_.apply_sum({rate, steps_, 1.0 / total}, parameters_, terms, {slot_, {}});
    ++steps_;
  }
  const std::vector<float>& parameters() const { return parameters_; }

 private:
  const TrainSection train_;
  const update::UpdateRule rule_;
  std::vector<float> parameters_;
  std::vector<float> slot_;
  std::uint64_t steps_ = 0;
};

// A job of a few workers on a ShardCluster. run_to_the_end() trains until no message is left.
struct SyncTraining {
  explicit SyncTraining(std::uint32_t shards, const TrainSection& train, std::uint32_t workers, std::uint64_t run_seed)
      : cluster(small_layout(shards), train, workers), random(run_seed), seed(run_seed) {
    for (std::uint32_t w = 0; w < workers; ++w) {
      models.push_back(WorkerModel{});
      models.back().index = w;
      start(cluster, models.back());
    }
    cluster.on_heard = [this](std::uint32_t shard, std::uint32_t w, const Heard& heard) {
      hear(cluster, models[w], shard, heard);
    };
  }

  std::uint32_t examples_of(std::uint32_t w, std::uint64_t clock) const {
    if (!uneven) return 10;
    return static_cast<std::uint32_t>(Random(seed, stream_of("examples", clock * 64 + w)).below(4));
  }

  void run_to_the_end() {
    for (int guard = 0; guard < 200000; ++guard) {
      for (WorkerModel& model : models) {
        if (!model.ready() || model.finished) continue;
        const std::uint64_t clock = model.versions[0] + 1;
        push_all(cluster, model, clock, random_gradient(seed, model.index, clock, 22),
                 {.want = want, .examples = examples_of(model.index, clock)});
      }
      if (!cluster.deliver_one(random)) return;
    }
    FAIL() << "no end";
  }

  ShardCluster cluster;
  Random random;
  const std::uint64_t seed;
  std::vector<WorkerModel> models;
  Want want = Want::kAll;
  bool uneven = false;
};

class SyncEqualsOneProcess : public testing::TestWithParam<std::tuple<std::uint32_t, std::uint32_t>> {};

TEST_P(SyncEqualsOneProcess, BitwiseWhateverTheOrderOfArrival) {
  const auto [workers, shards] = GetParam();
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const TrainSection train = sync_train(12);
    SyncTraining run(shards, train, workers, seed);
    run.want = seed % 2 == 0 ? Want::kBucket : Want::kAll;
    run.uneven = seed % 3 == 0;
    OneProcess reference(train, run.cluster.model());
    run.run_to_the_end();
    ASSERT_EQ(run.cluster.failed, "");
    ASSERT_THAT(run.cluster.closed, testing::IsEmpty());
    for (std::uint64_t step = 1; step <= 12; ++step) {
      std::vector<std::vector<float>> gradients;
      std::vector<std::uint32_t> examples;
      for (std::uint32_t w = 0; w < workers; ++w) {
        if (run.examples_of(w, step) == 0) continue;
        gradients.push_back(random_gradient(seed, w, step, 22));
        examples.push_back(run.examples_of(w, step));
      }
      reference.step(gradients, examples, workers);
    }
    ASSERT_EQ(run.cluster.model(), reference.parameters());
    for (const WorkerModel& model : run.models) ASSERT_EQ(model.parameters, reference.parameters());
    const PacerReport report = run.cluster.node(0).shard.core().report();
    EXPECT_EQ(report.global_step, Step(12));
    EXPECT_TRUE(report.finished);
    EXPECT_EQ(report.late, 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(WorkersAndShards, SyncEqualsOneProcess,
                         testing::Combine(testing::Values(1, 2, 3, 4), testing::Values(1, 2, 3)));

// I7: with backup workers, the pacer records one set of workers for each step. Every shard applies this set and drops
// pushes that come later.
TEST(SyncBackupWorkers, EveryShardAppliesTheRecordedSetAndLateOnesAreCounted) {
  std::uint64_t late = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    TrainSection train = sync_train(10);
    train.aggregate = 2;
    SyncTraining run(1 + seed % 3, train, 4, seed);
    OneProcess reference(train, run.cluster.model());
    run.run_to_the_end();
    ASSERT_EQ(run.cluster.failed, "");
    ASSERT_THAT(run.cluster.closed, testing::IsEmpty());
    const PacerReport report = run.cluster.node(0).shard.core().report();
    EXPECT_EQ(report.global_step, Step(10));
    late += report.late;
    const StepsHistogram& staleness = run.cluster.node(0).shard.core().gradient_staleness();
    EXPECT_EQ(staleness.sum(), 0.0);
    EXPECT_GE(staleness.counts()[0], 10U * 2);
    if (run.cluster.shards() == 1) continue;  // no messages: nothing recorded
    ASSERT_EQ(run.cluster.commits.size(), 10U);
    for (const Commit& commit : run.cluster.commits) {
      ASSERT_GE(commit.members.size(), 2U);
      std::vector<std::vector<float>> gradients;
      commit.members.each(
          [&](Rank rank) { gradients.push_back(random_gradient(seed, rank.value, commit.step.value, 22)); });
      reference.step(gradients, std::vector<std::uint32_t>(gradients.size(), 10), 4);
    }
    ASSERT_EQ(run.cluster.model(), reference.parameters());
  }
  EXPECT_GT(late, 100U);
}

// With clipping, the pacer commits a set only if every shard has measured the norm of that set's sum. The shard applies
// the sum that it measured. This sum must have the same bits as the sum that the reference computes without clipping.
TEST(SyncBackupWorkers, WithClippingTheStepIsTheSumOfTheRecordedSet) {
  std::uint64_t late = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    TrainSection train = sync_train(10);
    train.aggregate = 2;
    train.clip = ClipConfig{ClipKind::kGlobalNorm, 1e9};  // no gradient is that long, so the scale is 1
    SyncTraining run(2 + seed % 2, train, 4, seed);
    TrainSection unclipped = train;
    unclipped.clip = {};
    OneProcess reference(unclipped, run.cluster.model());
    run.run_to_the_end();
    ASSERT_EQ(run.cluster.failed, "");
    ASSERT_EQ(run.cluster.commits.size(), 10U);
    late += run.cluster.node(0).shard.core().report().late;
    for (const Commit& commit : run.cluster.commits) {
      EXPECT_EQ(commit.scale, 1.0);
      std::vector<std::vector<float>> gradients;
      commit.members.each(
          [&](Rank rank) { gradients.push_back(random_gradient(seed, rank.value, commit.step.value, 22)); });
      reference.step(gradients, std::vector<std::uint32_t>(gradients.size(), 10), 4);
    }
    ASSERT_EQ(run.cluster.model(), reference.parameters());
  }
  EXPECT_GT(late, 50U);
}

TEST(SyncBackupWorkers, ALateWorkerGetsFreshParameters) {
  TrainSection train = sync_train(0);
  train.aggregate = 1;
  SyncTraining run(1, train, 2, 1);
  push_all(run.cluster, run.models[0], 1, random_gradient(1, 0, 1, 22), {});
  run.cluster.deliver_all(run.random);
  push_all(run.cluster, run.models[1], 1, random_gradient(1, 1, 1, 22), {});
  run.cluster.deliver_all(run.random);
  EXPECT_THAT(run.models[0].outcomes, testing::ElementsAre(PushOutcome::kApplied));
  EXPECT_THAT(run.models[1].outcomes, testing::ElementsAre(PushOutcome::kLate));
  EXPECT_EQ(run.models[1].versions[0], 1U);
  EXPECT_EQ(run.models[1].parameters, run.cluster.model());
}

// One shard finds a bucket that isn't finite. Then all shards skip the step.
TEST(SyncNonfinite, SkipsTheStepOnAllShardsAndCountsIt) {
  TrainSection train = sync_train(0);
  SyncTraining run(3, train, 2, 5);
  const std::vector<float> before = run.cluster.model();
  push_all(run.cluster, run.models[0], 1, random_gradient(5, 0, 1, 22), {.nonfinite = true});
  push_all(run.cluster, run.models[1], 1, random_gradient(5, 1, 1, 22), {});
  run.cluster.deliver_all(run.random);
  EXPECT_EQ(run.cluster.model(), before);
  EXPECT_THAT(run.models[0].outcomes, testing::ElementsAre(PushOutcome::kSkipped)) << "the value was the worker's own";
  EXPECT_THAT(run.models[1].outcomes, testing::ElementsAre(PushOutcome::kVetoed));
  const PacerReport report = run.cluster.node(0).shard.core().report();
  EXPECT_EQ(report.global_step, Step(1));
  EXPECT_EQ(report.skipped, 1U);
}

// All gradients are finite, but their sum isn't: at one shard, in one element. Then all shards skip the step.
TEST(SyncNonfinite, AStepThatOverflowsIsSkippedOnAllShards) {
  for (const Rule rule : {Rule::kMomentum, Rule::kAdam, Rule::kLamb}) {
    TrainSection train = sync_train(0);
    train.optimizer.rule = rule;
    SyncTraining run(3, train, 2, 5);
    for (std::uint64_t clock = 1; clock <= 3; ++clock) {
      const std::vector<float> before = run.cluster.model();
      for (std::uint32_t w : {0U, 1U}) {
        std::vector<float> gradient = random_gradient(5, w, clock, 22);
        if (clock == 2) gradient[9] = std::numeric_limits<float>::max();
        push_all(run.cluster, run.models[w], clock, gradient, {});
      }
      run.cluster.deliver_all(run.random);
      EXPECT_EQ(run.cluster.failed, "");
      EXPECT_EQ(run.cluster.model() == before, clock == 2);
    }
    EXPECT_EQ(run.models[0].outcomes[1], PushOutcome::kVetoed);
    EXPECT_EQ(run.cluster.node(0).shard.core().report().skipped, 1U);
    for (const float value : run.cluster.model()) EXPECT_TRUE(std::isfinite(value));
  }
}

TEST(SyncNonfinite, TooManyInARowFailTheJob) {
  TrainSection train = sync_train(0);
  train.nonfinite.limit = 3;
  SyncTraining run(2, train, 1, 5);
  for (std::uint64_t clock = 1; clock <= 3; ++clock) {
    EXPECT_EQ(run.cluster.failed, "");
    push_all(run.cluster, run.models[0], clock, random_gradient(5, 0, clock, 22), {.nonfinite = true});
    run.cluster.deliver_all(run.random);
  }
  EXPECT_THAT(run.cluster.failed, testing::HasSubstr("3 steps in a row"));
}

TEST(SyncClip, GlobalNormScalesTheMeanToTheLimitOnAllShards) {
  for (std::uint32_t shards : {1U, 3U}) {
    TrainSection train = sync_train(0);
    train.optimizer.rule = Rule::kSgd;
    train.optimizer.learning_rate = 1.0;
    train.clip = ClipConfig{ClipKind::kGlobalNorm, 0.5};
    SyncTraining run(shards, train, 2, 9);
    const std::vector<float> before = run.cluster.model();
    for (WorkerModel& model : run.models) push_all(run.cluster, model, 1, random_gradient(9, model.index, 1, 22), {});
    run.cluster.deliver_all(run.random);
    const std::vector<float> after = run.cluster.model();
    double norm2 = 0.0;
    for (std::size_t i = 0; i < after.size(); ++i) {
      const double moved = static_cast<double>(after[i]) - static_cast<double>(before[i]);
      norm2 += moved * moved;
    }
    EXPECT_NEAR(norm2, 0.25, 1e-5) << shards << " shards";
  }
}

TEST(SyncRoster, AWorkerThatLeavesIsNoLongerWaitedFor) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SyncTraining run(3, sync_train(0), 3, seed);
    push_all(run.cluster, run.models[0], 1, random_gradient(1, 0, 1, 22), {});
    push_all(run.cluster, run.models[2], 1, random_gradient(1, 2, 1, 22), {});
    run.cluster.deliver_all(run.random);
    EXPECT_FALSE(run.models[0].ready());
    Roster smaller = roster_of(3, 2);
    smaller.members.erase(smaller.members.begin() + 1);
    run.cluster.node(0).handle(RosterSet{smaller});
    run.cluster.deliver_all(run.random);
    ASSERT_EQ(run.cluster.rosters.size(), 1U);
    EXPECT_EQ(run.cluster.rosters[0].version, RosterVersion(2));
    EXPECT_TRUE(run.models[0].ready());
    EXPECT_TRUE(run.models[2].ready());
    EXPECT_EQ(run.cluster.node(2).shard.core().version(), Step(1));
  }
}

// A shard that wasn't connected when the roster changed gets the roster when it connects.
TEST(SyncRoster, AShardThatConnectsLaterIsToldWhichOneIsInForce) {
  Actions unheard;
  Roster smaller = roster_of(3, 2);
  smaller.members.erase(smaller.members.begin());
  ShardOptions options;
  options.train = sync_train(0);
  options.roster = roster_of(3);
  const Layout layout = small_layout(2);
  ShardCore pacer(layout, options);
  pacer.step(Instant(), Event(RosterSet{smaller}), unheard);
  Actions said;
  pacer.step(Instant(), Event(PeerOpened{ShardId(1)}), said);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(std::get<SendNews>(said[0]).message.roster.version, RosterVersion(2));
  EXPECT_EQ(std::get<SendNews>(said[0]).message.roster.members, smaller.members);
}

// Shard 1 sent its report while its link to the pacer was broken. It must report again when it reconnects, because
// nothing else triggers another report.
TEST(SyncStaged, AShardThatConnectsAgainReportsTheOpenStepAgain) {
  for (const bool clips : {false, true}) {
    TrainSection train = sync_train(0);
    if (clips) train.clip = ClipConfig{ClipKind::kGlobalNorm, 1e-3};
    SyncTraining run(2, train, 1, 7);
    run.cluster.node(1).handle(PeerOpened{ShardId(0)});
    for (const std::uint64_t clock : {1U, 2U}) {
      push_all(run.cluster, run.models[0], clock, random_gradient(7, 0, clock, 22), {});
      while (run.cluster.node(1).shard.core().parked() == 0) ASSERT_TRUE(run.cluster.deliver_one(run.random));
      run.cluster.drop(1, 0);
      run.cluster.deliver_all(run.random);
      EXPECT_FALSE(run.models[0].ready());
      run.cluster.node(1).handle(PeerOpened{ShardId(0)});
      run.cluster.deliver_all(run.random);
      EXPECT_TRUE(run.models[0].ready()) << clock;
      run.cluster.node(1).handle(PeerOpened{ShardId(0)});
      run.cluster.deliver_all(run.random);
    }
    EXPECT_EQ(run.cluster.failed, "");
    ASSERT_EQ(run.cluster.commits.size(), 2U);
    EXPECT_EQ(run.cluster.commits.back().scale < 1.0, clips) << "the norm is reported again, too";
  }
}

// The job is being stopped. Both workers have pushed step 1 to shard 0, and then the chief takes the roster of those
// that haven't finished. Without SetRoster::ends the remaining worker's push would make a step, of which the chief
// doesn't know when it takes the last checkpoint.
TEST(SyncRoster, NoStepFollowsTheOneThatEndsTheJob) {
  for (const std::uint32_t shards : {1U, 3U}) {
    for (const bool ends : {false, true}) {
      SyncTraining run(shards, sync_train(0), 2, 1);
      push_all(run.cluster, run.models[0], 1, random_gradient(1, 0, 1, 22), {});
      run.cluster.deliver_all(run.random);
      run.cluster.node(0).handle(RosterSet{roster_of(1, 2), ends});
      run.cluster.deliver_all(run.random);
      run.cluster.node(0).handle(RosterSet{roster_of(1, 3)});  // a worker was lost at the end
      run.cluster.deliver_all(run.random);
      EXPECT_EQ(run.cluster.node(0).shard.core().version(), Step(ends ? 0 : 1)) << shards << " shards";
      EXPECT_EQ(run.cluster.rosters.front().step, Step(0));
    }
  }
}

// A worker that leaves a job that stops doesn't wait for the answer to its push, and pulls for the final evaluation.
// The answer would change parameters while they are evaluated.
TEST(SyncRoster, APushIsNotAnsweredAfterItsWorkerHasPulled) {
  SyncTraining run(1, sync_train(0), 2, 1);
  push_all(run.cluster, run.models[0], 1, random_gradient(1, 0, 1, 22), {});
  run.cluster.deliver_all(run.random);
  std::size_t heard = 0;
  run.cluster.on_heard = [&heard](std::uint32_t, std::uint32_t w, const Heard&) { heard += w == 0 ? 1 : 0; };
  run.cluster.pull(0, 0, 7);
  run.cluster.deliver_all(run.random);
  const std::size_t of_pull = heard;
  EXPECT_EQ(of_pull, run.cluster.layout().buckets.size());
  push_all(run.cluster, run.models[1], 1, random_gradient(1, 1, 1, 22), {});
  run.cluster.deliver_all(run.random);
  EXPECT_EQ(run.cluster.node(0).shard.core().version(), Step(1)) << "the push counts";
  EXPECT_EQ(heard, of_pull);
}

// A rank is the number of a worker within a roster, so a commit for another roster names other workers.
TEST(SyncRoster, ACommitOfAnotherRosterIsNoStepButABug) {
  SyncTraining run(2, sync_train(0), 2, 1);
  Commit commit;
  commit.step = Step(1);
  commit.roster = RosterVersion(2);
  commit.members.insert(Rank(0));
  run.cluster.node(1).handle(CommitArrived{commit});
  EXPECT_EQ(run.cluster.failed, "shard 1 has roster 1 and was told to commit step 1 with members of roster 2");
}

// The pacer was told to cut while another shard had no link to it. Nothing else would make that shard cut.
TEST(SyncCut, AShardThatConnectsAfterTheOrderIsToldToCut) {
  ShardOptions options;
  options.train = sync_train(0);
  options.roster = roster_of(2);
  const Layout layout = small_layout(2);
  ShardCore pacer(layout, options);
  Actions said;
  pacer.step(Instant(), Event(PeerOpened{ShardId(1)}), said);
  EXPECT_EQ(said.size(), 1U) << "the news alone";
  pacer.step(Instant(), Event(AttemptPrepared{5, false}), said);
  pacer.step(Instant(), Event(CutOrdered{5, Step()}), said);
  said.clear();
  pacer.step(Instant(), Event(PeerOpened{ShardId(1)}), said);
  ASSERT_EQ(said.size(), 2U);
  EXPECT_EQ(std::get<SendCut>(said[1]).message.attempt, 5U);
}

TEST(SyncCut, NothingIsCommittedAfterOneThatHoldsUntilItIsGivenUp) {
  for (const std::uint32_t shards : {1U, 3U}) {
    SyncTraining run(shards, sync_train(0), 2, 1);
    push_all(run.cluster, run.models[0], 1, random_gradient(1, 0, 1, 22), {});
    run.cluster.deliver_all(run.random);
    for (std::uint32_t s = 0; s < shards; ++s) run.cluster.node(s).handle(AttemptPrepared{5, true});
    run.cluster.node(0).handle(CutOrdered{5, Step()});
    push_all(run.cluster, run.models[1], 1, random_gradient(1, 1, 1, 22), {});
    run.cluster.deliver_all(run.random);
    EXPECT_EQ(run.cluster.node(0).shard.core().version(), Step(0));
    EXPECT_FALSE(run.models[0].ready());
    for (std::uint32_t s = 0; s < shards; ++s) run.cluster.node(s).handle(AttemptAbandoned{5});
    run.cluster.deliver_all(run.random);
    EXPECT_EQ(run.cluster.node(shards - 1).shard.core().version(), Step(1));
    EXPECT_TRUE(run.models[0].ready());
    EXPECT_TRUE(run.models[1].ready());
  }
}

// While the pacer holds for a checkpoint it decides nothing, and more pushes arrive.
TEST(SyncDeciding, WithClippingTheNewestSetThatAllShardsHaveReportedIsCommitted) {
  SyncDecider decider(SyncRules{2, 1, 1.0});
  const auto ranks = [](std::uint32_t count) {
    RankSet set;
    for (std::uint32_t rank = 0; rank < count; ++rank) set.insert(Rank(rank));
    return set;
  };
  for (std::uint32_t count = 1; count <= 3; ++count)
    for (std::uint32_t shard = 0; shard < (count < 3 ? 2U : 1U); ++shard)
      decider.staged(Staged{ShardId(shard), Step(1), ranks(count), false, RosterVersion(1), 0.0}, Step(1),
                     RosterVersion(1));
  const auto commit = decider.decide(Step(1), RosterVersion(1), ranks(4), {});
  ASSERT_TRUE(commit);
  EXPECT_EQ(commit->members, ranks(2)) << "only one shard has reported three";
}

TEST(SyncFrames, APushTooFarAheadClosesItsChannel) {
  SyncTraining run(1, sync_train(0), 2, 1);
  push_all(run.cluster, run.models[0], 2, random_gradient(1, 0, 2, 22), {});
  run.cluster.deliver_all(run.random);
  ASSERT_FALSE(run.cluster.closed.empty());
  EXPECT_THAT(run.cluster.closed[0], testing::HasSubstr("while step 1 is open"));
}

}  // namespace
}  // namespace disttrain::shards::test
