#include "chiefd/core/placement.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace disttrain::chiefd {
namespace {

constexpr Placement kAll[] = {Placement::kBalanced, Placement::kRoundRobin, Placement::kGreedy,
                              Placement::kPartitioned};

VariableSpec variable(const std::string& name, std::vector<std::uint64_t> shape) {
  return VariableSpec{.name = name,
                      .shape = std::move(shape),
                      .kind = VariableKind::kTrainable,
                      .initializer = {},
                      .fan_in = 1,
                      .fan_out = 1};
}

ModelSpec mlp(const std::vector<std::uint64_t>& layers) {
  ModelSpec model;
  for (std::size_t i = 0; i + 1 < layers.size(); ++i) {
    model.variables.push_back(variable("w" + std::to_string(i), {layers[i], layers[i + 1]}));
    model.variables.push_back(variable("b" + std::to_string(i), {layers[i + 1]}));
  }
  return model;
}

ModelSpec random_model(std::mt19937_64& random) {
  ModelSpec model;
  const std::size_t variables = 1 + random() % 24;
  for (std::size_t v = 0; v < variables; ++v) {
    const std::uint64_t largest = std::uint64_t{1} << (random() % 21);
    switch (random() % 3) {
      case 0:
        model.variables.push_back(variable("s" + std::to_string(v), {}));
        break;
      case 1:
        model.variables.push_back(variable("v" + std::to_string(v), {1 + random() % largest}));
        break;
      default:
        model.variables.push_back(variable("m" + std::to_string(v), {1 + random() % 300, 1 + random() % 5000}));
    }
  }
  return model;
}

// Makes about half of the variables float64.
ModelSpec with_doubles(ModelSpec model, std::mt19937_64& random) {
  for (VariableSpec& variable : model.variables)
    if (random() % 2 == 0) variable.dtype = DType::kFloat64;
  return model;
}

// For each variable, the shards that hold a part of it.
std::vector<std::vector<std::uint32_t>> shards_of_variables(const Layout& layout) {
  std::vector<std::vector<std::uint32_t>> shards(layout.model.variables.size());
  for (std::uint32_t b = 0; b < layout.buckets.size(); ++b)
    for (const Slice& slice : slices_of(layout, BucketId(b))) {
      auto& of = shards[slice.variable];
      if (std::find(of.begin(), of.end(), layout.buckets[b].shard.value) == of.end())
        of.push_back(layout.buckets[b].shard.value);
    }
  return shards;
}

std::pair<std::uint64_t, std::uint64_t> lightest_and_heaviest(const Layout& layout) {
  std::uint64_t least = shard_words(layout, ShardId(0));
  std::uint64_t most = least;
  for (std::uint32_t s = 1; s < layout.shards; ++s) {
    least = std::min(least, shard_words(layout, ShardId(s)));
    most = std::max(most, shard_words(layout, ShardId(s)));
  }
  return {least, most};
}

// A naive version of validate(): each word of each variable is in exactly one bucket, and no bucket divides a double or
// has variables of two types.
void expect_covered_once(const Layout& layout) {
  ASSERT_TRUE(validate(layout)) << validate(layout).error().message;
  std::vector<std::uint64_t> covered(layout.model.variables.size(), 0);
  std::vector<std::uint64_t> next(layout.model.variables.size(), 0);
  for (std::uint32_t b = 0; b < layout.buckets.size(); ++b)
    for (const Slice& slice : slices_of(layout, BucketId(b))) {
      EXPECT_EQ(slice.variable_begin, next[slice.variable]);
      const DType dtype = layout.model.variables[slice.variable].dtype;
      EXPECT_EQ(dtype, dtype_of(layout, BucketId(b)));
      if (dtype == DType::kFloat64) {
        EXPECT_EQ((layout.buckets[b].flat_begin | layout.buckets[b].shard_begin | slice.bucket_begin | slice.words) % 2,
                  0U);
      }
      next[slice.variable] += slice.words;
      covered[slice.variable] += slice.words;
    }
  for (std::size_t v = 0; v < covered.size(); ++v) EXPECT_EQ(covered[v], word_count(layout.model.variables[v]));
}

TEST(Placement, RandomModelsAreCoveredOnceWhereverTheyCanBePlaced) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const ModelSpec model = seed % 2 == 0 ? random_model(random) : with_doubles(random_model(random), random);
    const std::uint32_t shards = 1 + static_cast<std::uint32_t>(random() % 9);
    for (Placement placement : kAll) {
      SCOPED_TRACE("placement " + std::to_string(static_cast<int>(placement)));
      if (Result<Layout> layout = place(model, placement, shards)) {
        EXPECT_EQ(layout->shards, shards);
        expect_covered_once(*layout);
      } else {
        EXPECT_GT(shards, 1u);
        EXPECT_EQ(layout.error().code, ErrorCode::kConfig);
      }
      const Result<Layout> automatic = place_on(model, placement, 0, 1, shards);
      ASSERT_TRUE(automatic) << automatic.error().message;
      expect_covered_once(*automatic);
    }
  }
}

TEST(Placement, SmallVariablesAreNeverCut) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const ModelSpec model = random_model(random);
    for (Placement placement : kAll) {
      const Result<Layout> layout = place_on(model, placement, 0, 1, 8);
      ASSERT_TRUE(layout);
      std::map<std::uint32_t, int> buckets;
      for (std::uint32_t b = 0; b < layout->buckets.size(); ++b)
        for (const Slice& slice : slices_of(*layout, BucketId(b))) ++buckets[slice.variable];
      for (const auto& [v, count] : buckets) {
        if (element_count(model.variables[v]) < kWholeWords) {
          EXPECT_EQ(count, 1) << model.variables[v].name;
        }
      }
    }
  }
}

TEST(Placement, SmallVariablesAreDividedAmongShards) {
  ModelSpec model;
  model.variables.push_back(variable("weight", {8}));
  model.variables.push_back(variable("bias", {1}));
  EXPECT_TRUE(place(model, Placement::kBalanced, 2));
}

TEST(Placement, BalancedShardsDifferByTheCutsAtMost) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const ModelSpec model = random_model(random);
    const Result<Layout> layout = place_on(model, Placement::kBalanced, 0, 1, 8);
    ASSERT_TRUE(layout);
    const auto [least, most] = lightest_and_heaviest(*layout);
    const std::uint64_t rounds = (layout->buckets.size() + layout->shards - 1) / layout->shards;
    EXPECT_LE(most - least, rounds * (kWholeWords + 1)) << layout->buckets.size() << " buckets";
  }
}

TEST(Placement, GreedyShardsDifferByOneVariableAtMost) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const ModelSpec model = random_model(random);
    const Result<Layout> layout = place_on(model, Placement::kGreedy, 0, 1, 6);
    ASSERT_TRUE(layout);
    std::uint64_t largest = 0;
    for (const VariableSpec& v : model.variables) largest = std::max(largest, element_count(v));
    const auto [least, most] = lightest_and_heaviest(*layout);
    EXPECT_LE(most - least, largest);
  }
}

TEST(Placement, BalancedPutsTheLastLayerFirstAndDealsBucketsInTurn) {
  const ModelSpec model = mlp({784, 4096, 4096, 10});
  const Layout layout = *place(model, Placement::kBalanced, 2);
  EXPECT_EQ(layout.variable_begins.back(), 0u);  // the last bias
  EXPECT_EQ(layout.buckets.size() % 2, 0u);
  EXPECT_LE(layout.buckets.size(), 84u);
  for (std::size_t b = 0; b < layout.buckets.size(); ++b) EXPECT_EQ(layout.buckets[b].shard.value, b % 2);
}

TEST(Placement, BucketsOfALargeVariableBeginAtLinesOfTheCache) {
  ModelSpec model;
  model.variables.push_back(variable("large", {4096, 4097}));
  model.variables.push_back(variable("odd", {13}));  // the first in the flat array
  for (const Placement placement : kAll) {
    const Layout layout = *place(model, placement, 2);
    for (const Bucket& bucket : layout.buckets) {
      const bool is_cut = bucket.flat_begin > 13;  // and doesn't begin with a variable
      const bool begins_part = placement == Placement::kPartitioned && bucket.shard_begin == 0;
      if (!is_cut || begins_part) continue;
      EXPECT_EQ(bucket.flat_begin % 16, 0U) << "placement " << static_cast<int>(placement);
    }
  }
}

TEST(Placement, SmallModelOnTwoShardsIsHalved) {
  const Layout layout = *place(mlp({784, 100, 10}), Placement::kBalanced, 2);
  ASSERT_EQ(layout.buckets.size(), 2u);
  EXPECT_EQ(layout.buckets[0].words, 39744u) << "at a line of the cache";
  EXPECT_EQ(layout.buckets[1].words, 39766u);
}

TEST(Placement, RoundRobinKeepsVariablesWholeAndOneBucketPerShardOfASmallModel) {
  const Layout layout = *place(mlp({784, 100, 10}), Placement::kRoundRobin, 2);
  ASSERT_EQ(layout.buckets.size(), 2u);
  const auto shards = shards_of_variables(layout);
  EXPECT_EQ(shards, (std::vector<std::vector<std::uint32_t>>{{0}, {1}, {0}, {1}}));
  EXPECT_LT(layout.variable_begins[2], layout.variable_begins[0]);  // within a shard, the last layer comes first
}

TEST(Placement, GreedyGivesTheLargestVariableAShardOfItsOwn) {
  const Layout layout = *place(mlp({784, 100, 10}), Placement::kGreedy, 2);
  EXPECT_EQ(shard_words(layout, ShardId(0)), 78400u);
  EXPECT_EQ(shard_words(layout, ShardId(1)), 1110u);
}

TEST(Placement, ARuleThatNeedsWholeVariablesGetsThemWhole) {
  JobConfig job;
  EXPECT_EQ(placement_of(job), Placement::kBalanced);
  job.train.optimizer.rule = Rule::kLamb;
  job.job.placement = Placement::kRoundRobin;
  EXPECT_EQ(placement_of(job), Placement::kRoundRobin);
  job.job.placement = Placement::kBalanced;
  std::mt19937_64 random(5);
  for (int i = 0; i < 50; ++i) {
    const ModelSpec model = random_model(random);
    const Result<Layout> layout = place_on(model, placement_of(job), 0, 1, 4);
    ASSERT_TRUE(layout);
    std::map<std::uint32_t, ShardId> owners;
    for (std::uint32_t b = 0; b < layout->buckets.size(); ++b)
      for (const Slice& slice : slices_of(*layout, BucketId(b)))
        ASSERT_EQ(owners.try_emplace(slice.variable, layout->buckets[b].shard).first->second, layout->buckets[b].shard);
  }
}

TEST(Placement, PartitionedCutsRowsEvenlyAndLeavesSmallVariablesWhole) {
  const Layout layout = *place(mlp({784, 100, 10}), Placement::kPartitioned, 4);
  const auto shards = shards_of_variables(layout);
  EXPECT_EQ(shards[0].size(), 4u);
  for (std::size_t v : {1u, 2u, 3u}) EXPECT_EQ(shards[v].size(), 1u);
  for (const Bucket& bucket : layout.buckets) EXPECT_LE(bucket.words, 19600u + 1110u);
}

TEST(Placement, Float64VariablesComeFirstInBucketsOfTheirOwn) {
  ModelSpec model = mlp({3, 5, 7});
  model.variables[1].dtype = DType::kFloat64;  // b0, 5 elements
  const Layout layout = place(model, Placement::kBalanced, 1).value();
  EXPECT_EQ(layout.variable_begins, (std::vector<std::uint64_t>{52, 0, 17, 10}));
  ASSERT_EQ(layout.buckets.size(), 2U);
  EXPECT_EQ(layout.buckets[0].words, 10U);
  EXPECT_EQ(dtype_of(layout, BucketId(0)), DType::kFloat64);
  EXPECT_EQ(dtype_of(layout, BucketId(1)), DType::kFloat32);
}

TEST(Layout, DoublesThatAreDividedOrBehindFloatsAreRefused) {
  Layout layout;
  layout.model.variables = {variable("f", {3}), variable("d", {3})};
  layout.model.variables[1].dtype = DType::kFloat64;
  layout.shards = 1;
  layout.variable_begins = {6, 0};
  layout.buckets = {Bucket{ShardId(0), 0, 0, 4}, Bucket{ShardId(0), 4, 4, 2}, Bucket{ShardId(0), 6, 6, 3}};
  ASSERT_TRUE(validate(layout));
  const auto refuses = [](Layout bad, const std::string& words) {
    const Status valid = validate(bad);
    EXPECT_FALSE(valid);
    if (valid) return;
    EXPECT_NE(valid.error().message.find(words), std::string::npos) << valid.error().message;
  };
  Layout divided = layout;
  divided.buckets = {Bucket{ShardId(0), 0, 0, 3}, Bucket{ShardId(0), 3, 3, 3}, Bucket{ShardId(0), 6, 6, 3}};
  refuses(divided, "whole float64 elements");
  Layout mixed = layout;
  mixed.buckets = {Bucket{ShardId(0), 0, 0, 4}, Bucket{ShardId(0), 4, 4, 5}};
  refuses(mixed, "whole float64 elements");
  Layout behind = layout;
  behind.variable_begins = {0, 3};
  refuses(behind, "behind a float32 variable");
  Layout other = layout;
  other.model.variables[0].dtype = DType::kInt64;
  refuses(other, "int64; expected float32 or float64");
}

TEST(Placement, MoreShardsThanPiecesIsAnErrorThatSaysHowManyWouldDo) {
  const Result<Layout> layout = place(mlp({4, 2}), Placement::kRoundRobin, 3);
  ASSERT_FALSE(layout);
  EXPECT_EQ(layout.error().code, ErrorCode::kConfig);
  EXPECT_NE(layout.error().message.find("set job.shards to 2 or fewer"), std::string::npos) << layout.error().message;
}

TEST(Placement, MoreShardsThanOfferedIsAnError) {
  const Result<Layout> layout = place_on(mlp({784, 100, 10}), Placement::kBalanced, 5, 1, 4);
  ASSERT_FALSE(layout);
  EXPECT_NE(layout.error().message.find("offer 4 together"), std::string::npos) << layout.error().message;
}

TEST(Placement, AutoShardsIsOnePerMebibyteWithinTheOffer) {
  EXPECT_EQ(auto_shards(318'040, 8, 8), 1u);
  EXPECT_EQ(auto_shards(1024 * 1024, 1, 8), 1u);
  EXPECT_EQ(auto_shards(1024 * 1024 + 4, 8, 8), 2u);
  EXPECT_EQ(auto_shards(80'000'000, 8, 8), 8u);
  EXPECT_EQ(auto_shards(1024 * 1024, 9, 8), 2u) << "more for more workers";
  EXPECT_EQ(auto_shards(318'040, 1000, 100), 38u);
  EXPECT_EQ(place_on(mlp({784, 100, 10}), Placement::kBalanced, 0, 1000, 100)->shards, 38u);
}

TEST(Placement, ShardsOfAJobWithOneWorkerHaveSeveralBuckets) {
  const auto buckets = [](const ModelSpec& model, std::uint32_t shards, std::size_t workers) {
    return place_on(model, Placement::kBalanced, shards, workers, 8)->buckets.size();
  };
  EXPECT_EQ(buckets(mlp({784, 100, 10}), 1, 2), 1u);
  EXPECT_EQ(buckets(mlp({784, 100, 10}), 1, 1), 2u);
  EXPECT_EQ(buckets(mlp({784, 512, 256, 10}), 1, 2), 3u);
  EXPECT_EQ(buckets(mlp({784, 512, 256, 10}), 1, 1), 4u);
  EXPECT_EQ(buckets(mlp({784, 512, 256, 10}), 4, 1), 16u);
  EXPECT_EQ(buckets(mlp({784, 4096, 4096, 10}), 2, 1), buckets(mlp({784, 4096, 4096, 10}), 2, 2));
  EXPECT_EQ(buckets(mlp({64, 10}), 1, 1), 1u);
}

TEST(Placement, OwnersTakeEachPsOnceBeforeAnyTwice) {
  const TaskId ps0{Role::kPs, 0};
  const TaskId ps1{Role::kPs, 1};
  const TaskId ps2{Role::kPs, 2};
  const std::vector<Offer> offers = {{ps0, 3}, {ps1, 1}, {ps2, 2}};
  EXPECT_EQ(assign_owners(offers, 2), (std::vector<TaskId>{ps0, ps1}));
  EXPECT_EQ(assign_owners(offers, 6), (std::vector<TaskId>{ps0, ps1, ps2, ps0, ps2, ps0}));
}

}  // namespace
}  // namespace disttrain::chiefd
