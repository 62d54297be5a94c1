// A task loses its connection and connects again. Messages on the old connection may never have arrived, so the chief
// sends them again.
#include "tests/chiefd/core/cluster_fixture.h"

namespace disttrain::chiefd {
namespace {

using std::chrono::seconds;

TEST_F(TrainingTest, ReturningTaskIsAskedAgainAtEachStageOfTheStart) {
  start_chief(2, 2);
  hello_all();
  obedient_ = false;
  const JobId job = submit(job_config("a"));
  const auto reconnect = [this](TaskId task) {
    step(ConnectionLost{member(task), "reset"});
    hello(task);
  };
  reconnect(worker(0));
  EXPECT_EQ(sent<DescribeJob>(worker(0)).size(), 2u);
  say(worker(0), JobDescribed{job, model_, 1000, 0});
  reconnect(ps(0));
  EXPECT_EQ(sent<CreateShards>(ps(0)).size(), 2u);
  say(ps(0), ShardsCreated{job, Generation(1)});
  reconnect(worker(1));
  EXPECT_EQ(sent<OpenJob>(worker(1)).size(), 2u);
  for (std::uint32_t i : {0u, 1u}) say(worker(i), JobOpened{job, Generation(1)});
  reconnect(worker(1));
  EXPECT_EQ(sent<OpenJob>(worker(1)).size(), 2u) << "it had answered";
  reconnect(ps(0));
  EXPECT_EQ(sent<SetRoster>(ps(0)).size(), 2u);
  say(ps(0), RosterApplied{job, Generation(1), RosterVersion(1), Step(0), pacer_});
  EXPECT_EQ(status(job).state, JobState::kRunning);
  reconnect(worker(0));
  EXPECT_EQ(sent<StartJob>(worker(0)).size(), 2u);
}

TEST_F(TrainingTest, ReturningWorkerGetsItsLeasesAgain) {
  const JobId job = train(job_config("a"));
  ask(job, worker(0));
  ask(job, worker(1));
  ask(job, worker(0));
  const std::vector<LeaseGrant> before = sent<LeaseGrant>(worker(0));
  ASSERT_EQ(before.size(), 2u);
  step(ConnectionLost{member(worker(0)), "reset"});
  hello(worker(0));
  const std::vector<LeaseGrant> after = sent<LeaseGrant>(worker(0));
  ASSERT_EQ(after.size(), 4u);
  EXPECT_EQ(after[2].lease, before[0].lease);
  EXPECT_EQ(after[3].lease, before[1].lease);
  EXPECT_EQ(sent<LeaseGrant>(worker(1)).size(), 1u);
}

TEST_F(TrainingTest, LeaseThatIsBeingWrittenIsNotSentToAReturningWorkerBeforeItIsDurable) {
  const JobId job = train(job_config("a"));
  disk_is_held_ = true;
  ask(job, worker(0));
  step(ConnectionLost{member(worker(0)), "reset"});
  hello(worker(0));
  EXPECT_EQ(sent<LeaseGrant>(worker(0)).size(), 0u);
  release_disk();
  EXPECT_EQ(sent<LeaseGrant>(worker(0)).size(), 1u);
}

TEST_F(TrainingTest, ReturningSynchronousWorkerGetsItsBlocksAndThatTheyAreTheLast) {
  JobConfig config = job_config("a", Mode::kSync);
  config.train.epochs = 2;
  train(config);
  step(ConnectionLost{member(worker(1)), "reset"});
  hello(worker(1));
  const std::vector<LeaseGrant> grants = sent<LeaseGrant>(worker(1));
  ASSERT_EQ(grants.size(), 5u);
  EXPECT_EQ(grants[2].lease, grants[0].lease);
  EXPECT_EQ(grants[3].lease, grants[1].lease);
  EXPECT_FALSE(grants[4].lease);
  EXPECT_TRUE(grants[4].last);
}

TEST_F(TrainingTest, ReturningPsIsAskedAgainToFence) {
  const JobId job = train(job_config("a"));
  answers_fence_ = false;
  kill(worker(0));
  answers_fence_ = true;
  step(ConnectionLost{member(ps(0)), "reset"});
  hello(ps(0));
  EXPECT_EQ(sent<FenceWorker>(ps(0)).size(), 2u);
  pass(seconds(6));
  EXPECT_EQ(status(job).state, JobState::kRunning);
}

TEST_F(TrainingTest, ReturningTaskIsToldAgainToClose) {
  const JobId job = train(job_config("a"));
  answers_close_ = false;
  step(chiefd::Stop{ClientId(2), "", true, "ada"});
  answers_close_ = true;
  step(ConnectionLost{member(worker(0)), "reset"});
  hello(worker(0));
  EXPECT_EQ(sent<CloseJob>(worker(0)).size(), 2u);
  EXPECT_EQ(status(job).state, JobState::kStopping);
}

}  // namespace
}  // namespace disttrain::chiefd
