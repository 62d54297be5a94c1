// Both kinds of leases with simulated workers: every record is visited exactly once in each epoch.
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>

#include "chiefd/core/lending.h"
#include "chiefd/core/record_leases.h"
#include "chiefd/core/step_blocks.h"
#include "common/bounds.h"

namespace disttrain::chiefd {
namespace {

Member lessee(std::uint32_t index, std::uint64_t incarnation) {
  return Member{TaskId{Role::kWorker, index}, Incarnation(incarnation)};
}

// Plays the pacer's ledger. The test fails if a record is visited twice.
class Ledger {
 public:
  explicit Ledger(std::uint64_t records) : records_(records) {}

  void visit(std::uint32_t epoch, Interval interval) {
    EXPECT_EQ(epochs_[epoch].insert(interval), interval.end - interval.begin) << "visited twice in epoch " << epoch;
  }
  std::uint32_t complete() const {
    std::uint32_t complete = 0;
    for (const auto& [epoch, visited] : epochs_) {
      if (epoch != complete || visited.size() != records_) break;
      ++complete;
    }
    return complete;
  }
  std::vector<EpochLedger> open() const {
    std::vector<EpochLedger> open;
    for (const auto& [epoch, visited] : epochs_)
      if (epoch >= complete()) open.push_back(EpochLedger{epoch, visited.to_vector()});
    return open;
  }
  std::size_t epochs() const { return epochs_.size(); }

 private:
  std::uint64_t records_;
  std::map<std::uint32_t, IntervalSet> epochs_;
};

std::uint64_t size_of(const Lease& lease) {
  std::uint64_t size = 0;
  for (const Interval& interval : lease.positions) size += interval.end - interval.begin;
  return size;
}

// With train.accumulate a step of a worker takes the records of several batches.
TEST(Lending, CountsTheRecordsOfAWholeStep) {
  JobConfig job;
  job.train.batch_size = 10;
  job.train.accumulate = 3;
  job.train.epochs = 1;
  const Member worker{TaskId{Role::kWorker, 0}, Incarnation(1)};
  for (const Mode mode : {Mode::kSync, Mode::kAsync}) {
    job.train.mode = mode;
    Lending lending(job, 100, Roster{RosterVersion(1), {worker}}, PacerReport());
    lending.request(worker, 0.0);
    const Lending::Loans loans = lending.lend({worker}, 1);
    ASSERT_FALSE(loans.loans.empty());
    const Lease& lease = loans.loans[0].lease;
    if (mode == Mode::kSync)
      EXPECT_EQ(lease.steps, 4U);
    else
      EXPECT_EQ((lease.positions.front().end - lease.positions.front().begin) % 30, 0U);
  }
}

TEST(RecordLeases, EpochIsLentOnceInMultiplesOfTheBatch) {
  RecordLeases leases(1050, 100, 1);
  IntervalSet lent;
  std::uint64_t odd = 0;
  while (std::optional<Lease> lease = leases.lend(lessee(0, 1), 0, 2)) {
    for (const Interval& interval : lease->positions) EXPECT_EQ(lent.insert(interval), interval.end - interval.begin);
    if (size_of(*lease) % 100 != 0) ++odd;
  }
  EXPECT_EQ(lent.size(), 1050u);
  EXPECT_LE(odd, 1u);
  EXPECT_FALSE(leases.complete());
  leases.note_ledger(1, {});
  EXPECT_TRUE(leases.complete());
}

// A faulty worker asks again and again.
TEST(RecordLeases, WorkerHasAtMostAThousandOpenLeases) {
  RecordLeases leases(1'000'000, 1, 0);
  const Member greedy{TaskId{Role::kWorker, 0}, Incarnation(1)};
  const Member other{TaskId{Role::kWorker, 1}, Incarnation(2)};
  for (int i = 0; i < 1000; ++i) {
    EXPECT_FALSE(leases.has_most(greedy));
    ASSERT_TRUE(leases.lend(greedy, 1e-9, 2));
  }
  EXPECT_TRUE(leases.has_most(greedy));
  EXPECT_FALSE(leases.has_most(other));
  leases.note_ledger(0, {EpochLedger{0, {Interval{0, 1}}}});
  EXPECT_FALSE(leases.has_most(greedy)) << "one is worked through";
}

TEST(RecordLeases, SizeIsASixtiethOfAnHourOrAFairPart) {
  RecordLeases slow(1'000'000, 10, 1);
  EXPECT_EQ(size_of(*slow.lend(lessee(0, 1), 100, 2)), 6000u);  // 60 s at 100 per second
  RecordLeases fast(1'000'000, 10, 1);
  EXPECT_EQ(size_of(*fast.lend(lessee(0, 1), 50'000, 4)), 62'500u);  // a quarter of a fair share
  RecordLeases brief(6000, 50, 1);
  // A lease has records for at least a quarter of a second, here 12,500 records. But it is never larger than the
  // worker's share, which is half of 6000 records here.
  EXPECT_EQ(size_of(*brief.lend(lessee(0, 1), 50'000, 2)), 3000u);
}

TEST(RecordLeases, LostWorkersRecordsAreLentAgainWithoutThoseTheLedgerHas) {
  RecordLeases leases(100, 10, 1);
  const Lease lost = *leases.lend(lessee(0, 1), 1e9, 1);
  ASSERT_EQ(lost.positions, (std::vector<Interval>{{0, 100}}));
  EXPECT_FALSE(leases.lend(lessee(1, 2), 1e9, 1));
  leases.note_ledger(0, {EpochLedger{0, {{0, 10}, {20, 50}}}});
  leases.give_back(lessee(0, 1));
  const Lease again = *leases.lend(lessee(1, 2), 1e9, 1);
  EXPECT_EQ(again.positions, (std::vector<Interval>{{10, 20}, {50, 100}}));
}

TEST(RecordLeases, SlowWorkerBoundsTheOpenEpochs) {
  RecordLeases leases(10, 10, 0);
  int lent = 0;
  while (leases.lend(lessee(0, 1), 0, 1)) ++lent;
  EXPECT_EQ(lent, 8);
  leases.note_ledger(1, {});
  EXPECT_TRUE(leases.lend(lessee(0, 1), 0, 1));
}

// Workers take leases, visit the records batch by batch, and die at random. A dead worker is fenced at once.
TEST(RecordLeases, RandomDeathsLeaveEveryRecordVisitedExactlyOnce) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    const std::uint64_t records = 1 + random() % 3000;
    const std::uint32_t batch = static_cast<std::uint32_t>(1 + random() % 70);
    const std::uint64_t epochs = 1 + random() % 5;
    const std::uint32_t workers = static_cast<std::uint32_t>(1 + random() % 5);
    RecordLeases leases(records, batch, epochs);
    Ledger ledger(records);
    std::vector<std::uint64_t> incarnations(workers);
    std::uint64_t last_incarnation = 0;
    for (auto& incarnation : incarnations) incarnation = ++last_incarnation;
    std::vector<std::deque<std::pair<std::uint32_t, Interval>>> work(workers);
    int patience = 1'000'000;
    while (!leases.complete() && --patience > 0) {
      const auto w = static_cast<std::uint32_t>(random() % workers);
      switch (random() % 40) {
        case 0:  // the worker dies, and another process takes its place
          leases.note_ledger(ledger.complete(), ledger.open());
          leases.give_back(lessee(w, incarnations[w]));
          work[w].clear();
          incarnations[w] = ++last_incarnation;
          break;
        case 1:  // a heartbeat of the pacer
          leases.note_ledger(ledger.complete(), ledger.open());
          break;
        default:
          if (work[w].empty()) {
            const auto lease = leases.lend(lessee(w, incarnations[w]), static_cast<double>(random() % 2000), workers);
            if (lease)
              for (const Interval& interval : lease->positions) work[w].emplace_back(lease->epoch, interval);
          } else {
            auto& [epoch, interval] = work[w].front();
            const Interval part{interval.begin, std::min(interval.end, interval.begin + batch)};
            ledger.visit(epoch, part);
            interval.begin = part.end;
            if (interval.begin == interval.end) work[w].pop_front();
          }
      }
    }
    EXPECT_GT(patience, 0) << "never complete";
    EXPECT_EQ(ledger.complete(), epochs);
    EXPECT_EQ(ledger.epochs(), epochs);
  }
}

StepBlocks::Options options(std::uint64_t records, std::uint32_t batch, std::uint64_t epochs, std::uint32_t ranks) {
  return StepBlocks::Options{.records = records,
                             .step_records = batch,
                             .epochs = epochs,
                             .ranks = ranks,
                             .roster = RosterVersion(1),
                             .may_be_late = false};
}

TEST(StepBlocks, BlocksFollowEachOtherAndTheLastSaysSo) {
  StepBlocks blocks(options(250, 10, 2, 3));
  const StepBlocks::Grants grants = blocks.next();
  ASSERT_EQ(grants.leases.size(), 2u);
  EXPECT_EQ(grants.leases[0].first_step, Step(1));
  EXPECT_EQ(grants.leases[0].steps, 9u);
  EXPECT_EQ(grants.leases[1].first_step, Step(10));
  EXPECT_EQ(grants.leases[1].epoch, 1u);
  EXPECT_TRUE(grants.last);
  EXPECT_TRUE(blocks.next().leases.empty());
}

TEST(StepBlocks, LongEpochsAreGrantedOneAhead) {
  StepBlocks blocks(options(1'000'000, 1, 0, 2));
  EXPECT_EQ(blocks.next().leases.size(), 2u);
  EXPECT_TRUE(blocks.next().leases.empty());
  blocks.note_ledger(Step(500'000), 1, {});
  EXPECT_EQ(blocks.next().leases.size(), 1u);
}

// A push has a limit for the pieces of its batch.
TEST(StepBlocks, RecordsInManyPiecesAreLentInSeveralBlocks) {
  EpochLedger ledger{0, {}};
  for (std::uint64_t i = 0; i < 5000; ++i) ledger.visited.push_back(Interval{2 * i, 2 * i + 1});
  StepBlocks blocks(options(10'000, 4096, 1, 1), {Step(7), 0, {ledger}, LeaseId(9)});
  const StepBlocks::Grants grants = blocks.next();
  EXPECT_TRUE(grants.last);
  ASSERT_EQ(grants.leases.size(), 3u);
  std::uint64_t records = 0;
  Step next(8);
  for (const Lease& lease : grants.leases) {
    EXPECT_LE(lease.positions.size(), kMaxVisited);
    EXPECT_EQ(lease.first_step, next);
    next = Step(next.value + lease.steps);
    for (const Interval& interval : lease.positions) records += interval.end - interval.begin;
  }
  EXPECT_EQ(records, 5000u);
}

// A synchronous job. Some gradients, drawn at random, come too late for their step.
TEST(StepBlocks, HolesOfLateGradientsAreFilledAndEveryRecordIsVisitedOnce) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937_64 random(seed);
    StepBlocks::Options o = options(1 + random() % 900, static_cast<std::uint32_t>(1 + random() % 40), 1 + random() % 4,
                                    static_cast<std::uint32_t>(1 + random() % 4));
    o.may_be_late = o.ranks > 1;
    StepBlocks blocks(o);
    Ledger ledger(o.records);
    Step step(0);
    bool last = false;
    std::uint64_t next_first = 1;
    for (int turn = 0; turn < 10'000 && !last; ++turn) {
      const StepBlocks::Grants grants = blocks.next();
      last = grants.last;
      for (const Lease& lease : grants.leases) {
        EXPECT_EQ(lease.first_step.value, next_first);
        next_first += lease.steps;
        std::vector<std::uint64_t> items;
        for (const Interval& interval : lease.positions)
          for (std::uint64_t i = interval.begin; i < interval.end; ++i) items.push_back(i);
        for (std::uint64_t n = 0; n < lease.steps; ++n) {
          const std::uint64_t late = o.may_be_late && random() % 4 == 0 ? random() % o.ranks : o.ranks;
          for (std::uint64_t rank = 0; rank < o.ranks; ++rank) {
            if (rank == late) continue;
            const std::uint64_t from = (n * o.ranks + rank) * o.step_records;
            for (std::uint64_t i = from; i < std::min<std::uint64_t>(from + o.step_records, items.size()); ++i)
              ledger.visit(lease.epoch, Interval{items[i], items[i] + 1});
          }
          step = step.next();
        }
      }
      blocks.note_ledger(step, ledger.complete(), ledger.open());
    }
    EXPECT_TRUE(last);
    EXPECT_EQ(ledger.complete(), o.epochs);
  }
}

}  // namespace
}  // namespace disttrain::chiefd
