// A job lends its records to its workers, and lends what a lost worker had to the others.
#include "tests/chiefd/core/cluster_fixture.h"

namespace disttrain::chiefd {
namespace {

TEST_F(TrainingTest, NothingIsLentBeforeTheGrantIsDurable) {
  const JobId job = train(job_config("a"));
  disk_is_held_ = true;
  ask(job, worker(0));
  EXPECT_EQ(sent<LeaseGrant>(worker(0)).size(), 0u);
  release_disk();
  EXPECT_EQ(sent<LeaseGrant>(worker(0)).size(), 1u);
}

TEST_F(TrainingTest, LostWorkerInAsyncIsFencedAndExactlyWhatTheLedgerLacksIsLentAgain) {
  JobConfig config = job_config("a");
  config.job.shards = 2;
  const JobId job = train(config);
  ask(job, worker(0));
  ask(job, worker(1));
  const std::vector<Interval> lost = sent<LeaseGrant>(worker(0)).back().lease->positions;
  ASSERT_EQ(lost, (std::vector<Interval>{{0, 500}}));
  ask(job, worker(1));
  ask(job, worker(1));
  ask(job, worker(1));
  const std::uint64_t before = records_of(sent<LeaseGrant>(worker(1)));
  answers_fence_ = false;
  pacer_.ledger = {EpochLedger{0, {{0, 20}, {30, 40}}}};
  kill(worker(0));
  EXPECT_EQ(status(job).state, JobState::kRunning);
  EXPECT_EQ(sent<FenceWorker>(ps(0)).size(), 1u);
  EXPECT_EQ(sent<FenceWorker>(ps(1)).size(), 1u);
  EXPECT_EQ(sent<SetRoster>(ps(0)).back().roster.members, std::vector<Member>{member(worker(1))});
  ask(job, worker(1));
  say(ps(0), WorkerFenced{job, Generation(1), ShardId(0), member(worker(0)), Sequence(3), Step(3)});
  for (int i = 0; i < 20; ++i) ask(job, worker(1));
  EXPECT_LE(records_of(sent<LeaseGrant>(worker(1))), 500u) << "lent again before every shard fenced the worker";
  say(ps(1), WorkerFenced{job, Generation(1), ShardId(1), member(worker(0)), Sequence(3), Step(3)});
  for (int i = 0; i < 20; ++i) ask(job, worker(1));
  EXPECT_GE(before, 1u);
  EXPECT_EQ(records_of(sent<LeaseGrant>(worker(1))), 500u + 500u - 30u);
  EXPECT_EQ(status(job).warnings.size(), 1u);
}

TEST_F(TrainingTest, SspWorkerWithoutRecordsStaysForThoseOfALostWorker) {
  const JobId job = train(job_config("a", Mode::kSsp));
  ask(job, worker(0));
  const std::uint64_t lost = records_of(sent<LeaseGrant>(worker(0)));
  for (int i = 0; i < 100; ++i) ask(job, worker(1));
  EXPECT_EQ(records_of(sent<LeaseGrant>(worker(1))), 1000u - lost);
  EXPECT_FALSE(sent<LeaseGrant>(worker(1)).back().last) << "worker/0 has a lease yet";
  kill(worker(0));
  for (int i = 0; i < 100; ++i) ask(job, worker(1));
  EXPECT_EQ(records_of(sent<LeaseGrant>(worker(1))), 1000u);
  report_pacer(100, 1);
  EXPECT_TRUE(sent<LeaseGrant>(worker(1)).back().last);
}

TEST_F(TrainingTest, SyncLendsBlocksToTheWholeRosterAhead) {
  JobConfig config = job_config("a", Mode::kSync);
  config.train.epochs = 2;
  train(config);
  for (std::uint32_t i : {0u, 1u}) {
    const std::vector<LeaseGrant> grants = sent<LeaseGrant>(worker(i));
    ASSERT_EQ(grants.size(), 2u);
    EXPECT_EQ(grants[0].lease->rank, Rank(i));
    EXPECT_EQ(grants[0].lease->steps, 50u);
    EXPECT_EQ(grants[1].lease->first_step, Step(51));
    EXPECT_FALSE(grants[0].last);
    EXPECT_TRUE(grants[1].last);
  }
}

}  // namespace
}  // namespace disttrain::chiefd
