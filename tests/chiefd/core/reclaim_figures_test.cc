// The chief was restarted. The new chief knows the job's figures from the journal, or learns them from heartbeats.
#include "tests/chiefd/core/reclaim_fixture.h"

namespace disttrain::chiefd {
namespace {

TEST_F(ReclaimTest, ChiefLearnsFromHeartbeatsHowTheWorkersAreConnected) {
  const JobId job = train(job_config("a"));
  const auto tell = [&](std::uint32_t i, Wires wires) {
    Heartbeat heartbeat;
    heartbeat.job = job;
    heartbeat.generation = Generation(1);
    heartbeat.wires = wires;
    say(worker(i), heartbeat);
  };
  for (const std::uint32_t i : {0u, 1u}) say(worker(i), JobOpened{job, Generation(1), kRdmaWire});
  EXPECT_EQ(status(job).wires, kRdmaWire);
  restart_chief_without({});
  EXPECT_EQ(status(job).wires, 0);
  for (const std::uint32_t i : {0u, 1u}) tell(i, kRdmaWire);
  EXPECT_EQ(status(job).wires, kRdmaWire);
  tell(1, kTcpWire);
  EXPECT_EQ(status(job).wires, kRdmaWire | kTcpWire);
  tell(0, kTcpWire);
  EXPECT_EQ(status(job).wires, kTcpWire) << "both have dialled again, over tcp";
  tell(0, 0);
  EXPECT_EQ(status(job).wires, kTcpWire) << "an older worker doesn't tell";
}

TEST_F(ReclaimTest, ExamplesThatAnEarlierChiefCountedAreNotCountedAgain) {
  const JobId job = train(job_config("a"));
  pacer_.examples = 300;
  report_pacer(30, 0);
  restart_chief_without({});
  EXPECT_EQ(status(job).examples, 300u);
  EXPECT_EQ(status(job).examples_heard, 0u);
  pacer_.examples = 320;
  report_pacer(32, 0);
  EXPECT_EQ(status(job).examples_heard, 20u);
}

TEST_F(ReclaimTest, RecoveriesThatAnEarlierChiefMadeCount) {
  const JobId job = train(job_config("a"));
  kill(ps(0));
  restart(ps(0));
  restart_chief_without({});
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(status(job).recoveries, 1u);
  kill(ps(0));
  restart(ps(0));
  EXPECT_EQ(status(job).recoveries, 2u);
}

TEST_F(ReclaimTest, StepOfTheNewestCheckpointIsKnownBeforeThePacerHasSpoken) {
  JobConfig config = with_checkpoints();
  config.checkpoint.every_steps = 20;
  const JobId job = train(config);
  journal_.jobs.at(job).checkpoint = CheckpointRecord{job, Generation(1), Step(20), "/checkpoints/a/step"};
  restart_chief();
  EXPECT_EQ(status(job).global_step, 20u);
  ASSERT_FALSE(folder_work_.empty());
  EXPECT_EQ(std::get<OpenFolder>(folder_work_.back().work).committed, "/checkpoints/a/step");
}

TEST_F(ReclaimTest, StepOfADamagedCheckpointOfAGenerationBeforeIsNotTheJobs) {
  const JobId job = train(with_checkpoints());
  journal_.jobs.at(job).checkpoint = CheckpointRecord{job, Generation(1), Step(20), "/checkpoints/a/step"};
  journal_.jobs.at(job).generation.generation = Generation(2);
  journal_.jobs.at(job).generation.restore_step = Step(10);
  restart_chief();
  EXPECT_EQ(status(job).global_step, 10u);
}

TEST_F(ReclaimTest, FailedJobKeepsItsLastFigures) {
  const JobId job = train(job_config("a"));
  obedient_ = false;
  const Heartbeat open = heartbeats_[ps(0)];
  say(worker(0), TaskFailed{job, generation(job), ErrorCode::kData, "its loss isn't finite"});
  heartbeats_[ps(0)] = open;
  report_pacer(11, 0);  // the pacer reports once more while the job closes
  for (const std::uint32_t i : {0u, 1u}) {
    say(ps(i), JobClosed{job});
    say(worker(i), JobClosed{job});
  }
  ASSERT_EQ(status(job).state, JobState::kFailed) << status(job).reason;
  const JobStatus before = status(job);
  ASSERT_EQ(before.global_step, 11u);
  restart_chief();
  EXPECT_EQ(status(job).global_step, before.global_step);
  EXPECT_EQ(status(job).examples, before.examples);
  EXPECT_EQ(status(job).reason, before.reason);
}

TEST_F(ReclaimTest, LastFiguresOfAJobAreKnownToLaterChiefs) {
  JobConfig config = job_config("a");
  config.evaluate.files = "t";
  evaluation_records_ = 10;
  const JobId job = train(config, 1);
  lend_all(job);
  pacer_.loss = 0.25;
  pacer_.examples = 1000;
  const std::vector<MetricValue> trained = {{"accuracy", 0.5}};
  heartbeats_[worker(0)].metrics = trained;
  pass(std::chrono::milliseconds(100));
  report_pacer(100, 1);
  finish(job, worker(0));
  Evaluated evaluated;
  evaluated.job = job;
  evaluated.generation = Generation(1);
  evaluated.step = Step(100);
  evaluated.metrics = {{"accuracy", 0.75}};
  evaluated.examples = 10;
  evaluated.final = true;
  say(worker(0), evaluated);
  for (int i = 0; i < 2; ++i) {
    const JobStatus known = status(job);
    ASSERT_EQ(known.state, JobState::kFinished) << known.reason;
    EXPECT_EQ(known.global_step, 100u);
    EXPECT_EQ(known.steps_target, 100u);
    EXPECT_EQ(known.examples, 1000u);
    EXPECT_EQ(known.loss, 0.25);
    ASSERT_TRUE(known.evaluation);
    EXPECT_EQ(known.evaluation->metrics, evaluated.metrics);
    EXPECT_EQ(known.metrics, trained);
    restart_chief();
  }
}

TEST_F(ReclaimTest, NoLossIsShownBeforeAPacerHasReported) {
  JobConfig config = with_checkpoints();
  const JobId job = train(config);
  journal_.jobs.at(job).checkpoint = CheckpointRecord{job, Generation(1), Step(20), "/checkpoints/a/step"};
  pacer_.loss = 0.5;
  report_pacer(30, 0);
  EXPECT_EQ(status(job).loss, 0.5);
  restart_chief();
  EXPECT_FALSE(status(job).loss);
}

}  // namespace
}  // namespace disttrain::chiefd
