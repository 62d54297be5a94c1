// How the chief lets evaluators evaluate the checkpoints of a job.
#include "tests/chiefd/core/cluster_fixture.h"

namespace disttrain::chiefd {
namespace {

using std::chrono::seconds;

class EvaluatorsTest : public TrainingTest {
 protected:
  JobId train_with(std::uint32_t evaluators, const JobConfig& config) {
    config_.evaluators.resize(evaluators);
    for (std::uint32_t i = 0; i < evaluators; ++i) config_.evaluators[i].address = "host:713" + std::to_string(i);
    evaluation_records_ = 10;
    const JobId job = train(config, 1);
    for (std::uint32_t i = 0; i < evaluators; ++i) hello(evaluator(i));
    return job;
  }
  static TaskId evaluator(std::uint32_t index) { return TaskId{Role::kEvaluator, index}; }
  static JobConfig every_100(std::uint32_t stop_after = 0, std::uint32_t keep_best = 0) {
    JobConfig config = job_config("a");
    config.checkpoint.directory = "/checkpoints";
    config.checkpoint.every_steps = 100;
    config.evaluate.files = "t";
    config.evaluate.stop_after = stop_after;
    config.evaluate.keep_best = keep_best;
    return config;
  }
  std::vector<std::string> orders(std::uint32_t index = 0) const {
    std::vector<std::string> paths;
    for (const EvaluateCheckpoint& order : sent<EvaluateCheckpoint>(evaluator(index))) paths.push_back(order.path);
    return paths;
  }
  // The evaluator answers its newest order.
  void evaluate(JobId job, double loss, std::uint32_t index = 0, const std::string& notice = "") {
    const EvaluateCheckpoint order = sent<EvaluateCheckpoint>(evaluator(index)).back();
    const auto kept =
        std::find_if(kept_.begin(), kept_.end(), [&](const KeptCheckpoint& one) { return one.path == order.path; });
    Evaluated evaluated{job, order.generation, kept->step, false, loss, {}, 10};
    evaluated.path = order.path;
    evaluated.notice = notice;
    say(evaluator(index), evaluated);
  }
  std::string path(std::size_t index) const { return kept_.at(index).path; }
  // Trains a job until it finishes early.
  JobId train_early() {
    const JobId job = train_with(1, every_100(1));
    for (const std::uint64_t step : {100, 200}) {
      report_pacer(step, 0);
      evaluate(job, 0.5);
    }
    EXPECT_EQ(status(job).state, JobState::kStopping);
    return job;
  }
};

TEST_F(EvaluatorsTest, EachCheckpointIsEvaluatedOnceAndTheOldestComesFirst) {
  const JobId job = train_with(1, every_100());
  report_pacer(100, 0);
  report_pacer(200, 0);
  EXPECT_EQ(orders(), std::vector<std::string>{path(0)});
  EXPECT_EQ(status(job).evaluations_waiting, 2u);
  evaluate(job, 0.5);
  EXPECT_EQ(orders(), (std::vector<std::string>{path(0), path(1)}));
  evaluate(job, 0.4);
  EXPECT_EQ(status(job).evaluation->step, Step(200));
  pass(seconds(10));
  EXPECT_EQ(orders().size(), 2u);
  EXPECT_FALSE(sent<OpenJob>(worker(0)).front().evaluates);
}

TEST_F(EvaluatorsTest, SeveralEvaluatorsShareTheCheckpoints) {
  const JobId job = train_with(2, every_100());
  report_pacer(100, 0);
  report_pacer(200, 0);
  EXPECT_EQ(orders(0), std::vector<std::string>{path(0)});
  EXPECT_EQ(orders(1), std::vector<std::string>{path(1)});
  evaluate(job, 0.4, 1);
  evaluate(job, 0.5, 0);
  EXPECT_EQ(status(job).evaluation->step, Step(200)) << "the status shows the newest step";
}

TEST_F(EvaluatorsTest, TheNextProcessOfADeadEvaluatorGetsItsOrder) {
  const JobId job = train_with(1, every_100());
  report_pacer(100, 0);
  kill(evaluator(0));
  EXPECT_EQ(status(job).state, JobState::kRunning);
  EXPECT_EQ(status(job).recoveries, 0u);
  restart(evaluator(0));
  EXPECT_EQ(orders(), (std::vector<std::string>{path(0), path(0)}));
  EXPECT_EQ(event(kLossCounted), "no event of this kind");
}

TEST_F(EvaluatorsTest, AnOrderIsRepeatedWhenTheEvaluatorReconnects) {
  train_with(1, every_100());
  report_pacer(100, 0);
  step(ConnectionLost{member(evaluator(0)), "reset"});
  hello_again(evaluator(0));
  EXPECT_EQ(orders().size(), 2u);
}

TEST_F(EvaluatorsTest, ACheckpointIsGivenUpAfterThreeFailures) {
  const JobId job = train_with(1, every_100());
  report_pacer(100, 0);
  for (int i = 0; i < 3; ++i) {
    say(evaluator(0), EvaluationFailed{job, Generation(1), path(0), ErrorCode::kData, "w.bin is damaged"});
    pass(seconds(20));
  }
  EXPECT_EQ(orders().size(), 3u);
  EXPECT_EQ(status(job).evaluations_waiting, 0u);
  EXPECT_EQ(status(job).warnings.back(), "evaluator/0 couldn't evaluate " + path(0) + ": w.bin is damaged");
}

TEST_F(EvaluatorsTest, ANewChiefEvaluatesWhatTheFormerOneHadNot) {
  const JobId job = train_with(1, every_100());
  report_pacer(100, 0);
  report_pacer(200, 0);
  evaluate(job, 0.5);
  restart_chief();
  EXPECT_EQ(status(job).evaluation->step, Step(100));
  const std::size_t before = orders().size();
  for (const TaskId task : {ps(0), ps(1), worker(0)}) hello_again(task);
  hello_again(evaluator(0));
  pass(seconds(1));
  ASSERT_EQ(orders().size(), before + 1);
  EXPECT_EQ(orders().back(), path(1));
}

TEST_F(EvaluatorsTest, TheJobFinishesEarly) {
  const JobId job = train_with(1, every_100(2));
  for (const std::uint64_t step : {100, 200, 300}) {
    report_pacer(step, 0);
    evaluate(job, 0.5);
  }
  EXPECT_EQ(status(job).state, JobState::kStopping);
  ASSERT_EQ(sent<StopJob>(worker(0)).size(), 1u);
  report_pacer(310, 0);
  finish(job, worker(0));
  EXPECT_EQ(status(job).state, JobState::kEvaluating) << "the last checkpoint is evaluated first";
  evaluate(job, 0.5);
  EXPECT_EQ(status(job).state, JobState::kFinished);
  EXPECT_EQ(status(job).reason,
            "trained 310 steps, and finished early: 2 evaluations in a row had no better loss; the best one is 0.5, at "
            "step 100 (evaluate.stop_after)");
}

TEST_F(EvaluatorsTest, AJobThatFinishesEarlyDoesSoAfterARestartOfTheChief) {
  const JobId job = train_with(1, every_100(1));
  report_pacer(100, 0);
  evaluate(job, 0.5);
  report_pacer(200, 0);
  evaluate(job, 0.5);
  EXPECT_EQ(status(job).state, JobState::kStopping);
  restart_chief();
  for (const TaskId task : {ps(0), ps(1), worker(0)}) hello_again(task);
  pass(seconds(1));
  EXPECT_EQ(status(job).state, JobState::kStopping);
  finish(job, worker(0));
  EXPECT_EQ(status(job).state, JobState::kFinished) << status(job).reason;
}

TEST_F(EvaluatorsTest, StopOfAJobThatFinishesEarlyIsForGood) {
  const JobId job = train_early();
  step(chiefd::Stop{ClientId(2), "", false, "ada"});
  kill(ps(0));
  EXPECT_EQ(status(job).state, JobState::kStopped) << "it doesn't roll back: " << status(job).reason;
}

TEST_F(EvaluatorsTest, StopOfAJobThatFinishesEarlyIsNotForgottenByTheNextChief) {
  const JobId job = train_early();
  step(chiefd::Stop{ClientId(2), "", false, "ada"});
  restart_chief();
  for (const TaskId task : {ps(0), ps(1), worker(0)}) hello_again(task);
  pass(seconds(1));
  finish(job, worker(0));
  EXPECT_EQ(status(job).state, JobState::kStopped) << status(job).reason;
}

TEST_F(EvaluatorsTest, TheBestCheckpointsArePinnedAndTheBestOneExported) {
  const JobId job = train_with(1, every_100(0, 1));
  report_pacer(100, 0);
  evaluate(job, 0.5);
  report_pacer(200, 0);
  EXPECT_EQ(newest_of<CommitAttempt>().pinned, std::vector<std::string>{path(0)});
  EXPECT_EQ(newest_of<KeepBest>().best, path(0));
  EXPECT_EQ(newest_of<KeepBest>().metadata.at("disttrain.step"), "100");
  evaluate(job, 0.4);
  EXPECT_EQ(newest_of<KeepBest>().best, path(1));
  ASSERT_EQ(status(job).best.size(), 1u);
  EXPECT_EQ(status(job).best.front().checkpoint.path, path(1));
  EXPECT_EQ(journal_.jobs.at(job).evaluations->exported, path(1));
}

// The folder can't be listed after a commit. So the chief doesn't know the checkpoint, and must not take the others for
// all that are there.
TEST_F(EvaluatorsTest, TheJobWaitsUntilItsFolderIsListed) {
  const JobId job = train_with(1, every_100());
  lend_all(job);
  folder_is_unlisted_ = true;
  report_pacer(100, 1);
  EXPECT_TRUE(orders().empty());
  finish(job, worker(0));
  EXPECT_EQ(status(job).state, JobState::kEvaluating);
  pass(seconds(3));
  EXPECT_EQ(status(job).state, JobState::kEvaluating);
  EXPECT_TRUE(sent<Evaluate>(worker(0)).empty());
  folder_is_unlisted_ = false;
  pass(seconds(2));
  ASSERT_EQ(orders(), std::vector<std::string>{path(0)});
  evaluate(job, 0.5);
  EXPECT_EQ(status(job).state, JobState::kFinished);
}

TEST_F(EvaluatorsTest, AJobThatIsSubmittedAgainKeepsItsBestCheckpoint) {
  const JobId first = train_with(1, every_100(0, 1));
  report_pacer(100, 0);
  evaluate(first, 0.3);
  step(chiefd::Stop{ClientId(2), "a", true, "ada"});
  ASSERT_EQ(status(first).state, JobState::kStopped);
  const JobId second = submit(every_100(0, 1));
  ASSERT_EQ(status(second).state, JobState::kRunning) << status(second).reason;
  ASSERT_EQ(status(second).best.size(), 1u);
  EXPECT_EQ(status(second).best.front().checkpoint.path, path(0));
  EXPECT_EQ(orders().size(), 1u) << "it was evaluated already";
  const std::size_t work = folder_work_.size();
  report_pacer(200, 0);
  evaluate(second, 0.9);
  report_pacer(300, 0);
  EXPECT_EQ(status(second).best.front().checkpoint.path, path(0));
  for (std::size_t i = work; i < folder_work_.size(); ++i) {
    if (const auto* keep = std::get_if<KeepBest>(&folder_work_[i].work)) {
      EXPECT_EQ(keep->best, "") << "a worse one isn't exported";
    }
    if (const auto* commit = std::get_if<CommitAttempt>(&folder_work_[i].work)) {
      EXPECT_EQ(commit->pinned.front(), path(0));
    }
  }
}

TEST_F(EvaluatorsTest, AJobThatBeginsAnewForgetsTheEvaluationsOfAnEmptiedFolder) {
  evaluations_ = KeptEvaluations{"loss", false, {}};
  evaluations_->found.best_value = 0.1;
  evaluations_->found.without_progress = 7;
  const JobId job = train_with(1, every_100(2));
  for (const std::uint64_t step : {100, 200}) {
    report_pacer(step, 0);
    evaluate(job, 0.5);
  }
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
}

TEST_F(EvaluatorsTest, IfNoEvaluatorIsThereAtTheEndAWorkerEvaluates) {
  const JobId job = train_with(1, every_100());
  lend_all(job);
  report_pacer(100, 1);
  kill(evaluator(0));
  finish(job, worker(0));
  EXPECT_EQ(status(job).state, JobState::kEvaluating);
  EXPECT_TRUE(sent<Evaluate>(worker(0)).empty());
  pass(seconds(40));
  ASSERT_EQ(sent<Evaluate>(worker(0)).size(), 1u);
  say(worker(0), Evaluated{job, generation(job), Step(100), true, 0.5, {}, 10});
  EXPECT_EQ(status(job).state, JobState::kFinished);
}

// The older checkpoint still waits for an evaluation then.
TEST_F(EvaluatorsTest, JobWaitsOnceForEvaluatorsThatStayAway) {
  const JobId job = train_with(1, every_100());
  lend_all(job);
  kill(evaluator(0));
  report_pacer(100, 0);
  report_pacer(200, 1);
  finish(job, worker(0));
  pass(seconds(40));
  ASSERT_EQ(sent<Evaluate>(worker(0)).size(), 1u);
  say(worker(0), Evaluated{job, generation(job), Step(200), true, 0.5, {}, 10});
  EXPECT_EQ(status(job).state, JobState::kFinished) << status(job).reason;
}

TEST_F(EvaluatorsTest, WithoutCheckpointsAWorkerEvaluatesAndTheStatusSaysWhy) {
  JobConfig config = every_100();
  config.checkpoint = CheckpointSection();
  const JobId job = train_with(1, config);
  EXPECT_TRUE(sent<OpenJob>(worker(0)).front().evaluates);
  EXPECT_EQ(
      status(job).warnings.front(),
      "an evaluator needs checkpoints, but the job takes none, so a worker evaluates: set checkpoint.directory in "
      "job.toml");
}

// In async a worker evaluates parameters of which there is no checkpoint, except after the last step.
TEST_F(EvaluatorsTest, KeepBestInAsyncWithoutAnEvaluatorIsAWarning) {
  JobConfig config = every_100();
  config.evaluate.keep_best = 1;
  const auto warns = [this](const JobConfig& of, std::uint32_t evaluators) {
    journal_ = {};
    const JobId job = train_with(evaluators, of);
    const std::vector<std::string> warnings = status(job).warnings;
    return std::any_of(warnings.begin(), warnings.end(),
                       [](const std::string& text) { return text.starts_with("evaluate.keep_best knows only"); });
  };
  EXPECT_TRUE(warns(config, 0));
  EXPECT_FALSE(warns(config, 1));
  config.evaluate.keep_best = 0;
  EXPECT_FALSE(warns(config, 0));
  config.evaluate.keep_best = 1;
  config.train.mode = Mode::kSync;
  EXPECT_FALSE(warns(config, 0));
}

TEST_F(EvaluatorsTest, NoticeOfAnEvaluatorIsOneWarningOfTheJob) {
  const JobId job = train_with(2, every_100());
  report_pacer(100, 0);
  report_pacer(200, 0);
  evaluate(job, 0.5, 0, "some words are unknown");
  evaluate(job, 0.4, 1, "some words are unknown");
  EXPECT_EQ(status(job).warnings, std::vector<std::string>{"some words are unknown"});
}

TEST_F(EvaluatorsTest, NoticeOfAWorkersEvaluationIsOneWarningOfTheJob) {
  JobConfig config = every_100();
  config.evaluate.every_steps = 10;
  evaluation_records_ = 10;
  const JobId job = train(config, 1);
  for (const std::uint64_t step : {10, 20}) {
    Evaluated evaluated{job, generation(job), Step(step), false, 0.5, {}, 10};
    evaluated.notice = "some words are unknown";
    say(worker(0), evaluated);
  }
  EXPECT_EQ(status(job).warnings, std::vector<std::string>{"some words are unknown"});
}

TEST_F(EvaluatorsTest, NoticeThatTheJobsDescriptionHasIsNoOtherWarning) {
  described_notice_ = "some words are unknown; and more";
  const JobId job = train_with(1, every_100());
  report_pacer(100, 0);
  evaluate(job, 0.5, 0, "some words are unknown");
  EXPECT_EQ(status(job).warnings, std::vector<std::string>{described_notice_});
}

TEST_F(EvaluatorsTest, StopAfterNeedsEvaluationsWhileTheJobTrains) {
  start_chief(1, 1);
  hello_all();
  EXPECT_EQ(submit(every_100(2)), JobId(0));
  EXPECT_NE(refused_->reason.find("nothing evaluates while the job trains"), std::string::npos);
}

TEST_F(EvaluatorsTest, EvaluationsOfWorkersCountToo) {
  JobConfig config = every_100(2);
  config.evaluate.every_steps = 10;
  evaluation_records_ = 10;
  const JobId job = train(config, 1);
  for (const std::uint64_t step : {10, 20, 20, 30})
    say(worker(0), Evaluated{job, generation(job), Step(step), false, 0.5, {}, 10});
  pass(seconds(1));
  EXPECT_EQ(status(job).state, JobState::kStopping);
}

// The folder still exports the checkpoint before, when the evaluation of the last one arrives.
TEST_F(EvaluatorsTest, TheFolderKeepsWhatTheLastEvaluationFound) {
  JobConfig config = every_100(0, 1);
  evaluation_records_ = 10;
  const JobId job = train(config, 1);
  for (const std::uint64_t step : {100, 200}) report_pacer(step, 0);
  ASSERT_EQ(kept_.size(), 2u);
  folder_is_held_ = true;
  say(worker(0), Evaluated{job, generation(job), Step(100), true, 0.5, {}, 10});
  ASSERT_EQ(newest_of<KeepBest>().evaluations->found.best.front().value, 0.5);
  const std::size_t before = folder_work_.size();
  say(worker(0), Evaluated{job, generation(job), Step(200), true, 0.25, {}, 10});
  EXPECT_EQ(folder_work_.size(), before) << "one after the other";
  step(chiefd::Stop{ClientId(2), "a", true, "ada"});
  ASSERT_EQ(folder_work_.size(), before + 1);
  EXPECT_EQ(newest_of<KeepBest>().evaluations->found.best.front().value, 0.25);
  release_folder();
  EXPECT_EQ(status(job).state, JobState::kStopped);
}

}  // namespace
}  // namespace disttrain::chiefd
