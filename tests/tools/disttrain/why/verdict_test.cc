// `why` computes a verdict about a job from two answers of the chief. Each test writes the answers and checks the
// verdict.
#include "tools/disttrain/why/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace disttrain::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// Of the time between the two answers, the seconds that were spent in each part.
struct Parts {
  double steps;
  double input;
  double compute;
  double wait;
};

// Two answers of the chief about a job. At the first answer, each worker has made 1000 steps and spent 100 s in each
// phase, and each shard has existed for 100 s.
class Looks {
 public:
  explicit Looks(const std::string& mode) {
    before_ = {{"job", "mnist"}, {"id", 7}, {"mode", mode}, {"state", "running"}, {"generation", 1}, {"reason", ""}};
    before_["tasks"] = Json::array({{{"task", "chief/0"}, {"state", "ready"}}});
    after_ = before_;
  }

  Looks& worker(const Parts& parts) { return worker_on("a", parts); }
  Looks& worker_on(const std::string& host, const Parts& parts) {
    Json task = {{"task", "worker/" + std::to_string(workers_++)},
                 {"state", "running"},
                 {"pid", 100 + workers_},
                 {"host", host},
                 {"step", 1000},
                 {"phase", "compute"},
                 {"phase_seconds", 0.1}};
    for (const char* phase : {"input", "pull", "compute", "push", "wait", "evaluate"})
      task["phase_times"][phase] = 100.0;
    before_["tasks"].push_back(task);
    task["step"] = 1000 + parts.steps;
    task["phase_times"]["input"] = 100.0 + parts.input;
    task["phase_times"]["compute"] = 100.0 + parts.compute;
    task["phase_times"]["wait"] = 100.0 + parts.wait;
    after_["tasks"].push_back(task);
    return *this;
  }
  // Adds a ps. `busy` has one element for each of its shards: how much of the time the shard's thread works, 0 to 1.
  Looks& ps(const std::vector<double>& busy, const std::string& host = "b") {
    Json then = {{"task", "ps/" + std::to_string(ps_++)}, {"state", "running"}, {"pid", 10 + ps_}, {"host", host}};
    Json now = then;
    for (const double share : busy) {
      const int shard = shards_++;
      then["shards"].push_back(
          {{"shard", shard}, {"seconds", 100.0}, {"busy_seconds", 100.0}, {"apply_seconds", 100.0}});
      now["shards"].push_back({{"shard", shard},
                               {"seconds", 102.0},
                               {"busy_seconds", 100.0 + 2.0 * share},
                               {"apply_seconds", 100.0 + share}});
    }
    before_["tasks"].push_back(then);
    after_["tasks"].push_back(now);
    return *this;
  }

  Json& before() { return before_; }
  Json& after() { return after_; }
  Json& task(Json& status, const std::string& name) {
    for (Json& task : status["tasks"])
      if (task["task"] == name) return task;
    throw std::runtime_error("no " + name);
  }
  Verdict verdict() const { return judge(before_, after_); }
  bool enough() const { return is_enough(before_, after_); }

 private:
  int workers_ = 0;
  int ps_ = 0;
  int shards_ = 0;
  Json before_;
  Json after_;
};

void expect(const Verdict& verdict, Brake brake, const std::string& task, const std::vector<std::string>& words) {
  EXPECT_EQ(to_string(verdict.brake), std::string(to_string(brake)));
  EXPECT_EQ(verdict.task, task);
  for (const std::string& word : words) EXPECT_THAT(verdict.sentence, HasSubstr(word));
  EXPECT_THAT(verdict.sentence, Not(HasSubstr("\n")));
}

TEST(Sync, WorkerThatWaitsForItsInputHoldsBackTheOthers) {
  const auto samples =
      Looks("sync").worker({10, 0.1, 0.3, 1.6}).worker({10, 1.62, 0.3, 0.08}).worker({10, 0.1, 0.3, 1.6});
  expect(samples.verdict(), Brake::kInput, "worker/1",
         {"job mnist is held back by worker/1 on a, which waits for input batches for 81 % of its step; the others "
          "wait for input batches for 5 % of their step and then wait for worker/1",
          "data.prefetch"});
}

TEST(Sync, WorkerThatComputesLongerHoldsBackTheOthers) {
  const auto samples = Looks("sync").worker({10, 0, 0.9, 1.1}).worker_on("slow", {10, 0, 1.9, 0.1}).ps({0.1});
  expect(samples.verdict(), Brake::kCompute, "worker/1",
         {"worker/1 on slow, which computes for 95 % of its step",
          "the others compute for 45 % of their step and then wait for worker/1"});
}

TEST(Sync, ExchangeIsJudgedByTheWorkerThatWaitsLeast) {
  const auto samples =
      Looks("sync").worker({10, 0, 0.2, 1.8}).worker({10, 0, 0.6, 1.4}).worker({10, 0, 0.2, 1.8}).ps({0.1});
  expect(samples.verdict(), Brake::kLink, "worker/1",
         {"take 70 % of the step even for worker/1, which waits least (it works for 30 % of its step, while the "
          "others work for 10 % of theirs)"});
}

TEST(Sync, WhereAllComputeOnlyTheDeviceIsTheLimit) {
  const auto samples = Looks("sync").worker({10, 0, 1.76, 0.24}).worker({10, 0, 1.84, 0.16}).ps({0.1});
  expect(samples.verdict(), Brake::kCompute, "",
         {"job mnist computes: all 2 workers spend 88-92 % of the step in compute, so only a faster "
          "device would help"});
}

TEST(Sync, ComputingThatIsNotMostOfTheStepIsNotCalledAll) {
  const auto samples = Looks("sync").worker({10, 0.4, 1.0, 0.6}).worker({10, 0.4, 1.0, 0.6}).ps({0.1});
  expect(samples.verdict(), Brake::kCompute, "",
         {"50 % of the step in compute, and no other part of the step takes as long"});
}

TEST(Sync, WhereAllWaitAlikeNoLinkIsNamed) {
  const auto samples = Looks("sync").worker({10, 0, 0.6, 1.4}).worker({10, 0, 0.6, 1.4}).ps({0.1});
  expect(samples.verdict(), Brake::kLink, "",
         {"take 70 % of the step", "in sync all workers wait equally long", "check the network"});
}

TEST(Sync, ShardThatWorksForMuchOfTheWaitIsTheCauseThoughItIsNotBusy) {
  const auto samples = Looks("sync").worker({10, 0, 0.6, 1.4}).worker({10, 0, 0.6, 1.4}).ps({0.1, 0.4});
  expect(samples.verdict(), Brake::kShard, "ps/0",
         {"shard 1", "40 % of the time", "all 2 workers wait for parameters for 70 %"});
}

TEST(Async, BusyShardHoldsBackAll) {
  const auto samples = Looks("async").worker({10, 0, 0.8, 1.2}).worker({10, 0, 0.78, 1.22}).ps({0.3}).ps({0.93});
  expect(samples.verdict(), Brake::kShard, "ps/1",
         {"held back by ps/1: the thread of its shard 1 works for 93 % of the time (for 47 % it applies gradients), "
          "and all 2 workers wait for parameters for 60-61 % of the step: use more shards"});
}

TEST(Async, WorkerThatExchangesLongerHasASlowLink) {
  const auto samples = Looks("async")
                           .worker_on("a", {20, 0, 1.76, 0.24})
                           .worker_on("b", {20, 0, 1.76, 0.24})
                           .worker_on("c", {8, 0, 0.72, 1.28})
                           .ps({0.2});
  expect(samples.verdict(), Brake::kLink, "worker/2",
         {"the link between worker/2 and the ps tasks: pushes and pulls take 64 % of worker/2's step and 12 % of the "
          "other workers' steps, and no shard is busy (the busiest is shard 0 of ps/0 with 20 %)",
          "check the network"});
}

TEST(Async, SlowWorkerThatExchangesNoMoreThanTheOthersHasNoLinkToBlame) {
  const auto samples = Looks("async").worker({20, 0, 0.4, 1.6}).worker({12, 0.3, 0.3, 1.4}).ps({0.2});
  const Verdict verdict = samples.verdict();
  expect(verdict, Brake::kLink, "", {"the links between the workers and the ps tasks", "take 70-80 % of the step"});
  EXPECT_THAT(verdict.sentence, Not(HasSubstr("of the other workers' steps")));
}

// 4 workers share a shard, which works for 40 % of the time. So it works for each of them for only 10 % of the time.
TEST(Async, ShardThatWorksForManyExplainsTheWaitOfNone) {
  Looks samples("async");
  for (int i = 0; i < 4; ++i) samples.worker({10, 0, 0.8, 1.2});
  expect(samples.ps({0.4}).verdict(), Brake::kLink, "", {"the links between the workers and the ps tasks", "60 %"});
}

TEST(Async, OnOneHostNoNetworkIsToBlame) {
  const auto samples = Looks("async").worker({10, 0, 0.8, 1.2}).worker({10, 0, 0.8, 1.2}).ps({0.1}, "a");
  const Verdict verdict = samples.verdict();
  expect(verdict, Brake::kLink, "", {"all of them run on a and share its processors"});
  EXPECT_THAT(verdict.sentence, Not(HasSubstr("check the network")));
}

TEST(Async, SlowWorkerHoldsBackNobodyElse) {
  const auto samples =
      Looks("async").worker({20, 0, 1.8, 0.2}).worker({20, 0, 1.8, 0.2}).worker({10, 0, 1.9, 0.1}).ps({0.1});
  expect(samples.verdict(), Brake::kCompute, "worker/2",
         {"makes 5.00 steps/s; the others compute for 90 % of their step, make 10 steps/s and don't wait for "
          "worker/2"});
}

TEST(Async, WorkerThatHangsHoldsBackTheOthersAtACheckpoint) {
  const auto samples =
      Looks("async").worker({2, 0, 0.2, 1.8}).worker({2, 0, 0.3, 1.7}).worker({0, 0, 2.0, 0}).ps({0.1});
  const Verdict verdict = samples.verdict();
  expect(verdict, Brake::kCompute, "worker/2",
         {"make 1.00 steps/s and spend 85-90 % of it in push, pull and wait: while a checkpoint is taken, they wait "
          "until worker/2 has ended its step"});
  EXPECT_THAT(verdict.sentence, Not(HasSubstr("don't wait")));
}

TEST(Async, WorkersOfNearlyTheSamePaceAreAlike) {
  const auto samples = Looks("async").worker({20, 0, 1.8, 0.2}).worker({16, 0, 1.8, 0.2}).ps({0.1});
  expect(samples.verdict(), Brake::kCompute, "", {"all 2 workers spend 90 %"});
}

TEST(Async, WorkerWithoutAStepIsTheSlowest) {
  const auto samples = Looks("async").worker({20, 0, 1.8, 0.2}).worker({0, 1.9, 0.1, 0}).ps({0.1});
  expect(samples.verdict(), Brake::kInput, "worker/1", {"waits for input batches for 95 %"});
}

TEST(Async, SlowInputOfAllWorkersBlamesNoSingleWorker) {
  const auto samples = Looks("async").worker({20, 1.2, 0.6, 0.2}).worker({20, 1.4, 0.4, 0.2}).ps({0.1});
  expect(samples.verdict(), Brake::kInput, "",
         {"held back by its input: all 2 workers wait for input batches for 60-70 %"});
}

// At the first answer the input threads of a worker have spent 100 s in each stage.
void set_stages(Looks& samples, const std::string& worker, const std::vector<double>& seconds) {
  const char* const stages[] = {"read", "decode", "transform", "batch"};
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    samples.task(samples.before(), worker)["data_times"][stages[i]] = 100.0;
    samples.task(samples.after(), worker)["data_times"][stages[i]] = 100.0 + seconds[i];
  }
}

TEST(Input, SlowStageOfMakingBatchesIsNamedWithTheSharesOfAll) {
  auto samples = Looks("async").worker({20, 1.2, 0.6, 0.2}).worker({20, 1.4, 0.4, 0.2});
  set_stages(samples, "worker/0", {0.5, 2.0, 0.4, 0.1});
  set_stages(samples, "worker/1", {0.5, 1.0, 0.4, 0.1});
  expect(
      samples.verdict(), Brake::kInput, "",
      {"of the step; the slow stage of making batches is decode (read 20 %, decode 60 %, transform 16 %, batch 4 % of "
       "the input threads' time): raise data.threads"});
  EXPECT_THAT(samples.verdict().sentence, Not(HasSubstr("data.prefetch")));
}

TEST(Input, StagesOfTheWorkerThatHoldsBackTheOthersCount) {
  auto samples = Looks("sync").worker({10, 0.1, 0.3, 1.6}).worker({10, 1.62, 0.3, 0.08}).worker({10, 0.1, 0.3, 1.6});
  set_stages(samples, "worker/0", {0.0, 9.0, 0.0, 0.0});
  set_stages(samples, "worker/1", {3.0, 0.5, 0.25, 0.25});
  expect(samples.verdict(), Brake::kInput, "worker/1",
         {"is read (read 75 %, decode 13 %, transform 6 %, batch 6 %", "a faster disk"});
}

TEST(Input, StagesThatDidNotGrowAreLeftOut) {
  auto samples = Looks("async").worker({10, 1.5, 0.4, 0.1});
  set_stages(samples, "worker/0", {0.0, 0.0, 0.0, 0.0});
  expect(samples.verdict(), Brake::kInput, "worker/0", {"data.prefetch"});
}

TEST(Ssp, BelowTheBoundThePaceTellsTheSlowest) {
  const auto samples = Looks("ssp").worker({20, 0, 1.8, 0.2}).worker({10, 0, 1.8, 0.2}).ps({0.1});
  expect(samples.verdict(), Brake::kCompute, "worker/1", {"don't wait for worker/1"});
}

TEST(Ssp, AtTheBoundTheOwnWorkTellsTheSlowest) {
  const auto samples = Looks("ssp").worker({10, 0, 0.9, 1.1}).worker({10, 0, 1.8, 0.2}).ps({0.1});
  expect(samples.verdict(), Brake::kCompute, "worker/1", {"compute for 45 % of their step and then wait for worker/1"});
}

TEST(OneWorker, IsComparedWithNobody) {
  for (const char* mode : {"async", "sync", "ssp"}) {
    SCOPED_TRACE(mode);
    expect(Looks(mode).worker({10, 0, 1.9, 0.1}).ps({0.1}).verdict(), Brake::kCompute, "worker/0",
           {"worker/0 spends 95 %"});
    expect(Looks(mode).worker({10, 1.5, 0.4, 0.1}).ps({0.1}).verdict(), Brake::kInput, "worker/0",
           {"worker/0 waits for input batches for 75 %"});
    expect(Looks(mode).worker({10, 0, 0.4, 1.6}).ps({0.5}).verdict(), Brake::kShard, "ps/0",
           {"worker/0 waits for parameters for 80 %"});
    expect(Looks(mode).worker({10, 0, 0.4, 1.6}).ps({0.1}).verdict(), Brake::kLink, "worker/0",
           {"the links between worker/0 and the ps tasks"});
  }
}

TEST(Evaluation, IsNamedWhereItTakesMost) {
  Looks samples = Looks("sync").worker({10, 0, 0.2, 0.1}).worker({10, 0, 0.2, 1.8}).ps({0.1});
  samples.task(samples.after(), "worker/0")["phase_times"]["evaluate"] = 101.7;
  expect(samples.verdict(), Brake::kEvaluation, "worker/0", {"evaluates for 85 % of its step", "evaluate.every_steps"});
}

// --- Answers that can't be compared

TEST(Compare, WorkerThatJoinedBetweenIsLeftOut) {
  Looks samples = Looks("sync").worker({10, 0, 1.8, 0.2}).worker({10, 1.9, 0.1, 0}).ps({0.1});
  samples.task(samples.before(), "worker/1")["state"] = "ready";
  expect(samples.verdict(), Brake::kCompute, "worker/0", {"worker/0 spends 90 %"});
}

TEST(Compare, TasksWhoseCountersFellAreLeftOut) {
  Looks samples = Looks("sync").worker({10, 0, 1.8, 0.2}).worker({10, 1.9, 0.1, 0}).ps({0.1, 0.9});
  samples.task(samples.after(), "worker/1")["phase_times"]["compute"] = 0.5;
  samples.task(samples.after(), "ps/0")["shards"][1]["seconds"] = 0.5;
  const Verdict verdict = samples.verdict();
  expect(verdict, Brake::kCompute, "worker/0", {});
  ASSERT_EQ(verdict.samples.shards.size(), 1u);
  EXPECT_EQ(verdict.samples.shards[0].shard, 0);
  EXPECT_NEAR(verdict.samples.shards[0].busy, 0.1, 1e-9);
}

TEST(Compare, AnotherProcessIsAnotherTask) {
  Looks samples = Looks("sync").worker({10, 0, 1.8, 0.2}).ps({0.1});
  samples.task(samples.after(), "worker/0")["pid"] = 999;
  expect(samples.verdict(), Brake::kUnknown, "", {"disttrain why` again"});
}

TEST(Compare, AnotherGenerationIsAnotherJob) {
  Looks samples = Looks("sync").worker({10, 0, 1.8, 0.2}).ps({0.1});
  samples.after()["generation"] = 2;
  expect(samples.verdict(), Brake::kUnknown, "", {"disttrain why` again"});
  EXPECT_FALSE(samples.enough());
}

TEST(Compare, StatusWithoutShardsIsNoError) {
  Looks samples = Looks("async").worker({10, 0, 0.4, 1.6}).ps({});
  const Verdict verdict = samples.verdict();
  expect(verdict, Brake::kLink, "worker/0", {});
  EXPECT_THAT(verdict.sentence, Not(HasSubstr("busiest")));
}

TEST(Enough, TakesThreeStepsOfEveryWorker) {
  EXPECT_TRUE(Looks("sync").worker({3, 0, 1, 1}).worker({3, 0, 1, 1}).enough());
  EXPECT_FALSE(Looks("sync").worker({3, 0, 1, 1}).worker({2, 0, 1, 1}).enough());
  EXPECT_FALSE(Looks("sync").enough());
}

// --- A job that makes no step

TEST(Stall, SilentTaskIsNamedFirst) {
  Looks samples = Looks("sync").worker({0, 0, 0, 2}).worker({0, 0, 2, 0}).ps({0});
  Json& ps = samples.task(samples.after(), "ps/0");
  ps["state"] = "silent";
  ps["heartbeat_age_seconds"] = 1.25;
  expect(samples.verdict(), Brake::kStall, "ps/0",
         {"no step ended", "ps/0 hasn't sent a heartbeat for 1.25 s", "process 11 on b"});
}

TEST(Stall, WorkerThatIsLongestAtWorkIsNamed) {
  Looks samples = Looks("sync").worker({0, 0, 0, 2}).worker({0, 0, 2, 0}).worker({0, 0, 2, 0}).ps({0});
  samples.task(samples.after(), "worker/0")["phase"] = "wait";
  samples.task(samples.after(), "worker/0")["phase_seconds"] = 30.0;
  samples.task(samples.after(), "worker/2")["phase_seconds"] = 12.0;
  expect(samples.verdict(), Brake::kStall, "worker/2", {"worker/2 has been in compute for 12 s"});
}

TEST(Stall, WhereAllWaitThePsTasksAreBlamed) {
  Looks samples = Looks("sync").worker({0, 0, 0, 2}).ps({0});
  samples.task(samples.after(), "worker/0")["phase"] = "wait";
  expect(samples.verdict(), Brake::kStall, "", {"all workers wait for the ps tasks"});
}

Verdict of_state(const std::string& json) {
  return judge(Json::parse(json), Json::parse(json));
}

TEST(State, WithoutAnyJobItSaysSo) {
  expect(of_state(R"({"job": null, "state": null, "tasks": []})"), Brake::kNoJob, "", {"no job was submitted yet"});
}

TEST(State, PausedJobNamesTheTaskItWaitsForAndItsHost) {
  const Verdict verdict = of_state(R"({"job": "a", "state": "paused",
    "reason": "ps/1: no heartbeat for 1002.0 ms; waiting for it to return",
    "waits_for": [{"task": "ps/1", "count": 1, "since": 1.0, "for": "heartbeat"}], "tasks": [
    {"task": "ps/0", "state": "silent", "host": "h0", "address": "h0:1", "pid": 4, "heartbeat_age_seconds": 1.0},
    {"task": "ps/1", "state": "silent", "host": "h1", "address": "h1:1", "pid": 5, "heartbeat_age_seconds": 2.0}]})");
  expect(verdict, Brake::kState, "ps/1",
         {"job a is paused: ps/1: no heartbeat for 1002.0 ms; waiting for it to return",
          "ps/1 hasn't sent a heartbeat for 2 s: check its process 5 on h1 (h1:1) and the network there"});
  EXPECT_THAT(verdict.sentence, Not(HasSubstr("ps/0")));
}

TEST(State, StartingJobNamesEachThatIsMissing) {
  expect(of_state(R"({"job": "a", "state": "starting", "reason": "waiting for 2 of 4 tasks: ps/0, worker/3", "tasks": [
    {"task": "ps/0", "state": "waiting", "host": "", "address": "h:1"},
    {"task": "worker/0", "state": "ready", "host": "h", "address": "h:2"},
    {"task": "worker/3", "state": "dead", "host": "i", "address": "i:3"}]})"),
         Brake::kState, "ps/0",
         {"ps/0 isn't there: start psd (h:1)", "worker/3 isn't there: start workerd on i (i:3)"});
}

TEST(State, QueuedJobWaitsForNoTask) {
  expect(of_state(R"({"job": "a", "state": "queued", "reason": "1 job before it", "tasks": [
    {"task": "ps/0", "state": "waiting", "host": "", "address": "h:1"}]})"),
         Brake::kState, "", {"job a is queued: 1 job before it"});
}

TEST(State, JobThatWaitsForItsLastEvaluationsNamesTheEvaluatorsThatAreAway) {
  const std::string status = R"({"job": "a", "state": "evaluating", "reason": "waits", "waits_for": [], "tasks": [
    {"task": "worker/0", "state": "dead", "host": "h", "address": "h:1"},
    {"task": "evaluator/0", "state": "dead", "host": "h", "address": "h:2"},
    {"task": "evaluator/1", "state": "ready", "host": "h", "address": "h:3"}]})";
  expect(of_state(status), Brake::kState, "evaluator/0",
         {"job a is evaluating: waits; evaluator/0 isn't there: start workerd --role evaluator on h (h:2)"});
}

TEST(State, EndedJobsSayHow) {
  expect(of_state(R"({"job": "a", "state": "finished", "reason": "trained 10 steps", "root_cause": null})"),
         Brake::kState, "", {"job a finished: trained 10 steps"});
  expect(of_state(R"({"job": "a", "state": "failed", "reason": "x",
    "root_cause": {"task": "ps/0", "reason": "no memory", "log": []}})"),
         Brake::kState, "ps/0", {"job a failed because of ps/0: no memory"});
  expect(of_state(R"({"job": "a", "state": "failed", "reason": "x", "root_cause": {"task": "worker/0", "log": [],
    "reason": "the trainer ended; its last lines:\\n  Traceback:\\n  KeyError: 'x'"}})"),
         Brake::kState, "worker/0", {"job a failed because of worker/0: the trainer ended: KeyError: 'x'; see"});
}

}  // namespace
}  // namespace disttrain::cli
