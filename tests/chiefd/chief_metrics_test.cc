// The metrics that the chief exports about its tasks and its job.
#include "chiefd/chief_metrics.h"

#include <gmock/gmock.h>

#include "tests/chiefd/core/recovery_fixture.h"

namespace disttrain::chiefd {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class ChiefMetricsTest : public RecoveryTest {
 protected:
  std::string page() {
    metrics::Page page;
    ChiefMetrics(config_, *cluster_).collect(now_, 0, page);
    return page.text();
  }
};

TEST_F(ChiefMetricsTest, UnlistedWorkerIsCountedSeparately) {
  config_.allow_unlisted_workers = true;
  train(job_config("a"));
  hello(worker(7));
  pass(std::chrono::seconds(1));
  EXPECT_THAT(page(), HasSubstr("disttrain_unlisted_workers_ready 1\n"));
  EXPECT_THAT(page(), HasSubstr("disttrain_tasks_expected{role=\"worker\"} 2\n"));
  EXPECT_THAT(page(), HasSubstr("disttrain_tasks_ready{role=\"worker\"} 2\n"));
  EXPECT_THAT(page(), HasSubstr("disttrain_task_up{task=\"worker/1\"} 1\n"));
  EXPECT_THAT(page(), Not(HasSubstr("disttrain_task_up{task=\"worker/7\"}")));
  kill(worker(1));
  EXPECT_THAT(page(), HasSubstr("disttrain_unlisted_workers_ready 1\n"));
  EXPECT_THAT(page(), HasSubstr("disttrain_tasks_ready{role=\"worker\"} 1\n"));
}

TEST_F(ChiefMetricsTest, NoLossBeforeTheFirstStepOfARestoredJob) {
  newest_ = restore_point(20);
  newest_->bytes = 1000;
  train(with_checkpoints());
  pass(std::chrono::seconds(1));
  EXPECT_THAT(page(), HasSubstr("disttrain_global_step{job=\"a\"} 20\n"));
  EXPECT_THAT(page(), Not(HasSubstr("disttrain_loss{")));
  EXPECT_THAT(page(), HasSubstr("disttrain_checkpoint_bytes{job=\"a\"} 1000\n"));
  report_pacer(21, 0);
  EXPECT_THAT(page(), HasSubstr("disttrain_loss{"));
}

TEST_F(ChiefMetricsTest, MetricsOfTheModelHaveASeriesForEachName) {
  const JobId job = train(job_config("a"));
  pass(std::chrono::milliseconds(100));
  EXPECT_THAT(page(), AllOf(Not(HasSubstr("disttrain_train_metric{")), Not(HasSubstr("disttrain_evaluation_metric{")),
                            Not(HasSubstr("disttrain_evaluation_accuracy{"))));
  heartbeats_[worker(0)].metrics = {{"accuracy", 0.5}, {"top_5", 0.75}};
  pass(std::chrono::milliseconds(100));
  Evaluated evaluated{job, generation(job), Step(0), false, 0.5, {{"auc", 0.875}}, 100};
  say(worker(0), evaluated);
  EXPECT_THAT(page(), AllOf(HasSubstr("disttrain_train_metric{job=\"a\",name=\"accuracy\"} 0.5\n"),
                            HasSubstr("disttrain_train_metric{job=\"a\",name=\"top_5\"} 0.75\n"),
                            HasSubstr("disttrain_evaluation_metric{job=\"a\",name=\"auc\"} 0.875\n"),
                            Not(HasSubstr("disttrain_evaluation_accuracy{"))));
  evaluated.metrics = {{"accuracy", 0.25}};
  say(worker(0), evaluated);
  EXPECT_THAT(page(), AllOf(HasSubstr("disttrain_evaluation_accuracy{job=\"a\"} 0.25\n"),
                            HasSubstr("disttrain_evaluation_metric{job=\"a\",name=\"accuracy\"} 0.25\n"),
                            Not(HasSubstr("name=\"auc\""))));
}

TEST_F(ChiefMetricsTest, JobsThatEndAreCountedFromZero) {
  const JobId job = train(job_config("a"));
  ChiefMetrics metrics(config_, *cluster_);
  const auto text = [&] {
    metrics::Page page;
    metrics.collect(now_, 0, page);
    return page.text();
  };
  EXPECT_THAT(text(), HasSubstr("disttrain_jobs_ended_total{state=\"failed\"} 0\n"));
  EXPECT_THAT(text(), HasSubstr("disttrain_jobs_ended_total{state=\"stopped\"} 0\n"));
  say(worker(0), TaskFailed{job, generation(job), ErrorCode::kData, "can't read"});
  for (const EventRecord& event : journal_.events) metrics.hear(event);
  EXPECT_THAT(text(), HasSubstr("disttrain_jobs_ended_total{state=\"failed\"} 1\n"));
  EXPECT_THAT(text(), HasSubstr("disttrain_jobs_ended_total{state=\"finished\"} 0\n"));
}

TEST_F(ChiefMetricsTest, ExamplesDoNotFallWithARollback) {
  JobConfig config = with_checkpoints();
  config.job.shards = 2;
  train(config);
  pacer_.examples = 300;
  report_pacer(30, 0);
  newest_ = restore_point(20);
  newest_->pacer.examples = 200;
  const PacerReport saved = newest_->pacer;
  kill(ps(1));
  pacer_ = saved;
  restart(ps(1));
  EXPECT_THAT(page(), HasSubstr("disttrain_global_step{job=\"a\"} 20\n"));
  EXPECT_THAT(page(), HasSubstr("disttrain_examples_total{job=\"a\"} 300\n"));
}

}  // namespace
}  // namespace disttrain::chiefd
