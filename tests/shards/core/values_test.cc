// The first values that workers bring (shards/core/shard_values.cc).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>

#include "tests/shards/core/shard_cluster.h"

namespace disttrain::shards::test {
namespace {

using testing::HasSubstr;

class FirstValues : public testing::TestWithParam<Mode> {
 protected:
  static TrainSection train() {
    TrainSection train;
    train.mode = GetParam();
    train.batch_size = 10;
    return train;
  }
  static Layout layout() {
    Layout layout = small_layout(2);
    layout.model.brings_values = true;
    return layout;
  }

  void SetUp() override {
    cluster_.on_heard = [this](std::uint32_t shard, std::uint32_t worker_index, const Heard& heard) {
      if (std::holds_alternative<Parameters>(heard.message)) return void(++parameters_[worker_index]);
      if (std::get<Acknowledge>(heard.message).wants_values) asked_.emplace_back(worker_index, shard);
    };
    for (std::uint32_t w = 0; w < 2; ++w) cluster_.open(w);
    cluster_.deliver_all(random_);
  }

  void pull(std::uint32_t worker_index) {
    for (std::uint32_t shard = 0; shard < 2; ++shard) cluster_.pull(worker_index, shard, 1);
    cluster_.deliver_all(random_);
  }
  // The value of each element is `first` plus its index. Sends the first `buckets` buckets of each shard.
  void send_values(std::uint32_t worker_index, float first, std::size_t buckets = 100) {
    for (std::uint32_t shard = 0; shard < 2; ++shard) {
      const std::vector<BucketId> own = buckets_of(cluster_.layout(), ShardId(shard));
      for (std::size_t i = 0; i < std::min(buckets, own.size()); ++i) {
        const Bucket& bucket = cluster_.layout().buckets[own[i].value];
        Push push;
        push.bucket = own[i];
        push.initial = true;
        push.last = i + 1 == own.size();
        std::vector<float> values;
        for (std::uint64_t e = 0; e < bucket.words; ++e)
          values.push_back(first + static_cast<float>(bucket.flat_begin + e));
        cluster_.send(worker_index, push, values);
        cluster_.deliver_all(random_);
      }
    }
  }
  static std::vector<float> values_from(float first) {
    std::vector<float> values;
    for (std::uint64_t e = 0; e < element_count(layout().model); ++e) values.push_back(first + static_cast<float>(e));
    return values;
  }

  ShardCluster cluster_{layout(), train(), 2};
  Random random_{1};
  std::vector<std::pair<std::uint32_t, std::uint32_t>> asked_;  // worker, shard
  std::map<std::uint32_t, std::size_t> parameters_;             // by worker: number of buckets that it got
};

using Asked = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

TEST_P(FirstValues, AreAskedOfTheLowestRankAndAnswerEveryPull) {
  pull(1);
  EXPECT_TRUE(asked_.empty());
  pull(0);
  std::sort(asked_.begin(), asked_.end());
  EXPECT_EQ(asked_, (Asked{{0, 0}, {0, 1}}));
  EXPECT_TRUE(parameters_.empty());
  send_values(0, 5.0F);
  EXPECT_EQ(cluster_.model(), values_from(5.0F));
  EXPECT_EQ(parameters_[0], cluster_.layout().buckets.size());
  EXPECT_EQ(parameters_[1], cluster_.layout().buckets.size());
  EXPECT_EQ(cluster_.node(0).shard.core().version(), Step(0)) << "first values are no step";
}

TEST_P(FirstValues, AllComeFromOneWorkerEvenIfTheFirstIsLost) {
  pull(0);
  pull(1);
  send_values(0, 5.0F, 1);
  asked_.clear();
  Roster roster{RosterVersion(2), {worker(1)}};
  for (std::uint32_t shard = 0; shard < 2; ++shard) cluster_.node(shard).handle(Fence{worker(0)});
  cluster_.node(0).handle(RosterSet{roster});
  cluster_.deliver_all(random_);
  std::sort(asked_.begin(), asked_.end());
  EXPECT_EQ(asked_, (Asked{{1, 0}, {1, 1}}));
  send_values(1, 100.0F);
  EXPECT_EQ(cluster_.model(), values_from(100.0F));
  EXPECT_EQ(parameters_[1], cluster_.layout().buckets.size());
}

TEST_P(FirstValues, AreAskedAgainAfterAReconnect) {
  pull(0);
  cluster_.close(0);
  cluster_.deliver_all(random_);
  cluster_.open(0);
  cluster_.deliver_all(random_);
  asked_.clear();
  pull(0);
  EXPECT_EQ(asked_.size(), 2U);
  send_values(0, 1.0F);
  EXPECT_EQ(cluster_.model(), values_from(1.0F));
}

TEST_P(FirstValues, ThatNobodyAskedForChangeNothing) {
  pull(0);
  send_values(1, 9.0F);
  EXPECT_EQ(parameters_.size(), 0U);
  send_values(0, 5.0F);
  EXPECT_EQ(cluster_.model(), values_from(5.0F));
  send_values(1, 9.0F);
  EXPECT_EQ(cluster_.model(), values_from(5.0F));
}

TEST_P(FirstValues, ThatAreNotFiniteFailTheJob) {
  pull(0);
  send_values(0, std::numeric_limits<float>::quiet_NaN(), 1);
  EXPECT_THAT(cluster_.failed, HasSubstr("worker/0 sent first values for bucket"));
  EXPECT_THAT(cluster_.failed, HasSubstr("NaN or an infinity"));
}

TEST_P(FirstValues, GradientsThatComeBeforeThemBreakTheChannel) {
  pull(0);
  Push push;
  push.bucket = buckets_of(cluster_.layout(), ShardId(0)).front();
  push.clock = Step(1);
  cluster_.send(0, push, std::vector<float>(cluster_.layout().buckets[push.bucket.value].words));
  cluster_.deliver_all(random_);
  ASSERT_FALSE(cluster_.closed.empty());
  EXPECT_THAT(cluster_.closed.front(), HasSubstr("before the shard has its first values"));
}

std::string name_of(const testing::TestParamInfo<Mode>& mode) {
  return mode.param == Mode::kAsync ? "Async" : mode.param == Mode::kSync ? "Sync" : "Ssp";
}

INSTANTIATE_TEST_SUITE_P(InEveryMode, FirstValues, testing::Values(Mode::kAsync, Mode::kSync, Mode::kSsp), name_of);

}  // namespace
}  // namespace disttrain::shards::test
