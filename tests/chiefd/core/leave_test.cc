// Tasks that were told to end leave in good order.
#include "tests/chiefd/core/cluster_fixture.h"

namespace disttrain::chiefd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class LeaveTest : public TrainingTest {
 protected:
  static JobConfig with_checkpoints(Mode mode = Mode::kAsync) {
    JobConfig config = job_config("a", mode);
    config.job.shards = 2;
    config.checkpoint.directory = "/checkpoints";
    return config;
  }
  void leave(TaskId task) { say(task, LeaveRequest{}); }
  bool is_let_go(TaskId task) const { return !sent<LeaveGranted>(task).empty(); }
  TaskState state_of(TaskId id) {
    for (const TaskStatus& task : cluster_->tasks(now_))
      if (task.task == id) return task.state;
    return TaskState::kWaiting;
  }
};

TEST_F(LeaveTest, TaskInNoJobGoesAtOnce) {
  start_chief(1, 1);
  hello_all();
  leave(worker(0));
  EXPECT_TRUE(is_let_go(worker(0)));
  EXPECT_EQ(state_of(worker(0)), TaskState::kLeft);
  for (const TaskStatus& task : cluster_->tasks(now_)) EXPECT_EQ(task.losses.left, task.task == worker(0) ? 1u : 0u);
  EXPECT_EQ(event("task_left"), "worker/0: it was told to end");
  step(ConnectionLost{member(worker(0)), "closed"});
  EXPECT_TRUE(probes().empty()) << "nobody doubts that it has ended";
}

TEST_F(LeaveTest, WorkerEndsItsStepFirstAndItsRecordsAreLentAgain) {
  const JobId job = train(job_config("a"));
  ask(job, worker(1), 0.0);
  const std::uint64_t held = records_of(sent<LeaseGrant>(worker(1)));
  ASSERT_GT(held, 0u);
  leave(worker(1));
  EXPECT_EQ(sent<StopJob>(worker(1)).size(), 1u);
  EXPECT_TRUE(sent<StopJob>(worker(0)).empty());
  EXPECT_FALSE(is_let_go(worker(1)));
  finish(job, worker(1));
  EXPECT_TRUE(is_let_go(worker(1)));
  EXPECT_EQ(sent<SetRoster>(ps(0)).back().roster.members, std::vector<Member>{member(worker(0))});
  EXPECT_EQ(sent<FenceWorker>(ps(0)).size(), 1u);
  lend_all_to(job, worker(0));
  EXPECT_EQ(records_of(sent<LeaseGrant>(worker(0))), records_);
  EXPECT_EQ(status(job).state, JobState::kRunning);
}

TEST_F(LeaveTest, WorkerThatLeftIsNoLoss) {
  JobConfig config = job_config("a");
  config.job.max_restarts = 0;
  const JobId job = train(config);
  leave(worker(1));
  finish(job, worker(1));
  EXPECT_EQ(event("worker_left"), "goes on without worker/1: it was told to end");
  EXPECT_EQ(event("worker_lost"), "no event of this kind");
  EXPECT_TRUE(status(job).warnings.empty());
  restart(worker(1));
  EXPECT_EQ(sent<SetRoster>(ps(0)).back().roster.members.size(), 2u) << "its successor isn't kept out";
}

TEST_F(LeaveTest, LeavingWorkerIsGivenNothingNew) {
  start_chief(1, 2);
  hello_all();
  JobConfig config = job_config("a");
  config.job.min_workers = 2;
  obedient_ = false;
  const JobId job = submit(config);
  leave(worker(1));
  EXPECT_TRUE(is_let_go(worker(1)));
  obedient_ = true;
  pass(seconds(3));
  EXPECT_EQ(status(job).state, JobState::kStarting) << status(job).reason;
  EXPECT_NE(status(job).reason.find("worker/1"), std::string::npos) << status(job).reason;
}

TEST_F(LeaveTest, RankOfALeavingWorkerWaitsForItsSuccessor) {
  JobConfig config = job_config("a", Mode::kSync);
  config.job.on_worker_loss = OnWorkerLoss::kWait;
  const JobId job = train(config);
  leave(worker(1));
  finish(job, worker(1));
  EXPECT_TRUE(is_let_go(worker(1)));
  EXPECT_EQ(status(job).state, JobState::kPaused);
  restart(worker(1));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
}

TEST_F(LeaveTest, PsGoesAfterACheckpointThatHoldsAndNoStepIsLost) {
  for (const Mode mode : {Mode::kAsync, Mode::kSync}) {
    SCOPED_TRACE(static_cast<int>(mode));
    sent_.clear();
    const JobId job = train(with_checkpoints(mode));
    report_pacer(70, 0);
    obedient_ = false;
    leave(ps(1));
    EXPECT_FALSE(is_let_go(ps(1)));
    EXPECT_EQ(status(job).state, JobState::kPaused);
    EXPECT_TRUE(sent<PauseJob>(worker(0)).back().paused);
    const PrepareCheckpoint prepare = sent<PrepareCheckpoint>(ps(0)).back();
    EXPECT_TRUE(prepare.holds);
    EXPECT_EQ(status(job).part, JobPart::kCheckpoint);
    pacer_.global_step = Step(73);  // pushes that were under way
    obedient_ = true;
    for (const std::uint32_t i : {0u, 1u})
      say(ps(i), CheckpointPrepared{prepare.job, prepare.generation, prepare.attempt});
    EXPECT_TRUE(is_let_go(ps(1)));
    EXPECT_EQ(state_of(ps(1)), TaskState::kLeft);
    EXPECT_EQ(status(job).state, JobState::kPaused);
    EXPECT_NE(status(job).reason.find("waiting for ps/1"), std::string::npos) << status(job).reason;
    restart(ps(1));
    pass(seconds(1));
    EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
    EXPECT_EQ(journal_.jobs.at(job).generation.restore_step, Step(73));
    EXPECT_NE(event("rolled_back").find(", 0 steps are lost"), std::string::npos) << event("rolled_back");
    EXPECT_EQ(event("loss_counted"), "no event of this kind");
    journal_ = JournalState();
    newest_.reset();
    pacer_ = PacerReport();
  }
}

// The workers pause, so they don't make the step that the checkpoint waits for.
TEST_F(LeaveTest, WorkerThatReturnsBeforeTheCheckpointIsTakenStaysPaused) {
  train(with_checkpoints());
  obedient_ = false;
  leave(ps(1));
  sent_.clear();
  hello_again(worker(0));
  ASSERT_FALSE(sent<PauseJob>(worker(0)).empty());
  EXPECT_TRUE(sent<PauseJob>(worker(0)).back().paused);
}

TEST_F(LeaveTest, CheckpointOfAStepToComeIsCutNow) {
  JobConfig config = with_checkpoints(Mode::kSync);
  config.checkpoint.every_steps = 100;
  train(config);
  obedient_ = false;
  report_pacer(100, 0);
  const PrepareCheckpoint prepare = sent<PrepareCheckpoint>(ps(0)).back();
  for (const std::uint32_t i : {0u, 1u})
    say(ps(i), CheckpointPrepared{prepare.job, prepare.generation, prepare.attempt});
  ASSERT_EQ(sent<TakeCut>(ps(0)).back().at, Step(100));
  leave(ps(1));
  EXPECT_EQ(sent<TakeCut>(ps(0)).back().at, Step());
}

TEST_F(LeaveTest, TwoPsTasksLeaveWithOneCheckpoint) {
  train(with_checkpoints());
  obedient_ = false;
  leave(ps(0));
  leave(ps(1));
  obedient_ = true;
  const PrepareCheckpoint prepare = sent<PrepareCheckpoint>(ps(0)).back();
  for (const std::uint32_t i : {0u, 1u})
    say(ps(i), CheckpointPrepared{prepare.job, prepare.generation, prepare.attempt});
  EXPECT_TRUE(is_let_go(ps(0)));
  EXPECT_TRUE(is_let_go(ps(1)));
  EXPECT_EQ(sent<PrepareCheckpoint>(ps(0)).size(), 1u);
}

TEST_F(LeaveTest, PsOfAJobWithoutCheckpointsGoesAtOnce) {
  train(job_config("a"));
  leave(ps(1));
  EXPECT_TRUE(is_let_go(ps(1)));
}

TEST_F(LeaveTest, PsGoesWhenNoCheckpointCanBeTaken) {
  const JobId job = train(with_checkpoints());
  folder_error_ = Error{ErrorCode::kFailed, "/checkpoints: no space left on device"};
  leave(ps(1));
  EXPECT_FALSE(is_let_go(ps(1)));
  pass(seconds(30));
  EXPECT_TRUE(is_let_go(ps(1)));
  EXPECT_EQ(status(job).state, JobState::kPaused);
}

TEST_F(LeaveTest, WorkersThatHaveLeftDoNotKeepAPsFromItsCheckpoint) {
  const JobId job = train(with_checkpoints());
  for (const std::uint32_t i : {0u, 1u}) {
    leave(worker(i));
    finish(job, worker(i));
    EXPECT_TRUE(is_let_go(worker(i)));
  }
  EXPECT_EQ(status(job).state, JobState::kPaused);
  obedient_ = false;
  leave(ps(0));
  const PrepareCheckpoint prepare = sent<PrepareCheckpoint>(ps(0)).back();
  for (const std::uint32_t i : {0u, 1u})
    say(ps(i), CheckpointPrepared{prepare.job, prepare.generation, prepare.attempt});
  EXPECT_FALSE(is_let_go(ps(0)));
  obedient_ = true;
  say_written(prepare);
  EXPECT_TRUE(is_let_go(ps(0)));
}

TEST_F(LeaveTest, JobThatIsStoppedMeanwhileEndsFirst) {
  const JobId job = train(with_checkpoints());
  obedient_ = false;
  leave(ps(1));
  obedient_ = true;
  step(Stop{ClientId(1), "", false, "me"});
  EXPECT_EQ(sent<AbandonCheckpoint>(ps(0)).size(), 1u) << "the workers' last pushes are taken";
  EXPECT_FALSE(is_let_go(ps(1)));
  for (const std::uint32_t i : {0u, 1u}) finish(job, worker(i));
  pass(seconds(1));
  EXPECT_EQ(status(job).state, JobState::kStopped) << status(job).reason;
  EXPECT_TRUE(is_let_go(ps(1)));
}

TEST_F(LeaveTest, NextChiefIsAskedAgain) {
  const JobId job = train(job_config("a"));
  leave(worker(1));
  ASSERT_EQ(sent<StopJob>(worker(1)).size(), 1u);
  restart_chief();
  hello_again(worker(1));
  leave(worker(1));
  EXPECT_FALSE(is_let_go(worker(1))) << "it isn't known yet what it holds";
  for (const std::uint32_t i : {0u, 1u}) hello_again(ps(i));
  hello_again(worker(0));
  pass(milliseconds(300));
  ASSERT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(sent<StopJob>(worker(1)).size(), 2u);
  finish(job, worker(1));
  EXPECT_TRUE(is_let_go(worker(1)));
}

// A task may end before the chief lets it go, for example because a second signal came, or because the task's host
// killed the task.
TEST_F(LeaveTest, TaskThatEndsBeforeItIsLetGoIsNoLoss) {
  JobConfig config = with_checkpoints();
  config.job.max_restarts = 0;
  const JobId job = train(config);
  obedient_ = false;
  leave(ps(1));
  ASSERT_FALSE(is_let_go(ps(1)));
  obedient_ = true;
  restart(ps(1));
  pass(seconds(1));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(event("loss_counted"), "no event of this kind");
  leave(worker(1));
  ASSERT_FALSE(is_let_go(worker(1)));
  restart(worker(1));
  pass(seconds(1));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(event("worker_lost"), "no event of this kind");
  EXPECT_NE(event("worker_left"), "no event of this kind");
}

TEST_F(LeaveTest, WorkerToldToEndThatIsGoneWithTheChiefHasLeft) {
  const JobId job = train(job_config("a"));
  leave(worker(1));
  ASSERT_FALSE(is_let_go(worker(1)));
  restart_chief();
  for (const std::uint32_t i : {0u, 1u}) hello_again(ps(i));
  hello_again(worker(0));
  pass(seconds(10));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(event("worker_left"), "worker/1 left while the chief was away");
  EXPECT_EQ(event("worker_lost"), "no event of this kind");
}

// The chief lets a ps leave. Then the chief dies before the ps is back.
TEST_F(LeaveTest, NextChiefEndsTheRollbackForAPsThatLeft) {
  JobConfig config = with_checkpoints();
  config.job.max_restarts = 0;
  const JobId job = train(config);
  report_pacer(70, 0);
  pacer_.global_step = Step(73);
  leave(ps(1));
  const PrepareCheckpoint prepare = sent<PrepareCheckpoint>(ps(0)).back();
  for (const std::uint32_t i : {0u, 1u})
    say(ps(i), CheckpointPrepared{prepare.job, prepare.generation, prepare.attempt});
  ASSERT_TRUE(is_let_go(ps(1)));
  restart_chief();
  for (const std::uint32_t i : {0u, 1u}) hello_again(worker(i));
  hello_again(ps(0));
  restart(ps(1));
  pass(seconds(1));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(journal_.jobs.at(job).generation.restore_step, Step(73));
  EXPECT_EQ(status(job).recoveries, 1u);
  EXPECT_EQ(event("loss_counted"), "no event of this kind");
}

// The ps was told to end, and it ends while the chief is away. This is no loss, even if no chief let the ps leave.
TEST_F(LeaveTest, PsToldToEndThatIsGoneWithTheChiefIsNoLoss) {
  for (const bool has_successor : {true, false}) {
    SCOPED_TRACE(has_successor);
    JobConfig config = with_checkpoints();
    config.job.max_restarts = 0;
    const JobId job = train(config);
    obedient_ = false;
    leave(ps(1));
    ASSERT_FALSE(is_let_go(ps(1)));
    obedient_ = true;
    restart_chief();
    for (const std::uint32_t i : {0u, 1u}) hello_again(worker(i));
    hello_again(ps(0));
    if (has_successor) restart(ps(1));
    pass(seconds(10));
    if (!has_successor) restart(ps(1));
    pass(seconds(1));
    EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
    EXPECT_EQ(event("loss_counted"), "no event of this kind");
    journal_ = JournalState();
    newest_.reset();
    pacer_ = PacerReport();
  }
}

TEST_F(LeaveTest, TaskThatCameBackSinceIsALossAgain) {
  const JobId job = train(job_config("a"));
  leave(worker(1));
  finish(job, worker(1));
  ASSERT_TRUE(is_let_go(worker(1)));
  restart(worker(1));
  pass(seconds(1));
  ASSERT_EQ(sent<SetRoster>(ps(0)).back().roster.members.size(), 2u);
  restart_chief();
  for (const std::uint32_t i : {0u, 1u}) hello_again(ps(i));
  hello_again(worker(0));
  pass(seconds(10));
  EXPECT_EQ(event("worker_lost"), "worker/1 was lost while the chief was away");
}

TEST_F(LeaveTest, PsThatFallsSilentWhileItLeavesIsNoLoss) {
  JobConfig config = with_checkpoints();
  config.job.max_restarts = 0;
  const JobId job = train(config);
  obedient_ = false;
  leave(ps(1));
  obedient_ = true;
  silence(ps(1));
  pass(seconds(100));
  EXPECT_EQ(event("loss_counted"), "no event of this kind");
  EXPECT_NE(event("rolls_back"), "no event of this kind") << status(job).reason;
}

TEST_F(LeaveTest, ChangedTimeoutIsToldAndNobodyIsSilentBecauseOfIt) {
  config_.heartbeat.timeout = seconds(10);
  start_chief(1, 1);
  hello_all();
  say(worker(0), heartbeats_[worker(0)]);
  step(Reconfigured{milliseconds(500)});
  for (int i = 0; i < 19; ++i) {  // with the old timeout, the worker sends one heartbeat per second
    now_ += milliseconds(100);
    say(ps(0), heartbeats_[ps(0)]);  // if no task were heard, the chief would suspect its own host
    step(Tick{});
  }
  EXPECT_NE(state_of(worker(0)), TaskState::kSilent);
  say(worker(0), heartbeats_[worker(0)]);
  EXPECT_EQ(sent<HeartbeatAnswer>(worker(0)).back().heartbeat_timeout, milliseconds(500));
  silence(worker(0));
  pass(seconds(4));
  EXPECT_EQ(state_of(worker(0)), TaskState::kSilent);
}

TEST_F(LeaveTest, ChangedTimeoutDoesNotMakeTheDeadHeard) {
  start_chief(2, 2);
  hello_all();
  pass(seconds(1));
  kill(worker(1));
  pass(seconds(20));
  const auto age_of = [&](TaskId id) {
    for (const TaskStatus& task : cluster_->tasks(now_))
      if (task.task == id) return to_seconds(*task.heartbeat_age);
    return -99.0;
  };
  step(Reconfigured{milliseconds(2000)});
  EXPECT_GT(age_of(worker(1)), 19);
  EXPECT_GE(age_of(worker(0)), 0.0);
}

TEST_F(LeaveTest, ChangedTimeoutDoesNotWakeAHungShard) {
  const JobId job = train(with_checkpoints());
  heartbeats_[ps(1)].turns = {5, 5};
  pass(seconds(4));
  ASSERT_EQ(state_of(ps(1)), TaskState::kSilent);
  ASSERT_EQ(status(job).state, JobState::kPaused);
  step(Reconfigured{milliseconds(1100)});
  pass(milliseconds(200));
  EXPECT_EQ(state_of(ps(1)), TaskState::kSilent);
  EXPECT_EQ(status(job).state, JobState::kPaused);
}

TEST_F(LeaveTest, TaskThatEndsBeforeItIsLetGoIsCountedAsLeft) {
  train(job_config("a"));
  obedient_ = false;
  heartbeats_[worker(1)].job = JobId(1);
  leave(worker(1));
  pass(milliseconds(200));
  kill(worker(1));
  for (const TaskStatus& task : cluster_->tasks(now_)) {
    if (task.task != worker(1)) continue;
    EXPECT_EQ(task.losses.crash, 0u);
    EXPECT_EQ(task.losses.left, 1u);
  }
}

}  // namespace
}  // namespace disttrain::chiefd
