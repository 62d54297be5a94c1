// The chief was restarted. The new chief rolls its job back if a ps is gone, and ends the rollback that the former
// chief had begun.
#include "tests/chiefd/core/reclaim_fixture.h"

namespace disttrain::chiefd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST_F(ReclaimTest, PsThatIsGoneMeansARollback) {
  const JobId job = train(job_config("a"));
  restart_chief_without({ps(0)});
  EXPECT_EQ(status(job).state, JobState::kRunning) << "others may have said hello already: nobody is blamed in a hurry";
  pass(seconds(7));
  EXPECT_EQ(status(job).state, JobState::kPaused);
  restart(ps(0));
  pass(seconds(1));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(generation(job), Generation(2));
}

// If the chief's host vanishes, a task's connection to it isn't reset. The task dials again only after the chief has
// been silent for long.
TEST_F(ReclaimTest, NewChiefWaitsForALatePsAndThenForWorkersForAWhile) {
  const JobId job = train(job_config("a"));
  restart_chief_without({ps(0), worker(1)});
  pass(seconds(5));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  hear_again(ps(0));
  hello_again(ps(0));
  pass(seconds(1));
  EXPECT_EQ(event("worker_lost"), "no event of this kind");
  pass(seconds(2));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(generation(job), Generation(1));
  EXPECT_EQ(sent<SetRoster>(ps(0)).back().roster.members, std::vector<Member>{member(worker(0))});
}

TEST_F(ReclaimTest, PsThatWasRestartedMeanwhileMeansARollback) {
  const JobId job = train(job_config("a"));
  restart_chief_without({ps(0)});
  restart(ps(0));
  pass(milliseconds(100));  // the new process has the place, so the former one is surely gone
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(generation(job), Generation(2));
  EXPECT_NE(event("rolled_back").find("how many isn't known"), std::string::npos) << event("rolled_back");
}

// The first worker that is back may be one that can't take part.
TEST_F(ReclaimTest, RollbackAfterARestartAwaitsTheOtherWorkersForAWhile) {
  const JobId job = train(job_config("a"));
  restart_chief_without({ps(0), worker(1)});
  restart(ps(0));
  pass(milliseconds(100));
  EXPECT_EQ(status(job).state, JobState::kPaused) << status(job).reason;
  pass(seconds(9));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(sent<CreateShards>(ps(0)).back().roster.members, std::vector<Member>{member(worker(0))});
}

TEST_F(ReclaimTest, NewChiefOfARecoveringJobWaitsForAFolderThatIsAway) {
  const JobId job = train(with_checkpoints());
  obedient_ = false;
  kill(ps(0));
  restart(ps(0));
  obedient_ = true;
  folder_error_ = Error{ErrorCode::kNoInput, "there is no /checkpoints"};
  restart_chief_without({});
  EXPECT_EQ(status(job).state, JobState::kPaused) << status(job).reason;
  EXPECT_EQ(status(job).checkpoints.failures, 0u) << "it is there to be gone on from";
  folder_error_.reset();
  pass(seconds(2));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
}

TEST_F(ReclaimTest, ComplaintIsHeardWhereTheRosterNamesAWorkerThatTheNewChiefDoesNotKnow) {
  config_.allow_unlisted_workers = true;
  const JobId job = train(job_config("a"));
  hello(worker(7), 77);
  ASSERT_EQ(count_sent<OpenJob>(), 3u);
  restart_chief();
  hello_again(ps(1));
  hello_again(worker(0));
  hello_again(worker(1));
  say(worker(0), TaskFailed{job, generation(job), ErrorCode::kUnavailable, "lost shard 0 at ps/0"});
  restart(ps(0));
  pass(seconds(3));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(generation(job), Generation(2));
}

TEST_F(ReclaimTest, NewChiefOfARecoveringJobWaitsForARankThatIsAway) {
  JobConfig config = job_config("a", Mode::kSync);
  config.job.on_worker_loss = OnWorkerLoss::kWait;
  const JobId job = train(config);
  for (const bool is_written : {false, true}) {
    kill(ps(0));
    obedient_ = false;
    if (is_written) restart(ps(0));  // the journal has the next generation, but no task has opened it
    restart_chief_without({worker(1)});
    obedient_ = true;
    if (!is_written) restart(ps(0));
    pass(seconds(10));
    EXPECT_NE(status(job).state, JobState::kRunning) << "without worker/1 it isn't the same training";
    EXPECT_NE(status(job).reason.find("worker/1"), std::string::npos) << status(job).reason;
    restart(worker(1));
    pass(seconds(1));
    ASSERT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
    EXPECT_EQ(journal_.jobs.at(job).roster.members, (std::vector<Member>{member(worker(0)), member(worker(1))}));
  }
}

TEST_F(ReclaimTest, RecoveryThatTheChiefBeforeBeganIsEndedAndTold) {
  const JobId job = train(job_config("a"));
  for (const bool is_written : {false, true}) {
    report_pacer(30, 0);
    const auto losses = [this] {
      return std::count_if(journal_.events.begin(), journal_.events.end(),
                           [](const EventRecord& event) { return event.kind == kLossCounted; });
    };
    const auto before = losses();
    obedient_ = false;
    kill(ps(0));
    if (is_written) restart(ps(0));
    pass(seconds(2));
    obedient_ = true;
    pacer_ = PacerReport();
    heartbeats_[ps(0)].pacer.reset();
    if (is_written) {
      restart_chief_without({});
    } else {
      restart_chief_without({ps(0)});
      EXPECT_EQ(status(job).global_step, 30u);
      restart(ps(0));
    }
    pass(seconds(1));
    ASSERT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
    EXPECT_EQ(losses(), before + 1) << "one outage is one loss";
    const std::string told = event("rolled_back");
    EXPECT_NE(told.find("30 steps are lost"), std::string::npos) << told;
    EXPECT_NE(told.find("cause: ps/0: "), std::string::npos) << told;
  }
}

TEST_F(ReclaimTest, NewChiefGoesOnWithoutAPsWhoseShardsTheOthersWereTaking) {
  JobConfig config = job_config("a");
  config.job.shards = 2;
  const JobId job = train(config);
  kill(ps(1));
  obedient_ = false;
  pass(seconds(10));
  ASSERT_EQ(generation(job), Generation(2));
  ASSERT_FALSE(journal_.jobs.at(job).is_training);
  obedient_ = true;
  restart_chief_without({ps(1)});
  pass(seconds(10));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(status(job).recoveries, 1u);
}

}  // namespace
}  // namespace disttrain::chiefd
