// The list of the tasks that a job waits for, at each stage. Programs read this list, and people read the status's
// reason.
#include <gmock/gmock.h>

#include "tests/chiefd/core/recovery_fixture.h"

namespace disttrain::chiefd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

class AwaitedTest : public RecoveryTest {
 protected:
  // "ps/0 hello", "2 workers hello".
  std::vector<std::string> waits_for(JobId job) {
    std::vector<std::string> all;
    for (const Awaited& one : status(job).waits_for)
      all.push_back((one.task ? to_string(*one.task) : std::to_string(one.count) + " workers") + " " +
                    to_string(one.what));
    return all;
  }
  Instant since(JobId job) { return status(job).waits_for.front().since; }
};

TEST_F(AwaitedTest, StartingJobWaitsForEachTaskThatIsMissing) {
  start_chief(1, 3);
  hello(ps(0));
  const Instant submitted = now_;
  const JobId job = submit(job_config("a"));
  pass(seconds(1));
  EXPECT_THAT(waits_for(job), ElementsAre("worker/0 hello", "worker/1 hello", "worker/2 hello"));
  EXPECT_EQ(since(job), submitted);
  obedient_ = false;
  for (const std::uint32_t i : {0u, 1u, 2u}) hello(worker(i));
  EXPECT_THAT(waits_for(job), ElementsAre("worker/0 description"));
}

TEST_F(AwaitedTest, EachStageOfTheStartWaitsForItsOwnAnswer) {
  start_chief(2, 2);
  hello_all();
  obedient_ = false;
  const JobId job = submit(job_config("a"));
  const Instant began = now_;
  EXPECT_THAT(waits_for(job), ElementsAre("worker/0 description"));
  pass(seconds(1));
  EXPECT_EQ(since(job), began);
  say(worker(0), JobDescribed{job, model_, records_, 0, evaluation_records_});
  EXPECT_THAT(waits_for(job), ElementsAre("ps/0 shards"));  // ps/0 has the only shard
  EXPECT_EQ(since(job), now_);
  say(ps(0), ShardsCreated{job, generation(job)});
  EXPECT_THAT(waits_for(job), ElementsAre("worker/0 open", "worker/1 open"));
  for (const std::uint32_t i : {0u, 1u}) say(worker(i), JobOpened{job, generation(job)});
  EXPECT_THAT(waits_for(job), ElementsAre("ps/0 roster"));
}

TEST_F(AwaitedTest, NoticeOfTheDataIsAWarningOfTheJob) {
  start_chief(2, 2);
  hello_all();
  obedient_ = false;
  const JobId job = submit(job_config("a"));
  say(worker(0), JobDescribed{job, model_, records_, 0, evaluation_records_, {}, "", "some words are unknown"});
  EXPECT_THAT(status(job).warnings, ElementsAre("some words are unknown"));
}

TEST_F(AwaitedTest, RunningJobWaitsForNobody) {
  const JobId job = train(job_config("a"));
  EXPECT_THAT(waits_for(job), IsEmpty());
  EXPECT_EQ(status(job).as_of, now_);
}

TEST_F(AwaitedTest, SilentPsIsAwaitedByName) {
  JobConfig config = job_config("a");
  config.job.shards = 2;
  const JobId job = train(config);
  silence(ps(1));
  pass(seconds(2));
  ASSERT_EQ(status(job).state, JobState::kPaused);
  EXPECT_THAT(waits_for(job), ElementsAre("ps/1 heartbeat"));
}

TEST_F(AwaitedTest, LostPsIsAwaitedUntilItsSuccessorIsThereAndNotForItsName) {
  JobConfig config = job_config("a");
  config.job.shards = 2;
  const JobId job = train(config);
  report_pacer(30, 0);
  const Instant last_heard = now_;
  kill(ps(1));
  EXPECT_THAT(waits_for(job), ElementsAre("ps/1 hello"));
  EXPECT_EQ(since(job), last_heard);
  obedient_ = false;
  restart(ps(1));
  EXPECT_THAT(waits_for(job), ElementsAre("ps/0 shards", "ps/1 shards")) << status(job).reason;
}

TEST_F(AwaitedTest, NoWorkerIsNamedWhereAnyWorkerWillDo) {
  JobConfig config = job_config("a");
  config.job.min_workers = 3;
  const JobId job = train(config, 3);
  kill(worker(0));
  EXPECT_THAT(waits_for(job), ElementsAre("1 workers hello"));
  kill(worker(2));
  EXPECT_THAT(waits_for(job), ElementsAre("2 workers hello"));
  EXPECT_EQ(status(job).reason, "2 of at least 3 workers are there; waiting for others");
}

TEST_F(AwaitedTest, MoreWorkersThanTheFileNamesAreAskedFor) {
  config_.allow_unlisted_workers = true;
  start_chief(1, 1);
  hello_all();
  JobConfig config = job_config("a");
  config.job.min_workers = 3;
  const JobId job = submit(config);
  EXPECT_THAT(waits_for(job), ElementsAre("2 workers hello"));
  EXPECT_EQ(status(job).reason, "waiting for 2 more workers");
}

TEST_F(AwaitedTest, RankIsAwaitedByName) {
  JobConfig config = job_config("a", Mode::kSync);
  config.job.on_worker_loss = OnWorkerLoss::kWait;
  const JobId job = train(config);
  kill(worker(1));
  EXPECT_THAT(waits_for(job), ElementsAre("worker/1 hello"));
  kill(ps(0));
  EXPECT_THAT(waits_for(job), ElementsAre("ps/0 hello", "worker/1 hello"));
  obedient_ = false;
  restart(worker(1));
  EXPECT_THAT(waits_for(job), ElementsAre("ps/0 hello", "worker/1 description"));
}

TEST_F(AwaitedTest, StoppedJobWaitsForTheEndOfTheWorkersSteps) {
  const JobId job = train(job_config("a"));
  step(Stop{ClientId(1), "a", false, "ada"});
  const Instant stopped = now_;
  pass(seconds(1));
  EXPECT_THAT(waits_for(job), ElementsAre("worker/0 step_end", "worker/1 step_end"));
  EXPECT_EQ(since(job), stopped);
}

TEST_F(AwaitedTest, NewChiefWaitsForTheTasksThatHaveNotComeBack) {
  const JobId job = train(job_config("a"));
  report_pacer(30, 0);
  restart_chief();
  hello_again(worker(1));
  EXPECT_THAT(waits_for(job), ElementsAre("ps/0 hello", "worker/0 hello"));
}

// The chief writes events to its journal. Such an event has a sentence for people, and a cause for programs. A
// restarted chief reads only the cause.
TEST_F(AwaitedTest, CauseOfARecoveryOutlivesTheChiefWhateverTheSentenceSays) {
  const JobId job = train(job_config("a"));
  report_pacer(30, 0);
  kill(ps(0));
  EventRecord& loss = *std::find_if(journal_.events.begin(), journal_.events.end(),
                                    [](const EventRecord& event) { return event.kind == kLossCounted; });
  EXPECT_EQ(loss.task, "ps/0");
  EXPECT_FALSE(loss.cause.empty());
  EXPECT_EQ(loss.cause.find("ps/0"), std::string::npos) << loss.cause;
  const std::string cause = loss.cause;
  loss.text = "in other words: it rained: on Monday";
  silence(ps(0));
  restart_chief();
  hello_again(ps(1));
  for (const std::uint32_t i : {0u, 1u}) hello_again(worker(i));
  pacer_ = PacerReport();
  restart(ps(0));
  pass(seconds(1));
  ASSERT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  const std::string told = event("rolled_back");
  EXPECT_NE(told.find("cause: ps/0: " + cause), std::string::npos) << told;
}

}  // namespace
}  // namespace disttrain::chiefd
