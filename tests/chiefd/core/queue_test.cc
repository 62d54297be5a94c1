// Requests of clients: to submit, stop or kill a job. Also the queue in which jobs wait.
#include "tests/chiefd/core/cluster_fixture.h"

namespace disttrain::chiefd {
namespace {

using std::chrono::seconds;

TEST_F(TrainingTest, StopWaitsForTheWorkersAndSkipsTheEvaluation) {
  evaluation_records_ = 10;
  JobConfig config = job_config("a", Mode::kSync);
  config.evaluate.files = "t*";
  const JobId job = train(config);
  step(chiefd::Stop{ClientId(2), "", false, "ada"});
  EXPECT_EQ(done_, 1);
  EXPECT_EQ(status(job).state, JobState::kStopping);
  EXPECT_EQ(sent<StopJob>(worker(1)).size(), 1u);
  finish(job, worker(0));
  // The roster must shrink at once, because worker/1 may be waiting for worker/0 in a step.
  EXPECT_EQ(sent<SetRoster>(ps(0)).back().roster.members, std::vector<Member>{member(worker(1))});
  finish(job, worker(1));
  EXPECT_EQ(status(job).state, JobState::kStopped);
  EXPECT_EQ(status(job).reason, "stopped by ada");
  EXPECT_EQ(count_sent<Evaluate>(), 0u);
}

TEST_F(TrainingTest, StoppedJobIsReleasedByItsWorkersBeforeItsPs) {
  const JobId job = train(job_config("a"));
  answers_close_ = false;
  step(chiefd::Stop{ClientId(2), "", false, "ada"});
  finish(job, worker(0));
  finish(job, worker(1));
  EXPECT_EQ(count_sent<CloseJob>(), 2u);
  EXPECT_EQ(sent<CloseJob>(ps(0)).size(), 0u);
  say(worker(0), JobClosed{job});
  say(worker(1), JobClosed{job});
  EXPECT_EQ(sent<CloseJob>(ps(0)).size(), 1u);
}

TEST_F(TrainingTest, KillClosesAtOnceAndUnwillingTasksAreLeftBehind) {
  const JobId job = train(job_config("a"));
  answers_close_ = false;
  step(chiefd::Stop{ClientId(2), "a", true, "ada"});
  EXPECT_EQ(status(job).state, JobState::kStopping);
  const JobId second = submit(job_config("b"));
  EXPECT_EQ(status(second).state, JobState::kQueued);
  pass(seconds(6));
  EXPECT_EQ(status(job).state, JobState::kStopped);
  EXPECT_EQ(status(second).state, JobState::kStarting);
  say(worker(0), JobClosed{job});
  say(worker(1), JobClosed{job});
  pass(seconds(1));
  EXPECT_EQ(status(second).state, JobState::kRunning);
}

// Its step thread may hang in the program or the data of the job. The process then ends, and another one says hello.
TEST_F(TrainingTest, WorkerThatHasNotReleasedAJobGetsNoOther) {
  const JobId job = train(job_config("a"));
  answers_close_ = false;
  step(chiefd::Stop{ClientId(2), "a", true, "ada"});
  say(worker(1), JobClosed{job});
  const JobId second = submit(job_config("b"));
  pass(seconds(6));
  const std::vector<TaskStatus> tasks = status(second).tasks;
  const TaskStatus& hung =
      *std::find_if(tasks.begin(), tasks.end(), [](const TaskStatus& task) { return task.task == worker(0); });
  EXPECT_EQ(hung.state, TaskState::kBusy);
  EXPECT_EQ(hung.reason, "it hasn't released job 1 yet");
  ASSERT_FALSE(status(second).waits_for.empty());
  EXPECT_EQ(status(second).waits_for.front().task, worker(0));
  EXPECT_EQ(status(second).waits_for.front().what, AwaitedFor::kClose);
  pass(seconds(3));
  EXPECT_EQ(status(second).state, JobState::kRunning) << "enough other workers are there";
  EXPECT_EQ(sent<DescribeJob>(worker(0)).size(), 1u);
  kill(worker(0));
  restart(worker(0));
  EXPECT_EQ(sent<DescribeJob>(worker(0)).size(), 2u);
  pass(seconds(1));
  EXPECT_EQ(sent<SetRoster>(ps(0)).back().roster.members.size(), 2u);
}

TEST_F(TrainingTest, WorkerThatReleasesAJobLateJoinsTheNext) {
  const JobId job = train(job_config("a"));
  answers_close_ = false;
  step(chiefd::Stop{ClientId(2), "a", true, "ada"});
  say(worker(1), JobClosed{job});
  const JobId second = submit(job_config("b"));
  pass(seconds(10));
  ASSERT_EQ(status(second).state, JobState::kRunning);
  say(worker(0), JobClosed{job});
  pass(seconds(1));
  EXPECT_EQ(sent<SetRoster>(ps(0)).back().roster.members.size(), 2u);
}

// Its heartbeats say that it holds no job any more.
TEST_F(TrainingTest, WorkerWhoseAnswerWasLostGetsTheNextJob) {
  const JobId job = train(job_config("a"));
  answers_close_ = false;
  step(chiefd::Stop{ClientId(2), "a", true, "ada"});
  say(worker(1), JobClosed{job});
  pass(seconds(6));
  heartbeats_[worker(0)] = Heartbeat{};
  const JobId second = submit(job_config("b"));
  pass(seconds(1));
  EXPECT_EQ(status(second).state, JobState::kRunning) << status(second).reason;
  EXPECT_EQ(sent<SetRoster>(ps(0)).back().roster.members.size(), 2u);
}

TEST_F(TrainingTest, WorkerThatComesBackWithAJobThatHasEndedGetsNoOtherBeforeItsAnswer) {
  start_chief(1, 1);
  hello(ps(0));
  answers_close_ = false;
  TaskHello hello = hello_of(worker(0));
  hello.member.incarnation = Incarnation(77);
  hello.job = JobId(9);
  this->hello(worker(0), 77);
  step(TaskJoined{hello});
  const JobId job = submit(job_config("a"));
  pass(seconds(3));
  EXPECT_EQ(status(job).state, JobState::kStarting);
  EXPECT_EQ(sent<DescribeJob>(worker(0)).size(), 0u);
  say(worker(0), JobClosed{JobId(9)});
  pass(seconds(1));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
}

TEST_F(TrainingTest, StopAndKillAreAnsweredWhenTheyAreDurable) {
  for (const bool kill : {false, true}) {
    train(job_config("a"));
    const int done = done_;
    disk_is_held_ = true;
    step(chiefd::Stop{ClientId(2), "a", kill, "ada"});
    EXPECT_EQ(done_, done);
    release_disk();
    EXPECT_EQ(done_, done + 1);
    // The journal already has the first stop, so a second stop before the job's end is answered at once.
    if (!kill) step(chiefd::Stop{ClientId(3), "a", kill, "ada"});
    EXPECT_EQ(done_, done + (kill ? 1 : 2));
    step(chiefd::Stop{ClientId(3), "a", true, "ada"});
  }
}

TEST_F(TrainingTest, JobsRunOneAfterTheOther) {
  const JobId first = train(job_config("a"));
  const JobId second = submit(job_config("b"));
  EXPECT_EQ(status(second).state, JobState::kQueued);
  EXPECT_EQ(cluster_->find(""), first);
  step(chiefd::Stop{ClientId(2), "a", true, "ada"});
  EXPECT_EQ(status(second).state, JobState::kRunning);
  EXPECT_EQ(cluster_->find(""), second);
  EXPECT_EQ(cluster_->find("1"), first);
}

TEST_F(TrainingTest, QueueHasALimitAndNamesAreUnique) {
  config_.chief.max_queued_jobs = 1;
  train(job_config("a"));
  EXPECT_EQ(submit(job_config("a")), JobId(0));
  EXPECT_EQ(refused_->code, ErrorCode::kConfig);
  EXPECT_NE(submit(job_config("b")), JobId(0));
  EXPECT_EQ(submit(job_config("c")), JobId(0));
  EXPECT_EQ(refused_->code, ErrorCode::kTemporary);
}

TEST_F(TrainingTest, SameJobGoesOnWhereItIsAskedFor) {
  const JobId first = train(job_config("a"));
  const JobId second = submit(job_config("b"));
  EXPECT_EQ(submit(job_config("a"), true), first);
  EXPECT_EQ(submit(job_config("b"), true), second);
  EXPECT_EQ(answers_.back().ahead, 1u);
  EXPECT_TRUE(answers_.back().was_there);
  EXPECT_EQ(cluster_->jobs().size(), 2u);
}

TEST_F(TrainingTest, JobThatHasEndedBeginsAnew) {
  const JobId first = train(job_config("a"));
  step(chiefd::Stop{ClientId(2), "a", true, "ada"});
  EXPECT_NE(submit(job_config("a"), true), first);
  EXPECT_FALSE(answers_.back().was_there);
}

TEST_F(TrainingTest, AnotherTextUnderTheNameIsRefusedWithTheDifference) {
  train(job_config("a"));
  step(Submit{ClientId(1), Submission{"# a\nepochs = 2", job_config("a"), 0}, true});
  ASSERT_TRUE(refused_);
  EXPECT_EQ(refused_->code, ErrorCode::kConfig);
  EXPECT_NE(refused_->reason.find("that job has ``, this file has `epochs = 2`"), std::string::npos)
      << refused_->reason;
  EXPECT_NE(refused_->reason.find("disttrain kill a"), std::string::npos);
}

TEST_F(TrainingTest, NumberOfAJobThatGoesOnIsToldOnceItIsDurable) {
  start_chief(1, 1);
  hello_all();
  disk_is_held_ = true;
  submit(job_config("a"));
  EXPECT_EQ(submit(job_config("a"), true), JobId(0));
  release_disk();
  ASSERT_EQ(answers_.size(), 2u);
  EXPECT_EQ(answers_.back().job, answers_.front().job);
}

TEST_F(TrainingTest, QueueHasItsLimitWhileTheFirstJobIsStillBeingWritten) {
  config_.chief.max_queued_jobs = 1;
  start_chief(1, 1);
  hello_all();
  disk_is_held_ = true;
  submit(job_config("a"));
  submit(job_config("b"));
  EXPECT_FALSE(refused_);
  submit(job_config("c"));
  ASSERT_TRUE(refused_);
  EXPECT_EQ(refused_->code, ErrorCode::kTemporary);
}

TEST_F(TrainingTest, NumberOfAJobTakesPrecedenceOverAnotherJobsName) {
  const JobId first = train(job_config("a"));
  submit(job_config("1"));
  EXPECT_EQ(cluster_->find("1"), first);
}

TEST_F(TrainingTest, QueuedJobIsStoppedWithoutEverStarting) {
  train(job_config("a"));
  const JobId second = submit(job_config("b"));
  step(chiefd::Stop{ClientId(2), "b", false, "ada"});
  EXPECT_EQ(status(second).state, JobState::kStopped);
}

TEST_F(TrainingTest, JobThatLeftTheQueueIsNotTheLastThatRan) {
  const JobId job = train(job_config("a"));
  const JobId second = submit(job_config("b"));
  step(Stop{ClientId(1), "b", true, "me"});
  ASSERT_EQ(status(second).state, JobState::kStopped);
  EXPECT_EQ(cluster_->current_or_last(), job);
  step(Stop{ClientId(1), "a", true, "me"});
  ASSERT_EQ(status(job).state, JobState::kStopped);
  EXPECT_EQ(cluster_->current_or_last(), job);
  restart_chief();
  EXPECT_EQ(cluster_->current_or_last(), job);
}

// ---- jobs that crash the chief

TEST_F(TrainingTest, JobThatHasCrashedTheChiefTwiceFailsAndTheNextOneBegins) {
  const JobId bad = train(job_config("bad"));
  const JobId next = submit(job_config("next"));
  crashes_[bad] = 1;
  restart_chief();
  for (const TaskId task : {ps(0), ps(1), worker(0), worker(1)}) hello_again(task);
  pass(seconds(10));
  EXPECT_EQ(status(bad).state, JobState::kRunning) << status(bad).reason;

  crashes_[bad] = 2;
  restart_chief();
  EXPECT_EQ(status(bad).state, JobState::kFailed);
  EXPECT_EQ(status(bad).reason,
            "the chief has crashed 2 times while it worked for this job, so it goes on without the job: the line "
            "\"crashed\" in the chief's log has the reason. To try it again: submit its file");
  for (const TaskId task : {ps(0), ps(1), worker(0), worker(1)}) hello_again(task);
  pass(seconds(10));
  EXPECT_EQ(status(next).state, JobState::kRunning) << status(next).reason;
}

TEST_F(TrainingTest, JobThatCrashesTheChiefIsNotSubmittedAgainByItself) {
  JobConfig config = job_config("bad");
  config.checkpoint.directory = "/checkpoints";
  config.job.on_failure = OnFailure::kResubmit;
  const JobId bad = train(config);
  crashes_[bad] = 2;
  restart_chief();
  restart_chief();
  EXPECT_EQ(status(bad).state, JobState::kFailed);
  EXPECT_NE(status(bad).reason.find("To try it again: `disttrain resubmit bad`"), std::string::npos)
      << status(bad).reason;
  EXPECT_EQ(cluster_->jobs().size(), 1u);
}

TEST_F(TrainingTest, JobThatIsSetAsideKeepsTheStepOfItsNewestCheckpoint) {
  JobConfig config = job_config("bad");
  config.checkpoint.directory = "/checkpoints";
  config.checkpoint.every_steps = 100;
  const JobId bad = train(config);
  report_pacer(100, 0);
  ASSERT_TRUE(journal_.jobs.at(bad).checkpoint);
  crashes_[bad] = 2;
  restart_chief();
  EXPECT_EQ(status(bad).global_step, 100u);
  EXPECT_EQ(journal_.jobs.at(bad).ended->step, Step(100));
}

}  // namespace
}  // namespace disttrain::chiefd
