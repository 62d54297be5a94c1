// The chief computes how many workers the memory of the ps tasks allows. This one number decides whether a job is
// admitted, how large its shards are made, and how many workers may join. The same holds after a rollback and under
// another chief.
#include "chiefd/core/memory_fit.h"

#include "chiefd/core/placement.h"
#include "common/memory_plan.h"
#include "tests/chiefd/core/recovery_fixture.h"

namespace disttrain::chiefd {
namespace {

using std::chrono::seconds;

class MemoryTest : public RecoveryTest {
 protected:
  static JobConfig synchronous() { return job_config("a", Mode::kSync); }
  // The bytes that the job's only shard needs for this number of workers.
  std::uint64_t sum_for(std::uint32_t workers) {
    const Layout layout = *place(model_, Placement::kBalanced, 1);
    return bytes_per_shard(layout, ShardId(0), synchronous(), 0, workers, config_.transport.credits).total();
  }
  // Starts a job with one ps. The cluster file lists `listed` workers, and `there` of them are connected.
  JobId start(std::uint32_t listed, std::uint32_t there, std::uint64_t memory) {
    memory_[ps(0)] = memory;
    start_chief(1, listed);
    hello(ps(0));
    for (std::uint32_t i = 0; i < there; ++i) hello(worker(i));
    JobConfig config = synchronous();
    config.job.min_workers = 1;
    const JobId job = submit(config);
    pass(seconds(5));
    return job;
  }
  std::uint32_t places() { return sent<CreateShards>(ps(0)).back().places; }
  std::size_t workers_of(JobId job) { return journal_.jobs.at(job).roster.members.size(); }
};

TEST_F(MemoryTest, IsMadeForAllListedWorkersIfItSuffices) {
  start(5, 2, sum_for(5));
  EXPECT_EQ(places(), 5u);
}

TEST_F(MemoryTest, IsMadeForTheWorkersThatFitAndTheOthersAreRefusedWithTheSum) {
  const JobId job = start(5, 2, sum_for(4) - 1);
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(places(), 3u);
  hello(worker(2));
  pass(seconds(5));
  EXPECT_EQ(workers_of(job), 3u);
  hello(worker(3));
  hello(worker(4));
  pass(seconds(5));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(workers_of(job), 3u);
  EXPECT_NE(event("worker_refused").find("with 4 workers the job needs"), std::string::npos) << event("worker_refused");
  EXPECT_NE(event("worker_refused").find("at ps/0, which may use"), std::string::npos) << event("worker_refused");
  // The chief reports each refused worker once, however often that worker tries to join.
  EXPECT_EQ(std::count_if(journal_.events.begin(), journal_.events.end(),
                          [](const EventRecord& e) { return e.kind == "worker_refused"; }),
            2);
}

TEST_F(MemoryTest, WorkerTakesThePlaceOfAWorkerThatIsGone) {
  const JobId job = start(4, 2, sum_for(2));
  hello(worker(2));
  pass(seconds(5));
  ASSERT_EQ(workers_of(job), 2u);
  kill(worker(0));
  pass(seconds(5));
  EXPECT_EQ(workers_of(job), 2u) << "worker/2 has its place";
  EXPECT_EQ(journal_.jobs.at(job).roster.members.back(), member(worker(2)));
}

TEST_F(MemoryTest, JobThatDoesNotFitForTheWorkersThatAreThereIsRefused) {
  const JobId job = start(4, 3, sum_for(3) - 1);
  EXPECT_EQ(status(job).state, JobState::kFailed);
  EXPECT_EQ(status(job).code, ErrorCode::kConfig);
  EXPECT_NE(status(job).reason.find("with 3 workers the job needs"), std::string::npos) << status(job).reason;
}

TEST_F(MemoryTest, UnlistedWorkersHavePlacesToo) {
  config_.allow_unlisted_workers = true;
  start(2, 2, 0);
  EXPECT_EQ(places(), 18u);
}

// After the rollback, more workers are connected than before, or the ps has less memory.
TEST_F(MemoryTest, RollbackTakesAsManyWorkersAsThereIsMemoryFor) {
  const JobId job = start(4, 2, sum_for(4));
  hello(worker(2));
  hello(worker(3));
  pass(seconds(5));
  ASSERT_EQ(workers_of(job), 4u);
  kill(ps(0));
  memory_[ps(0)] = sum_for(3);
  restart(ps(0));
  pass(seconds(5));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(workers_of(job), 3u);
  EXPECT_EQ(places(), 3u);
  EXPECT_NE(event("worker_refused").find("worker/3 can't join the job: with 4 workers"), std::string::npos)
      << event("worker_refused");
}

TEST_F(MemoryTest, RollbackWaitsWhereThereIsNoMemoryForTheFewest) {
  const JobId job = start(2, 2, sum_for(2));
  kill(ps(0));
  memory_[ps(0)] = sum_for(1) - 1;
  restart(ps(0));
  pass(seconds(5));
  EXPECT_EQ(status(job).state, JobState::kPaused);
  EXPECT_NE(status(job).reason.find("with 1 worker the job needs"), std::string::npos) << status(job).reason;
}

// The journal says for how many workers the shards have memory. The new chief's cluster file may list more workers.
TEST_F(MemoryTest, NewChiefKnowsForHowManyWorkersMemoryWasMade) {
  const JobId job = start(2, 2, 0);
  ASSERT_EQ(places(), 2u);
  config_.workers.resize(4);
  for (std::uint32_t i = 2; i < 4; ++i) config_.workers[i].address = "host:712" + std::to_string(i);
  restart_chief();
  hello_again(ps(0));
  for (const std::uint32_t i : {0u, 1u}) hello_again(worker(i));
  pass(seconds(1));
  hello(worker(2));
  pass(seconds(5));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(workers_of(job), 2u);
  EXPECT_NE(event("worker_refused").find("was made for 2 workers"), std::string::npos) << event("worker_refused");
}

// most_workers() returns the largest number of workers whose bytes fit. why_not() must agree with it.
TEST(MemoryFit, IsTheLargestNumberWhoseSumFits) {
  ModelSpec model{{VariableSpec{"w", {784, 100}, VariableKind::kTrainable, {}, 784, 100}}, {}, {}, {}};
  for (const Mode mode : {Mode::kAsync, Mode::kSync}) {
    JobConfig job;
    job.train.mode = mode;
    const Layout layout = *place(model, Placement::kBalanced, 2);
    const std::vector<TaskId> owners = {ps(0), ps(1)};
    const auto sum = [&](std::uint32_t shard, std::uint32_t workers) {
      return bytes_per_shard(layout, ShardId(shard), job, 0, workers, 4).total();
    };
    for (const std::uint32_t workers : {1u, 2u, 7u, 100u}) {
      const MemoryFit fit(layout, owners, job, 4, {{ps(0), sum(0, workers)}, {ps(1), sum(1, 1000)}});
      EXPECT_EQ(fit.most_workers(1000), workers);
      EXPECT_EQ(fit.why_not(workers), "");
      EXPECT_NE(fit.why_not(workers + 1).find("at ps/0"), std::string::npos) << fit.why_not(workers + 1);
    }
    const MemoryFit none(layout, owners, job, 4, {{ps(0), 1}});
    EXPECT_EQ(none.most_workers(5), 0u);
    const MemoryFit unknown(layout, owners, job, 4, {});
    EXPECT_EQ(unknown.most_workers(5), 5u);
  }
}

TEST_F(TrainingTest, ModelThatDoesNotFitIsRefusedWithTheSum) {
  start_chief(1, 1);
  hello(worker(0));
  TaskHello big;
  big.member = Member{ps(0), Incarnation(5)};
  big.shards = 1;
  big.memory_bytes = 1 << 20;
  step(TaskJoined{big});
  const JobId job = submit(job_config("a"));
  EXPECT_EQ(status(job).state, JobState::kFailed);
  EXPECT_EQ(status(job).code, ErrorCode::kConfig);
  EXPECT_NE(status(job).reason.find("may use 1 MiB"), std::string::npos) << status(job).reason;
}

}  // namespace
}  // namespace disttrain::chiefd
