// Tasks die while a job starts. The job starts again without them, or with their next processes. If this happens too
// often, the job fails.
#include <algorithm>

#include "tests/chiefd/core/start_failures_fixture.h"

namespace disttrain::chiefd {
namespace {

using std::chrono::seconds;

// job.on_worker_loss = "wait": the first generation chooses the ranks.
TEST_F(StartFailuresTest, RankOfAWorkerThatDiesAsItDescribesTheJobIsKept) {
  JobConfig config = job_config("a");
  config.job.on_worker_loss = OnWorkerLoss::kWait;
  const JobId job = begin_job(config);
  obedient_ = true;
  kill(worker(0));
  restart(worker(0));
  pass(seconds(10));
  ASSERT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(roster().size(), 3u);
}

// The losses are so far apart that job.max_restarts never counts two of them.
TEST_F(StartFailuresTest, JobThatRollsBackAgainAndAgainFails) {
  JobConfig config = job_config("a");
  config.job.max_restarts = 1;
  config.job.restart_window = seconds(1);
  const JobId job = begin_job(config);
  obedient_ = true;
  pass(seconds(1));
  int rollbacks = 0;
  for (; rollbacks < 300 && status(job).state != JobState::kFailed; ++rollbacks) {
    kill(ps(0));
    restart(ps(0));
    pass(seconds(12));
  }
  EXPECT_LT(rollbacks, 110) << status(job).reason;
  EXPECT_NE(status(job).reason.find("rolled back 101 times without getting further"), std::string::npos)
      << status(job).reason;
}

// A worker that has opened the job hasn't trained yet.
TEST_F(StartFailuresTest, WorkerThatDiesAfterItHasOpenedTheJobIsSparedOnce) {
  JobConfig config = job_config("a");
  config.job.min_workers = 2;
  const JobId job = begin_opening_without_last(config, 3);
  restart(worker(2));
  for (int deaths = 0; deaths < 2; ++deaths) {
    open(job, worker(0));
    restart_anew(worker(0));
    open(job, worker(1));
    pass(seconds(2));
    say(worker(0), described(job));
    pass(seconds(2));
    say(ps(0), ShardsCreated{job, generation(job)});
  }
  EXPECT_EQ(std::count_if(journal_.events.begin(), journal_.events.end(),
                          [](const EventRecord& one) { return one.kind == kLossCounted; }),
            1);
}

// worker/0 comes back again and again, and fails again and again, while worker/1 comes and goes.
TEST_F(StartFailuresTest, StartsWithoutTheSameWorkerCountAsLosses) {
  JobConfig config = job_config("a");
  config.job.max_restarts = 2;
  const JobId job = begin_opening_without_last(config, 2);
  int starts = 0;
  for (; starts < 10 && status(job).state != JobState::kFailed; ++starts) {
    restart(worker(1));
    fail(job, worker(0), ErrorCode::kConfig, "no device");
    say(worker(1), LeaveRequest{});  // which is no loss
    kill(worker(1));
    restart_anew(worker(0));
    say(worker(0), described(job));
    pass(seconds(15));
    say(ps(0), ShardsCreated{job, generation(job)});
  }
  EXPECT_EQ(starts, 4) << status(job).reason;  // one is spared, two count, and the next is one too many
  EXPECT_NE(status(job).reason.find("job.max_restarts is 2"), std::string::npos) << status(job).reason;
}

TEST_F(StartFailuresTest, WorkerThatDiesWhenItOpensTheJobJoinsLater) {
  JobConfig config = job_config("a");
  config.job.max_restarts = 2;
  const JobId job = begin_opening(config);
  open(job, worker(0));
  open(job, worker(2));
  obedient_ = true;
  kill(worker(1));
  pass(seconds(1));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(generation(job), Generation(2));
  EXPECT_EQ(roster(), (std::vector<Member>{member(worker(0)), member(worker(2))}));
  // Each of its processes dies again when it opens the job.
  for (int deaths = 2; deaths <= 3; ++deaths) {
    restart_anew(worker(1));
    pass(seconds(5));
    EXPECT_EQ(roster().size(), 3u) << deaths;
    kill(worker(1));
  }
  restart_anew(worker(1));
  pass(seconds(30));
  EXPECT_EQ(status(job).state, JobState::kRunning);
  EXPECT_EQ(generation(job), Generation(2)) << "the others have gone on";
  EXPECT_EQ(roster().size(), 2u);
  EXPECT_NE(reason_of(job, worker(1)).find("it was lost 3 times"), std::string::npos) << reason_of(job, worker(1));
  EXPECT_NE(reason_of(job, worker(1)).find("; the last loss: its connection closed"), std::string::npos);
}

TEST_F(StartFailuresTest, WorkerThatDiesWhileTheShardsAreMadeCostsOneRollback) {
  JobConfig config = job_config("a");
  config.job.max_restarts = 0;
  const JobId job = begin_job(config);
  say(worker(0), described(job));
  obedient_ = true;
  kill(worker(2));
  pass(seconds(2));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(roster().size(), 2u);
}

TEST_F(StartFailuresTest, InvitedWorkersThatDieAgainAndAgainEndTheJob) {
  JobConfig config = job_config("a");
  config.job.max_restarts = 2;
  const JobId job = train(config, 1);
  obedient_ = false;  // its trainer kills it before it has described the model
  for (int deaths = 0; deaths < 3; ++deaths) {
    kill(worker(0));
    restart(worker(0));
    pass(seconds(1));
  }
  EXPECT_EQ(status(job).state, JobState::kFailed) << status(job).reason;
  EXPECT_EQ(status(job).root_cause->task, worker(0));
  EXPECT_NE(status(job).root_cause->reason.find("while it read the data and built the model, its connection closed"),
            std::string::npos)
      << status(job).root_cause->reason;
}

}  // namespace
}  // namespace disttrain::chiefd
