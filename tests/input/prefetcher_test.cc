#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <numeric>

#include "common/random.h"
#include "input/memory_dataset.h"
#include "input/prefetcher.h"

namespace disttrain::input {
namespace {

using workerd::BatchOrder;
using workerd::BatchTicket;

constexpr std::uint64_t kRecords = 100;

// Record i is the value i, with label i.
MemoryDataset numbered() {
  Contents contents;
  contents.records = kRecords;
  std::vector<float> inputs(kRecords);
  std::iota(inputs.begin(), inputs.end(), 0.0F);
  contents.inputs = values_of(inputs, 1);
  contents.labels.resize(kRecords);
  std::iota(contents.labels.begin(), contents.labels.end(), 0);
  return {std::move(contents), 0, kRecords, 1.0};
}

// Counts how often it was rung. A thread can wait until it was rung a number of times.
class Bell {
 public:
  void ring() {
    const std::lock_guard lock(mutex_);
    ++rung_;
    changed_.notify_all();
  }
  void await(int times) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this, times] { return rung_ >= times; });
  }
  int rung() const {
    const std::lock_guard lock(mutex_);
    return rung_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int rung_ = 0;
};

// A data set that gathers one batch each time the test rings the bell `gate`.
class GatedDataset final : public Dataset {
 public:
  std::uint64_t records() const override { return inner_.records(); }
  const std::vector<DatasetColumn>& columns() const override { return inner_.columns(); }
  std::uint64_t bytes_read() const override { return 0; }
  const std::vector<std::string>& label_names() const override { return inner_.label_names(); }
  std::shared_ptr<const FittedColumns> fitted_columns() const override { return inner_.fitted_columns(); }
  Status gather(std::span<const std::uint64_t> indices, std::span<const ColumnOut> columns,
                const Draw& draw) const override {
    entered.ring();
    gate.await(entered.rung());
    return inner_.gather(indices, columns, draw);
  }

  mutable Bell entered;
  mutable Bell gate;

 private:
  MemoryDataset inner_ = numbered();
};

BatchOrder order(std::uint64_t ticket, std::uint64_t begin, std::uint64_t end) {
  BatchOrder result;
  result.ticket = BatchTicket(ticket);
  if (begin < end) result.positions.push_back({begin, end});
  result.examples = end - begin;
  return result;
}

OrderOptions file_order() {
  return {.records = kRecords, .shuffle = ShuffleKind::kNone};
}

std::unique_ptr<ReadyBatch> pop(Prefetcher& prefetcher) {
  for (;;) {
    if (auto batch = prefetcher.try_pop()) return batch;
    Bell ready;
    if (prefetcher.notify_when_ready([&ready] { ready.ring(); })) ready.await(1);
  }
}

std::span<const float> inputs_of(const ReadyBatch& batch) {
  return batch.buffer.batch().columns[0].as<float>();
}

std::vector<std::int64_t> labels_of(const ReadyBatch& batch) {
  const auto labels = batch.buffer.batch().columns[1].as<std::int64_t>();
  return {labels.begin(), labels.end()};
}

PrefetchOptions options(std::uint64_t batch_size, std::uint32_t prefetch) {
  return {.batch_size = batch_size,
          .prefetch = prefetch,
          .columns = {{.name = "inputs", .dtype = DType::kFloat32, .shape = {1}},
                      {.name = "labels", .dtype = DType::kInt64, .shape = {}}}};
}

const PrefetchOptions kOptions = options(4, 2);

TEST(Prefetcher, GivesBatchesInTheOrderOfTheRequests) {
  const MemoryDataset dataset = numbered();
  Prefetcher prefetcher(dataset, file_order(), kOptions);
  ASSERT_TRUE(prefetcher.request(order(1, 4, 8)));
  ASSERT_TRUE(prefetcher.request(order(2, 0, 2)));
  auto batch = pop(prefetcher);
  EXPECT_EQ(batch->order.ticket, BatchTicket(1));
  EXPECT_EQ(labels_of(*batch), (std::vector<std::int64_t>{4, 5, 6, 7}));
  EXPECT_EQ(inputs_of(*batch)[3], 7.0F);
  prefetcher.recycle(std::move(batch));
  batch = pop(prefetcher);
  EXPECT_EQ(batch->order.ticket, BatchTicket(2));
  EXPECT_EQ(labels_of(*batch), (std::vector<std::int64_t>{0, 1}));
}

TEST(Prefetcher, PeekShowsTheBatchThatTryPopReturnsNext) {
  const GatedDataset dataset;
  Prefetcher prefetcher(dataset, file_order(), kOptions);
  ASSERT_TRUE(prefetcher.request(order(1, 4, 8)));
  dataset.entered.await(1);
  EXPECT_EQ(prefetcher.peek(), nullptr);
  Bell ready;
  ASSERT_TRUE(prefetcher.notify_when_ready([&ready] { ready.ring(); }));
  dataset.gate.ring();
  ready.await(1);
  const ReadyBatch* const next = prefetcher.peek();
  ASSERT_NE(next, nullptr);
  EXPECT_EQ(prefetcher.try_pop().get(), next);
  EXPECT_EQ(prefetcher.peek(), nullptr);
}

TEST(Prefetcher, BatchOfNoExamplesIsABatch) {
  const MemoryDataset dataset = numbered();
  Prefetcher prefetcher(dataset, file_order(), kOptions);
  ASSERT_TRUE(prefetcher.request(order(1, 5, 5)));
  EXPECT_EQ(pop(prefetcher)->buffer.examples(), 0u);
}

TEST(Prefetcher, FollowsTheEpochsOrder) {
  const MemoryDataset dataset = numbered();
  const OrderOptions shuffled{.records = kRecords, .shuffle = ShuffleKind::kEpoch, .seed = 3};
  Prefetcher prefetcher(dataset, shuffled, kOptions);
  BatchOrder wanted = order(1, 10, 12);
  wanted.epoch = 7;
  ASSERT_TRUE(prefetcher.request(wanted));
  const auto batch = pop(prefetcher);
  std::vector<std::uint64_t> expected;
  EpochOrder(shuffled).records_at(7, wanted.positions, expected);
  EXPECT_EQ(labels_of(*batch), (std::vector<std::int64_t>(expected.begin(), expected.end())));
}

TEST(Prefetcher, PositionsThatDoNotExistAreRefused) {
  const MemoryDataset dataset = numbered();
  Prefetcher prefetcher(dataset, file_order(), kOptions);
  const Status beyond = prefetcher.request(order(1, 98, 101));
  ASSERT_FALSE(beyond);
  EXPECT_NE(beyond.error().message.find("[98, 101), but the data set has 100 records"), std::string::npos);
  EXPECT_FALSE(prefetcher.request(order(1, 0, 5)));
}

TEST(Prefetcher, NothingIsThereBeforeItIsMadeAndTheCallbackComesOnce) {
  const GatedDataset dataset;
  Prefetcher prefetcher(dataset, file_order(), kOptions);
  ASSERT_TRUE(prefetcher.request(order(1, 0, 1)));
  ASSERT_TRUE(prefetcher.request(order(2, 1, 2)));
  dataset.entered.await(1);
  EXPECT_EQ(prefetcher.try_pop(), nullptr);
  Bell ready;
  EXPECT_TRUE(prefetcher.notify_when_ready([&ready] { ready.ring(); }));
  dataset.gate.ring();
  ready.await(1);
  EXPECT_FALSE(prefetcher.notify_when_ready([] { FAIL(); }));
  dataset.gate.ring();
  EXPECT_NE(pop(prefetcher), nullptr);
  EXPECT_NE(pop(prefetcher), nullptr);
  EXPECT_EQ(ready.rung(), 1);
  const PrefetchStats stats = prefetcher.stats();
  EXPECT_EQ(stats.batches, 2u);
  EXPECT_EQ(stats.examples, 2u);
  EXPECT_GE(stats.stalls, 1u);
  EXPECT_GT(stats.stalled, Duration::zero());
}

TEST(Prefetcher, DroppedBatchesDoNotComeOut) {
  const GatedDataset dataset;
  Prefetcher prefetcher(dataset, file_order(), options(4, 3));
  for (std::uint64_t i = 1; i <= 3; ++i) ASSERT_TRUE(prefetcher.request(order(i, i, i + 1)));
  dataset.entered.await(1);
  prefetcher.drop(BatchTicket(1));  // is being made
  prefetcher.drop(BatchTicket(2));  // is wanted
  for (int i = 0; i < 2; ++i) dataset.gate.ring();
  EXPECT_EQ(pop(prefetcher)->order.ticket, BatchTicket(3));
  EXPECT_EQ(prefetcher.stats().batches, 1u);
}

TEST(Prefetcher, DroppedReadyBatchDoesNotComeOut) {
  const GatedDataset dataset;
  Prefetcher prefetcher(dataset, file_order(), kOptions);
  ASSERT_TRUE(prefetcher.request(order(1, 0, 1)));
  ASSERT_TRUE(prefetcher.request(order(2, 1, 2)));
  dataset.gate.ring();
  dataset.entered.await(2);  // when the thread begins the second batch, the first one is ready
  prefetcher.drop(BatchTicket(1));
  dataset.gate.ring();
  EXPECT_EQ(pop(prefetcher)->order.ticket, BatchTicket(2));
}

TEST(Prefetcher, CancelDropsEverythingAndNewRequestsAreMade) {
  const GatedDataset dataset;
  Prefetcher prefetcher(dataset, file_order(), options(4, 4));
  for (std::uint64_t i = 1; i <= 4; ++i) ASSERT_TRUE(prefetcher.request(order(i, i, i + 1)));
  dataset.gate.ring();
  dataset.entered.await(2);  // now one batch is ready, one is being made, and two are waiting
  prefetcher.cancel();
  EXPECT_EQ(prefetcher.try_pop(), nullptr);
  ASSERT_TRUE(prefetcher.request(order(9, 50, 51)));
  for (int i = 0; i < 4; ++i) dataset.gate.ring();
  const auto batch = pop(prefetcher);
  EXPECT_EQ(batch->order.ticket, BatchTicket(9));
  EXPECT_EQ(labels_of(*batch), (std::vector<std::int64_t>{50}));
}

// With a prefetch of 4 batches, the thread sleeps until only one ready batch is left. Then it makes three batches at
// once.
TEST(Prefetcher, ThreadIsNotWokenForEachBatch) {
  const MemoryDataset dataset = numbered();
  Prefetcher prefetcher(dataset, file_order(), options(1, 4));
  // If at most one batch is ready, the thread is awake. Then this waits until the thread has made all requested
  // batches.
  const auto settle = [&prefetcher](std::uint64_t made) {
    if (prefetcher.stats().ready > 1) return;
    while (prefetcher.stats().batches < made) std::this_thread::yield();
  };
  std::uint64_t ticket = 0;
  const auto request = [&prefetcher, &ticket] {
    const std::uint64_t at = ticket++ % kRecords;
    ASSERT_TRUE(prefetcher.request(order(ticket, at, at + 1)));
  };
  for (int i = 0; i < 4; ++i) request();
  settle(ticket);
  const std::uint64_t before = prefetcher.stats().wakeups;
  for (int round = 0; round < 30; ++round) {
    prefetcher.recycle(pop(prefetcher));
    request();
    settle(ticket);
  }
  // The thread makes three batches each time it wakes up. It makes only two if it fell asleep between a pop and the
  // next request.
  EXPECT_LE(prefetcher.stats().wakeups - before, 30u / 2 + 1);
  EXPECT_GE(prefetcher.stats().batches, 31u);
}

TEST(Prefetcher, EndsWithWorkLeft) {
  const MemoryDataset dataset = numbered();
  for (int i = 0; i < 20; ++i) {
    Prefetcher prefetcher(dataset, file_order(), kOptions);
    ASSERT_TRUE(prefetcher.request(order(1, 0, 4)));
    ASSERT_TRUE(prefetcher.request(order(2, 4, 8)));
  }
}

// A data set whose second batch can't be read.
class BrokenDataset final : public Dataset {
 public:
  std::uint64_t records() const override { return inner_.records(); }
  const std::vector<DatasetColumn>& columns() const override { return inner_.columns(); }
  std::uint64_t bytes_read() const override { return 0; }
  const std::vector<std::string>& label_names() const override { return inner_.label_names(); }
  std::shared_ptr<const FittedColumns> fitted_columns() const override { return nullptr; }
  Status gather(std::span<const std::uint64_t> indices, std::span<const ColumnOut> columns,
                const Draw& draw) const override {
    if (indices.front() == 4) return fail(ErrorCode::kData, "record 4 is damaged");
    return inner_.gather(indices, columns, draw);
  }

 private:
  MemoryDataset inner_ = numbered();
};

TEST(Prefetcher, BatchThatCanNotBeReadComesWithTheReason) {
  const BrokenDataset dataset;
  Prefetcher prefetcher(dataset, file_order(), kOptions);
  ASSERT_TRUE(prefetcher.request(order(1, 0, 4)));
  ASSERT_TRUE(prefetcher.request(order(2, 4, 8)));
  EXPECT_TRUE(pop(prefetcher)->made);
  const auto broken = pop(prefetcher);
  ASSERT_FALSE(broken->made);
  EXPECT_EQ(broken->made.error().message, "record 4 is damaged");
  EXPECT_EQ(broken->buffer.examples(), 0U);
}

// Two threads make two batches at the same time: neither ends before both have begun.
TEST(Prefetcher, SeveralThreadsMakeBatchesAtTheSameTimeAndGiveThemInOrder) {
  const GatedDataset dataset;
  PrefetchOptions two = options(4, 2);
  two.threads = 2;
  Prefetcher prefetcher(dataset, file_order(), two);
  ASSERT_TRUE(prefetcher.request(order(1, 0, 4)));
  ASSERT_TRUE(prefetcher.request(order(2, 4, 8)));
  dataset.entered.await(2);
  for (int i = 0; i < 4; ++i) dataset.gate.ring();
  EXPECT_EQ(pop(prefetcher)->order.ticket, BatchTicket(1));
  EXPECT_EQ(pop(prefetcher)->order.ticket, BatchTicket(2));
}

// A consumer that acts at random. Batches must come out as requested, in order. The thread sanitizer looks for races.
TEST(Prefetcher, SurvivesARandomConsumer) {
  const MemoryDataset dataset = numbered();
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    Random random(seed);
    const auto prefetch = static_cast<std::uint32_t>(1 + random.below(5));
    PrefetchOptions some = options(4, prefetch);
    some.threads = static_cast<std::uint32_t>(1 + random.below(3));
    Prefetcher prefetcher(dataset, file_order(), some);
    std::deque<BatchOrder> wanted;
    std::uint64_t ticket = 0;
    for (int i = 0; i < 500; ++i) {
      while (wanted.size() < prefetch) {
        const std::uint64_t begin = random.below(kRecords - 4);
        wanted.push_back(order(++ticket, begin, begin + random.below(5)));
        ASSERT_TRUE(prefetcher.request(wanted.back()));
      }
      switch (random.below(8)) {
        case 0:
          prefetcher.cancel();
          wanted.clear();
          break;
        case 1: {
          const auto at = static_cast<std::ptrdiff_t>(random.below(wanted.size()));
          prefetcher.drop(wanted[static_cast<std::size_t>(at)].ticket);
          wanted.erase(wanted.begin() + at);
          break;
        }
        default: {
          auto batch = pop(prefetcher);
          ASSERT_EQ(batch->order.ticket, wanted.front().ticket) << "seed " << seed;
          ASSERT_EQ(batch->buffer.examples(), wanted.front().examples);
          for (std::uint64_t j = 0; j < batch->buffer.examples(); ++j) {
            ASSERT_EQ(inputs_of(*batch)[j], static_cast<float>(wanted.front().positions[0].begin + j));
          }
          wanted.pop_front();
          prefetcher.recycle(std::move(batch));
        }
      }
    }
  }
}

}  // namespace
}  // namespace disttrain::input
