#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/memory_plan.h"
#include "tests/shards/core/shard_cluster.h"

namespace disttrain::shards::test {
namespace {

TEST(Store, InitialValuesDontDependOnTheNumberOfShards) {
  const TrainSection train;
  const std::vector<float> one = ShardCluster(small_layout(1), train, 1).model();
  for (std::uint32_t shards : {2U, 3U}) EXPECT_EQ(ShardCluster(small_layout(shards), train, 1).model(), one);
  EXPECT_NE(one.front(), one.back());
}

TEST(Store, TakesNoMoreMemoryThanThePlanSays) {
  const Layout layout = small_layout(2);
  for (Mode mode : {Mode::kAsync, Mode::kSsp, Mode::kSync})
    for (std::uint32_t pipeline : {0U, 1U})
      for (Rule rule : {Rule::kSgd, Rule::kAdam}) {
        TrainSection train;
        train.mode = mode;
        train.pipeline = pipeline;
        train.optimizer.rule = rule;
        const auto slots = static_cast<std::uint32_t>(update::UpdateRule(train).slots());
        for (ShardId shard : {ShardId(0), ShardId(1)}) {
          const ShardStore store(layout, shard, StoreOptions{train, 1, 3, false, false}, {});
          JobConfig job;
          job.train = train;
          const ShardMemory plan = bytes_per_shard(layout, shard, job, slots, 3, 4);
          EXPECT_LE(store.bytes(), plan.parameters + plan.slots + plan.receive);
          EXPECT_GE(store.bytes(), plan.parameters + plan.slots);
        }
      }
}

// If an event could be handled within another one, the actions of the outer event would be lost.
TEST(ShardDeathTest, AnEventFromWithinAnotherIsABug) {
  struct Reenters final : Outside {
    Shard* shard = nullptr;
    void act(const Action&) override { shard->handle(Instant(), AttemptAbandoned{1}, *this); }
    void before_update(BucketId) override {}
    void goes_on() override {}
    void update_begins() override {}
    void update_ended() override {}
  };
  ShardOptions options;
  options.roster = roster_of(1);
  StoreOptions memory;
  memory.places = 1;
  Shard shard(small_layout(1), options, memory, {});
  Reenters outside;
  outside.shard = &shard;
  EXPECT_DEATH(shard.handle(Instant(), ChannelOpened{ChannelId(1), worker(0)}, outside), "check failed");
}

// A worker writes an infinity to its gradients after the shard has checked them. The shard reads lent memory twice, so
// it applies the infinity. It notices this in the result, and sends no parameters.
TEST(Shard, GradientsThatChangeAfterTheirCheckFailTheJob) {
  struct Races final : Outside {
    std::vector<float> lent = std::vector<float>(4, 0.5F);
    std::size_t replies = 0;
    std::string failed;
    void act(const Action& action) override {
      if (const auto* fail = std::get_if<FailJob>(&action)) failed = fail->reason;
      replies += std::holds_alternative<Reply>(action) ? 1 : 0;
    }
    void before_update(BucketId) override {}
    void goes_on() override {}
    void update_begins() override { lent[2] = std::numeric_limits<float>::infinity(); }
    void update_ended() override {}
  };
  ShardOptions options;
  options.train.mode = Mode::kAsync;
  options.roster = roster_of(1);
  StoreOptions memory;
  memory.train = options.train;
  memory.places = 1;
  Shard shard(small_layout(1), options, memory, {});
  Races outside;
  shard.handle(Instant(), ChannelOpened{ChannelId(1), worker(0)}, outside);
  PushArrived event;
  event.channel = ChannelId(1);
  event.sequence = Sequence(1);
  event.push.clock = Step(1);
  event.push.want = Want::kBucket;
  event.payload_bytes = outside.lent.size() * sizeof(float);
  const auto read = shard.lend(event.channel, event.sequence, event.push, outside.lent, nullptr);
  ASSERT_TRUE(read) << read.error().message;
  shard.handle_push(Instant(), event, *read, outside);
  EXPECT_FALSE(event.nonfinite);
  EXPECT_THAT(outside.failed, testing::HasSubstr("aren't finite, in the bucket 0, which begins with the variable"));
  EXPECT_THAT(outside.failed, testing::HasSubstr("If a script writes to its gradients while they are pushed"));
  EXPECT_EQ(outside.replies, 0U);
}

// Three variables. v7 and v3 are trainable. v12 is state: workers send its value instead of a gradient. In sync, the
// store takes the mean of these values. In async, each of these values moves the store's value: with 4 workers, by a
// quarter of the difference between the two. State has no slots.
class StoreWithState : public testing::Test {
 protected:
  StoreWithState() {
    layout_ = small_layout(1);
    layout_.model.variables[1].kind = VariableKind::kState;
    train_.optimizer.learning_rate = 0.5;
  }
  static void fill(std::span<float> values, float value) { std::fill(values.begin(), values.end(), value); }

  Layout layout_;
  TrainSection train_;
};

TEST_F(StoreWithState, IsAveragedInSync) {
  train_.mode = Mode::kSync;
  ShardStore store(layout_, ShardId(0), StoreOptions{train_, 1, 2, false, false}, {});
  const BucketId mixed(0);  // elements 0..3: three of v3, one of v12
  const std::vector<float> before(store.parameters(mixed).begin(), store.parameters(mixed).end());
  auto plan = std::make_shared<SumPlan>();
  for (std::uint32_t place : {0U, 1U}) {
    const Landing landing{Landing::Kind::kStaging, Place(place), 0};
    fill(store.landing(landing, mixed), place == 0 ? 1.0F : 4.0F);
    plan->terms.push_back(SumTerm{landing, place == 0 ? 10U : 20U});
  }
  plan->at.learning_rate = 0.5;
  store.sum_and_apply(SumAndApply{mixed, plan});
  const auto after = store.parameters(mixed);
  EXPECT_FLOAT_EQ(after[0], before[0] - 0.5F * 3.0F);
  EXPECT_FLOAT_EQ(after[3], 3.0F);  // (10 * 1 + 20 * 4) / 30
}

TEST_F(StoreWithState, ReadsLentPushesWhereTheyAreUntilTheChannelEnds) {
  train_.mode = Mode::kSync;
  ShardStore store(layout_, ShardId(0), StoreOptions{train_, 1, 2, false, false}, {});
  const BucketId mixed(0);
  std::vector<float> first(4, 1.0F), second(4, 3.0F);
  const auto keeps = std::make_shared<int>();
  auto plan = std::make_shared<SumPlan>();
  plan->at.learning_rate = 0.5;
  for (std::uint32_t place : {0U, 1U}) {
    const Landing landing{Landing::Kind::kStaging, Place(place), 0};
    store.lend(landing, mixed, ChannelId(place + 1), place == 0 ? first : second, keeps);
    plan->terms.push_back(SumTerm{landing, 10U});
  }
  EXPECT_EQ(keeps.use_count(), 3);
  // Worker 1's channel ends, and its memory changes. Worker 0's memory is read when the step is applied.
  store.take_over(ChannelId(2));
  EXPECT_EQ(keeps.use_count(), 2);
  fill(second, 100.0F);
  fill(first, 5.0F);
  const float before = store.parameters(mixed)[0];
  store.sum_and_apply(SumAndApply{mixed, plan});
  EXPECT_FLOAT_EQ(store.parameters(mixed)[0], before - 0.5F * 4.0F);
  EXPECT_EQ(keeps.use_count(), 1) << "what is read is given back";
}

TEST_F(StoreWithState, APayloadThatArrivesReplacesALentOne) {
  ShardStore store(layout_, ShardId(0), StoreOptions{train_, 1, 1, false, false}, {});
  const BucketId mixed(0);
  const Landing landing{Landing::Kind::kFrame, Place(0), 0};
  const std::vector<float> lent(4, 100.0F);
  store.lend(landing, mixed, ChannelId(1), lent, nullptr);
  fill(store.landing(landing, mixed), 2.0F);
  const float before = store.parameters(mixed)[0];
  UpdateAt at;
  at.learning_rate = 0.5;
  store.apply(Apply{landing, mixed, at});
  EXPECT_FLOAT_EQ(store.parameters(mixed)[0], before - 0.5F * 2.0F);
}

TEST_F(StoreWithState, IsMixedInByItsWeightInAsync) {
  ShardStore store(layout_, ShardId(0), StoreOptions{train_, 1, 2, false, false}, {});
  const BucketId state(1);  // elements 4..7, all of v12
  const std::vector<float> before(store.parameters(state).begin(), store.parameters(state).end());
  const Landing landing{Landing::Kind::kFrame, Place(1), 0};
  fill(store.landing(landing, state), 8.0F);
  UpdateAt at;
  at.state_weight = 0.25;
  store.apply(Apply{landing, state, at});
  EXPECT_FLOAT_EQ(store.parameters(state)[2], before[2] + 0.25F * (8.0F - before[2]));
}

TEST_F(StoreWithState, OfTheLowestRankReplacesTheOthersInSync) {
  train_.mode = Mode::kSync;
  train_.state = StateRule::kLowestRank;
  ShardStore store(layout_, ShardId(0), StoreOptions{train_, 1, 2, false, false}, {});
  const BucketId mixed(0);  // elements 0..3: three of v3, one of v12
  const std::vector<float> before(store.parameters(mixed).begin(), store.parameters(mixed).end());
  auto plan = std::make_shared<SumPlan>();
  for (std::uint32_t place : {1U, 0U}) {  // the order of the ranks
    const Landing landing{Landing::Kind::kStaging, Place(place), 0};
    fill(store.landing(landing, mixed), place == 0 ? 1.0F : 4.1F);
    plan->terms.push_back(SumTerm{landing, place == 0 ? 10U : 20U});
  }
  plan->at.learning_rate = 0.5;
  plan->scale = 0.25;  // clipping scales gradients only
  store.sum_and_apply(SumAndApply{mixed, plan});
  EXPECT_FLOAT_EQ(store.parameters(mixed)[0], before[0] - 0.5F * 0.25F * (10.0F + 20.0F * 4.1F) / 30.0F);
  EXPECT_EQ(store.parameters(mixed)[3], 4.1F);
}

// The second moments are 1e31, and the parameters stay small.
TEST(StoreWithLamb, LargeSlotsAreRememberedAndLentGradientsTold) {
  const Layout layout = small_layout(1);
  StoreOptions options;
  options.train.mode = Mode::kSync;
  options.train.optimizer.rule = Rule::kLamb;
  options.places = 1;
  ShardStore store(layout, ShardId(0), options, {});
  const Landing staged{Landing::Kind::kStaging, Place(0), 0};
  const BucketId first(0);
  const std::vector<float> lent(store.parameters(first).size(), 1e17F);
  for (std::uint32_t b = 1; b < layout.buckets.size(); ++b) std::ranges::fill(store.landing(staged, BucketId(b)), 1.0F);
  store.lend(staged, first, ChannelId(1), lent, nullptr);
  auto plan = std::make_shared<SumPlan>();
  plan->terms.push_back(SumTerm{staged, 1});
  plan->at.learning_rate = 0.1;
  EXPECT_FALSE(store.prepare(*plan));
  EXPECT_TRUE(store.has_read_lent());
  for (std::uint32_t b = 0; b < layout.buckets.size(); ++b)
    EXPECT_TRUE(store.sum_and_apply(SumAndApply{BucketId(b), plan}));
  EXPECT_TRUE(store.may_overflow(first, 1.0));
  EXPECT_FALSE(store.may_overflow(BucketId(1), 1.0));
}

// v3 has bounds, and v12 has none, though they share a bucket.
TEST(StoreWithBounds, EachUpdateKeepsThem) {
  Layout layout = small_layout(1);
  layout.model.variables[2].bounds = {-0.25, 0.5};
  const BucketId mixed(0);  // elements 0..3: three of v3, one of v12
  for (const Rule rule : {Rule::kSgd, Rule::kLamb}) {
    StoreOptions options;
    options.train.mode = Mode::kSync;
    options.train.optimizer.rule = rule;
    options.places = 1;
    options.average = 0.5;
    ShardStore store(layout, ShardId(0), options, {});
    std::ranges::fill(store.parameters(), 0.0F);
    store.begin_averages();
    const Landing staged{Landing::Kind::kStaging, Place(0), 0};
    const std::vector<float> gradient = {-100.0F, 100.0F, 0.0F, 100.0F};
    auto plan = std::make_shared<SumPlan>();
    plan->terms.push_back(SumTerm{staged, 1});
    plan->at.learning_rate = 10.0;
    if (rule == Rule::kLamb)
      for (std::uint32_t b = 1; b < layout.buckets.size(); ++b)
        std::ranges::fill(store.landing(staged, BucketId(b)), 1.0F);
    std::ranges::copy(gradient, store.landing(staged, mixed).begin());
    if (rule == Rule::kLamb) store.prepare(*plan);
    store.sum_and_apply(SumAndApply{mixed, plan});
    const auto after = store.parameters(mixed);
    EXPECT_EQ(after[0], 0.5F);
    EXPECT_EQ(after[1], -0.25F);
    EXPECT_EQ(after[2], 0.0F);
    EXPECT_LT(after[3], -1.0F);
    EXPECT_EQ(store.averages(mixed)[0], 0.25F) << "the average follows the value within the bounds";
  }
}

TEST(StoreWithBounds, ANanStaysANan) {
  Layout layout = small_layout(1);
  layout.model.variables[2].bounds = {-0.25, 0.5};
  ShardStore store(layout, ShardId(0), StoreOptions{TrainSection(), 1, 1, false, false}, {});
  store.parameters()[0] = std::nanf("");
  store.parameters()[1] = 7.0F;
  store.keep_bounds();
  EXPECT_TRUE(std::isnan(store.parameters()[0]));
  EXPECT_EQ(store.parameters()[1], 0.5F);
}

TEST_F(StoreWithState, OfWeightZeroDoesntChange) {
  ShardStore store(layout_, ShardId(0), StoreOptions{train_, 1, 2, false, false}, {});
  const BucketId state(1);
  const std::vector<float> before(store.parameters(state).begin(), store.parameters(state).end());
  const Landing landing{Landing::Kind::kFrame, Place(1), 0};
  fill(store.landing(landing, state), 8.0F);
  UpdateAt at;
  at.state_weight = 0.0;
  store.apply(Apply{landing, state, at});
  EXPECT_THAT(store.parameters(state), testing::ElementsAreArray(before));
}

TEST_F(StoreWithState, IsNotInTheNorm) {
  train_.mode = Mode::kSync;
  train_.clip = ClipConfig{ClipKind::kGlobalNorm, 1.0};
  ShardStore store(layout_, ShardId(0), StoreOptions{train_, 1, 1, false, false}, {});
  SumPlan plan;
  plan.terms.push_back(SumTerm{Landing{Landing::Kind::kStaging, Place(0), 0}, 10});
  for (std::uint32_t bucket = 0; bucket < layout_.buckets.size(); ++bucket)
    fill(store.landing(plan.terms[0].landing, BucketId(bucket)), 2.0F);
  EXPECT_EQ(store.norm2(plan), 4.0 * (7 + 3));
}

TEST(Store, CopyIsOfTheMomentWhenItWasBegun) {
  TrainSection train;
  train.optimizer.rule = Rule::kMomentum;
  const Layout layout = small_layout(1);
  ShardStore store(layout, ShardId(0), StoreOptions{train, 1, 1, true, false}, {});
  const Landing landing{Landing::Kind::kFrame, Place(0), 0};
  const auto apply_to = [&](std::uint32_t bucket) {
    const auto values = store.landing(landing, BucketId(bucket));
    std::fill(values.begin(), values.end(), 1.0F);
    UpdateAt at;
    at.learning_rate = 0.5;
    store.apply(Apply{landing, BucketId(bucket), at});
  };
  for (std::uint32_t bucket = 0; bucket < layout.buckets.size(); ++bucket) apply_to(bucket);
  const auto now = [](std::span<float> values) { return std::vector<float>(values.begin(), values.end()); };
  const std::vector<float> parameters = now(store.parameters());
  const std::vector<float> momentum = now(store.slot(0));

  ASSERT_TRUE(store.begin_copy());
  EXPECT_FALSE(store.begin_copy()) << "one at a time";
  apply_to(3);
  apply_to(3);
  EXPECT_EQ(store.copy_bucket(), nullptr);
  apply_to(0);
  std::shared_ptr<const ShardCopy> copy;
  while (copy == nullptr) {
    copy = store.copy_bucket();
    apply_to(5);
  }
  EXPECT_THAT(copy->array(0), testing::ElementsAreArray(parameters));
  EXPECT_THAT(copy->array(1), testing::ElementsAreArray(momentum));
  EXPECT_NE(now(store.parameters()), parameters);
  EXPECT_EQ(store.copy(), nullptr) << "it is still held";
  copy.reset();
  EXPECT_THAT(store.copy()->array(0), testing::ElementsAreArray(now(store.parameters())));
}

TEST(Store, CopyThatUpdatesHaveMadeIsWhole) {
  const Layout layout = small_layout(2);
  ShardStore store(layout, ShardId(0), StoreOptions{TrainSection{}, 1, 1, true, false}, {});
  ASSERT_TRUE(store.begin_copy());
  for (std::uint32_t bucket : {0U, 2U, 4U})
    store.apply(Apply{Landing{Landing::Kind::kFrame, Place(0), 0}, BucketId(bucket), UpdateAt{}});
  EXPECT_NE(store.copy_bucket(), nullptr);
}

// Clipping by the global norm first measures the sum of the gradients. The step then uses the measured sum, so each
// gradient is read only once.
TEST(Store, AMeasuredStepUsesTheSumsThatWereMeasured) {
  TrainSection train;
  train.mode = Mode::kSync;
  train.clip = ClipConfig{ClipKind::kGlobalNorm, 1.0};
  const Layout layout = small_layout(1);
  const auto result = [&](bool is_measured, float later) {
    ShardStore store(layout, ShardId(0), StoreOptions{train, 1, 3, false, false}, {});
    SumPlan plan;
    plan.at.learning_rate = 0.5;
    const auto stage = [&](float first) {
      for (std::uint32_t place = 0; place < 3; ++place)
        for (std::uint32_t bucket = 0; bucket < layout.buckets.size(); ++bucket) {
          const auto values = store.landing(Landing{Landing::Kind::kStaging, Place(place), 0}, BucketId(bucket));
          for (std::size_t i = 0; i < values.size(); ++i)
            values[i] = first * static_cast<float>(1 + i) / static_cast<float>(3 + place);
        }
    };
    for (std::uint32_t place = 0; place < 3; ++place)
      plan.terms.push_back(SumTerm{Landing{Landing::Kind::kStaging, Place(place), 0}, 10 + place});
    stage(1.0F);
    EXPECT_GT(store.norm2(plan), 0.0);
    stage(later);
    plan.scale = 0.25;
    plan.is_measured = is_measured;
    const auto shared = std::make_shared<const SumPlan>(plan);
    for (std::uint32_t bucket = 0; bucket < layout.buckets.size(); ++bucket)
      store.sum_and_apply(SumAndApply{BucketId(bucket), shared});
    return std::vector<float>(store.parameters().begin(), store.parameters().end());
  };
  EXPECT_EQ(result(true, 777.0F), result(false, 1.0F)) << "the same bits";
  EXPECT_NE(result(false, 777.0F), result(false, 1.0F));
}

// The variables of small_layout(), each whole on one of three shards.
Layout whole_layout() {
  Layout layout = small_layout(1);
  layout.shards = 3;
  layout.buckets = {Bucket{ShardId(0), 0, 0, 3}, Bucket{ShardId(1), 3, 0, 4}, Bucket{ShardId(1), 7, 4, 8},
                    Bucket{ShardId(2), 15, 0, 7}};
  return layout;
}

// Updates each variable of small_layout(), the second of which is made a matrix, with gradients of 0. So weight decay
// alone changes it. Says which variables have changed.
std::vector<bool> changed_by_decay(Rule rule, DecayOf decay_of) {
  TrainSection train;
  train.mode = Mode::kSync;
  train.optimizer.rule = rule;
  train.optimizer.weight_decay = 0.5;
  train.optimizer.weight_decay_of = decay_of;
  Layout layout = small_layout(1);
  layout.model.variables[1].shape = {3, 4};
  ShardStore store(layout, ShardId(0), StoreOptions{train, 1, 1, false, false}, {});
  std::ranges::fill(store.parameters(), 1.0F);
  auto plan = std::make_shared<SumPlan>();
  plan->at = UpdateAt{.count = 0, .learning_rate = 0.25};
  plan->scale = 1.0;
  plan->terms.push_back(SumTerm{Landing{Landing::Kind::kStaging, Place(0), 0}, 10});
  if (update::UpdateRule(train).is_by_variable()) store.prepare(*plan);
  std::vector<float> flat;
  for (const BucketId id : buckets_of(layout, ShardId(0))) {
    store.sum_and_apply(SumAndApply{id, plan});
    flat.insert(flat.end(), store.parameters(id).begin(), store.parameters(id).end());
  }
  std::vector<bool> changed;
  for (std::size_t v = 0; v < layout.model.variables.size(); ++v) {
    const auto values = std::span(flat).subspan(layout.variable_begins[v], element_count(layout.model.variables[v]));
    const auto is_changed = [](float value) { return value < 1.0F; };
    changed.push_back(std::ranges::any_of(values, is_changed));
    EXPECT_EQ(std::ranges::all_of(values, is_changed), changed.back()) << "variable " << v;
  }
  return changed;
}

TEST(Store, WeightDecayOfMatricesLeavesVectorsAlone) {
  for (const Rule rule : {Rule::kSgd, Rule::kMomentum, Rule::kAdam, Rule::kAdamw, Rule::kLamb}) {
    EXPECT_EQ(changed_by_decay(rule, DecayOf::kAll), (std::vector<bool>{true, true, true}));
    EXPECT_EQ(changed_by_decay(rule, DecayOf::kMatrices), (std::vector<bool>{false, true, false}));
  }
}

// The parameters, followed by the slots, after three steps with lamb, in flat order.
std::vector<std::vector<float>> trained_by_lamb(const Layout& layout, const TrainSection& train) {
  std::vector<std::vector<float>> all(3, std::vector<float>(22));
  for (std::uint32_t s = 0; s < layout.shards; ++s) {
    ShardStore store(layout, ShardId(s), StoreOptions{train, 1, 2, true, false}, {});
    for (std::uint64_t step = 0; step < 3; ++step) {
      auto plan = std::make_shared<SumPlan>();
      plan->at = UpdateAt{.count = step, .learning_rate = 0.25};
      plan->scale = 0.5;
      for (std::uint32_t place : {0U, 1U}) {
        const Landing landing{Landing::Kind::kStaging, Place(place), 0};
        plan->terms.push_back(SumTerm{landing, 10 + place});
        for (const BucketId id : buckets_of(layout, ShardId(s))) {
          const std::span<float> values = store.landing(landing, id);
          for (std::size_t i = 0; i < values.size(); ++i)
            values[i] = std::sin(static_cast<float>(layout.buckets[id.value].flat_begin + i + 31 * place + 7 * step));
        }
      }
      if (train.clip.kind == ClipKind::kGlobalNorm) {
        store.norm2(*plan);
        plan->is_measured = true;
      }
      store.prepare(*plan);
      std::vector<BucketId> buckets = buckets_of(layout, ShardId(s));
      std::reverse(buckets.begin(), buckets.end());
      for (const BucketId id : buckets) store.sum_and_apply(SumAndApply{id, plan});
    }
    for (const BucketId id : buckets_of(layout, ShardId(s))) {
      const Bucket& bucket = layout.buckets[id.value];
      for (std::size_t i = 0; i < bucket.words; ++i) {
        all[0][bucket.flat_begin + i] = store.parameters(id)[i];
        for (std::size_t slot : {0U, 1U})
          all[1 + slot][bucket.flat_begin + i] = store.slot(slot)[bucket.shard_begin + i];
      }
    }
  }
  return all;
}

TEST(StoreLamb, GivesTheSameBitsForEveryLayout) {
  for (const ClipKind clip : {ClipKind::kNone, ClipKind::kGlobalNorm}) {
    TrainSection train;
    train.mode = Mode::kSync;
    train.optimizer.rule = Rule::kLamb;
    train.optimizer.weight_decay = 0.1;
    train.clip = ClipConfig{clip, 1.0};
    const auto mixed = trained_by_lamb(small_layout(1), train);
    EXPECT_EQ(trained_by_lamb(whole_layout(), train), mixed);
    EXPECT_NE(mixed[1], std::vector<float>(22, 0.0F));
  }
}

TEST(StoreLamb, UpdatesEachVariableAsTheRuleUpdatesItWhole) {
  TrainSection train;
  train.mode = Mode::kSync;
  train.optimizer.rule = Rule::kLamb;
  const Layout layout = small_layout(1);
  std::vector<float> expected = ShardCluster(layout, train, 1).model();
  {
    const ShardStore store(layout, ShardId(0), StoreOptions{train, 1, 2, false, false}, {});
    for (std::uint32_t b = 0; b < layout.buckets.size(); ++b)
      std::ranges::copy(store.parameters(BucketId(b)), expected.begin() + 4 * b);
  }
  std::vector<std::vector<float>> slots(2, std::vector<float>(22, 0.0F));
  const update::UpdateRule rule(train);
  for (std::uint64_t step = 0; step < 3; ++step) {
    std::vector<std::vector<float>> pushed(2, std::vector<float>(22));
    for (std::size_t place : {0U, 1U})
      for (std::size_t i = 0; i < 22; ++i) pushed[place][i] = std::sin(static_cast<float>(i + 31 * place + 7 * step));
    for (const auto& [begin, size] : {std::pair<std::size_t, std::size_t>{0, 3}, {3, 12}, {15, 7}}) {
      const std::vector<update::WeightedGradient> gradients{{std::span(pushed[0]).subspan(begin, size), 10.0F},
                                                            {std::span(pushed[1]).subspan(begin, size), 11.0F}};
      rule.apply_sum({.learning_rate = 0.25, .t = step, .gradient_scale = 0.5 / 21.0},
                     std::span(expected).subspan(begin, size), gradients,
                     {std::span(slots[0]).subspan(begin, size), std::span(slots[1]).subspan(begin, size)});
    }
  }
  const auto trained = trained_by_lamb(layout, train);
  EXPECT_EQ(trained[0], expected);
  EXPECT_EQ(trained[1], slots[0]);
}

// prepare() changes slots before update() changes the parameters. A copy that was begun before has neither change.
TEST(StoreLamb, ACopyHasNoPreparedSlots) {
  TrainSection train;
  train.mode = Mode::kSync;
  train.optimizer.rule = Rule::kLamb;
  const Layout layout = small_layout(1);
  ShardStore store(layout, ShardId(0), StoreOptions{train, 1, 1, true, false}, {});
  auto plan = std::make_shared<SumPlan>();
  plan->terms.push_back(SumTerm{Landing{Landing::Kind::kStaging, Place(0), 0}, 10});
  for (std::uint32_t b = 0; b < layout.buckets.size(); ++b)
    std::ranges::fill(store.landing(plan->terms[0].landing, BucketId(b)), 1.0F);
  ASSERT_TRUE(store.begin_copy());
  store.prepare(*plan);
  std::shared_ptr<const ShardCopy> copy;
  while (copy == nullptr) copy = store.copy_bucket();
  EXPECT_THAT(copy->array(1), testing::Each(0.0F));
  EXPECT_THAT(store.slot(0), testing::Each(testing::Ne(0.0F)));
}

TEST_F(StoreWithState, HasAveragesThatFollowTheParametersAndCopyTheState) {
  train_.optimizer.rule = Rule::kMomentum;
  StoreOptions options{train_, 1, 2, true, false};
  options.average = 0.75;
  ShardStore store(layout_, ShardId(0), options, {});
  ASSERT_EQ(store.slots(), 2U);
  const BucketId mixed(0);  // elements 0..3: three of v3, one of v12
  std::vector<float> expected(store.parameters(mixed).begin(), store.parameters(mixed).end());
  EXPECT_THAT(store.averages(mixed), testing::ElementsAreArray(expected)) << "they begin as the parameters";
  const Landing landing{Landing::Kind::kFrame, Place(1), 0};
  for (int step = 0; step < 3; ++step) {
    fill(store.landing(landing, mixed), 2.0F);
    store.apply(Apply{landing, mixed, UpdateAt{.learning_rate = 0.5, .state_weight = 1.0}});
    for (std::size_t i = 0; i < 3; ++i) expected[i] = 0.75F * expected[i] + 0.25F * store.parameters(mixed)[i];
    expected[3] = 2.0F;
    ASSERT_THAT(store.averages(mixed), testing::ElementsAreArray(expected));
  }
  EXPECT_EQ(store.copy()->arrays(), 3U);
  EXPECT_THAT(store.averages(BucketId(5)), testing::ElementsAreArray(store.parameters(BucketId(5))));
}

TEST_F(StoreWithState, AveragesBeginAgainAsTheParametersThatAreSet) {
  StoreOptions options{train_, 1, 2, false, true};
  options.average = 0.75;
  ShardStore store(layout_, ShardId(0), options, {});
  const Landing landing{Landing::Kind::kFrame, Place(1), 0};
  fill(store.landing(landing, BucketId(2)), 3.0F);
  store.set(SetParameters{landing, BucketId(2)});
  EXPECT_THAT(store.averages(BucketId(2)), testing::Each(3.0F));
  fill(store.parameters(), 5.0F);
  store.begin_averages();
  EXPECT_THAT(store.averages(BucketId(2)), testing::Each(5.0F));
}

}  // namespace
}  // namespace disttrain::shards::test
