// A fixture for the rules of a job: the facts of a job at a stage that the test chooses, and its tasks. Nothing is sent
// and no time goes by. A test changes the facts, asks a rule, and compares the verdict as a text.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "chiefd/core/job/facts/job_facts.h"
#include "chiefd/core/job/rules/verdict.h"
#include "chiefd/core/tasks.h"

namespace disttrain::chiefd {

class RuleTest : public testing::Test {
 protected:
  static constexpr Duration kSilent = std::chrono::seconds(1);  // the heartbeat timeout

  RuleTest() {
    config_.job.name = "mnist";
    config_.job.shards = 2;  // ps/0 owns shard 0, and is the pacer
    config_.train.batch_size = 10;
    config_.train.epochs = 1;
  }

  static TaskId ps(std::uint32_t index) { return TaskId{Role::kPs, index}; }
  static TaskId worker(std::uint32_t index) { return TaskId{Role::kWorker, index}; }
  static Member member(TaskId task) { return Member{task, Incarnation(100 + task.index)}; }

  // Makes the job of config_ and the tasks of cluster_, of which all are connected except the evaluators.
  void make_job(std::uint32_t evaluators = 0) {
    JobSetup setup{JobId(3), Submission{"", config_, 0, 0}, timeouts_};
    setup.listed_workers = 3;
    setup.evaluators = evaluators;
    job_ = std::make_unique<JobFacts>(std::move(setup));
    for (std::uint32_t i = 0; i < 2; ++i) connect(ps(i));
    for (std::uint32_t i = 0; i < 3; ++i) connect(worker(i));
  }
  // The same, and its first generation, with all three workers, is at this stage.
  void make_job_at(Stage stage, std::uint32_t evaluators = 0) {
    make_job(evaluators);
    JobDescribed described;
    described.model.variables = {VariableSpec{"w", {784, 100}, VariableKind::kTrainable, {}, 784, 100}};
    described.train_records = 100;
    job_->generation.describe(described);
    job_->workers.choose({member(worker(0)), member(worker(1)), member(worker(2))});
    Result<GenerationPlan::Placed> placed = job_->generation.plan(
        tasks_, [](TaskId) { return false; }, 3);
    ASSERT_TRUE(placed) << placed.error().message;
    const Result<std::uint32_t> places = job_->generation.plan_places(tasks_, *placed, 1, 3);
    ASSERT_TRUE(places) << places.error().message;
    job_->generation.place(std::move(*placed));
    job_->generation.make_places(*places);
    job_->generation.begin(Generation());
    job_->workers.begin_generation();
    job_->workers.begin_training();
    job_->condition.begin();
    job_->condition.note_opened();
    job_->condition.set(JobState::kRunning, "trains");
    job_->progress.moved(now_);
    job_->stage.enter(stage);
  }

  void connect(TaskId task) {
    TaskHello hello;
    hello.member = member(task);
    hello.address = task.role == Role::kPs ? cluster_.ps[task.index].address : cluster_.workers[task.index].address;
    hello.host = "host";
    hello.pid = 1000 + 10 * task.index + (task.role == Role::kPs ? 0 : 1);
    hello.shards = task.role == Role::kPs ? 1 : 0;
    tasks_.join(now_, hello, "", findings_, actions_);
  }
  void disconnect(TaskId task) { tasks_.lose_connection(now_, member(task), "reset", findings_, actions_); }
  void hear(TaskId task) { tasks_.hear(now_, member(task), Heartbeat{}, findings_); }

  Finding finding(Finding::What what, TaskId task, const std::string& why, bool was_told_to_end = false) const {
    return Finding{what, member(task), why, was_told_to_end};
  }

  // Such as "roll back (left): ps/0: its process has ended".
  static std::string text(const Verdict& verdict) {
    return std::visit([](const auto& v) { return text_of(v); }, verdict);
  }

  const ClusterConfig cluster_ = cluster_of(2, 3);
  Timeouts timeouts_ = derive_timeouts(kSilent);
  Tasks tasks_{cluster_, timeouts_};
  JobConfig config_;
  std::unique_ptr<JobFacts> job_;
  Instant now_{std::chrono::hours(10)};
  Findings findings_;
  Actions actions_;

 private:
  static ClusterConfig cluster_of(std::uint32_t ps_count, std::uint32_t workers) {
    ClusterConfig cluster;
    cluster.ps.resize(ps_count);
    cluster.workers.resize(workers);
    for (std::uint32_t i = 0; i < ps_count; ++i) cluster.ps[i].address = "host:711" + std::to_string(i);
    for (std::uint32_t i = 0; i < workers; ++i) cluster.workers[i].address = "host:712" + std::to_string(i);
    return cluster;
  }
  static std::string name(Loss loss) {
    switch (loss) {
      case Loss::kCounts:
        return "counts";
      case Loss::kLeft:
        return "left";
      case Loss::kLink:
        return "link";
      case Loss::kSpared:
        return "spared";
    }
    return "?";
  }
  static std::string names(const std::vector<Member>& workers) {
    std::string text;
    for (const Member& worker : workers) text += " " + to_string(worker.task);
    return text;
  }
  static std::string text_of(const Stay&) { return "stay"; }
  static std::string text_of(const Fail& v) {
    return "fail: " + (v.root ? to_string(*v.root) + ": " : "") + v.error.message;
  }
  static std::string text_of(const Recover& v) { return "recover (" + name(v.loss) + "): " + to_string(v.cause); }
  static std::string text_of(const StartOver&) { return "start over"; }
  static std::string text_of(const RollBack& v) { return "roll back (" + name(v.loss) + "): " + to_string(v.cause); }
  static std::string text_of(const Close& v) { return std::string("close as ") + to_string(v.end) + ": " + v.reason; }
  static std::string text_of(const Release& v) { return "release: " + v.reason; }
  static std::string text_of(const StopSteps& v) {
    return std::string("stop steps") + (v.ends_by_itself ? " (later): " : ": ") + v.reason;
  }
  static std::string text_of(const StopWithout& v) { return "stop without" + names(v.workers) + ": " + v.why; }
  static std::string text_of(const Settle&) { return "settle"; }
  static std::string text_of(const ShareRest& v) { return "share rest among" + names(v.roster); }
  static std::string text_of(const FinishEvaluation&) { return "finish evaluation"; }
  static std::string text_of(const Await& v) {
    return std::string(v.is_enough ? "await others: " : "await: ") + v.reason;
  }
  static std::string text_of(const Describe& v) {
    return "describe with" + names(v.workers) + (v.warning.empty() ? "" : "; " + v.warning);
  }
  static std::string text_of(const AskOthers& v) { return "ask" + names(v.unasked) + " of" + names(v.roster); }
  static std::string text_of(const SetFirstRoster&) { return "set first roster"; }
  static std::string text_of(const StartWithOthers& v) {
    return "start with others (" + name(v.loss) + "): " + to_string(v.cause);
  }
  static std::string text_of(const GatherAgain& v) {
    return std::string("gather again") + (v.counts ? " (counts): " : ": ") + to_string(v.cause);
  }
  static std::string text_of(const KeepOwners& v) {
    return std::string("keep owners") + (v.forgets_links ? "; forget links" : "");
  }
  static std::string text_of(const PlaceAnew& v) {
    std::string text = "place on";
    for (const Owner& owner : v.placed.owners) text += " " + to_string(owner.ps.task);
    return text;
  }
  static std::string text_of(const LackPs& v) { return "lack ps" + (v.why.empty() ? "" : ": " + v.why); }
  static std::string text_of(const Invite& v) { return "invite " + to_string(v.worker.task); }
  static std::string text_of(const ChooseRoster& v) { return "choose" + names(v.roster); }
  static std::string text_of(const MakePlaces& v) { return "make places for " + std::to_string(v.places); }
  static std::string text_of(const AwaitTasks& v) {
    return std::string(v.lacks_memory ? "await memory: " : "await tasks: ") + v.shortage;
  }
  static std::string text_of(const BeginNext&) { return "begin next"; }
  static std::string text_of(const TakeCheckpoint& v) { return "take checkpoint at " + std::to_string(v.at.value); }
  static std::string text_of(const TakeLastCheckpoint&) { return "take last checkpoint"; }
  static std::string text_of(const EvaluateLast&) { return "evaluate last"; }
  static std::string text_of(const GiveUpAttempt& v) { return "give up attempt: " + v.why; }
  static std::string text_of(const Commit&) { return "commit"; }
  static std::string text_of(const Extend&) { return "extend"; }
  static std::string text_of(const WaitAgain&) { return "wait again"; }
  static std::string text_of(const PauseForPs& v) { return "pause for " + to_string(v.ps.task) + ": " + v.reason; }
  static std::string text_of(const PauseForWorkers& v) { return "pause for workers: " + v.reason; }
  static std::string text_of(const EndShortage& v) { return "end shortage: " + v.why; }
  static std::string text_of(const PauseForDisk& v) { return "pause for disk: " + v.reason; }
  static std::string text_of(const EndDiskPause& v) { return "end disk pause: " + v.why; }
  static std::string text_of(const Lose& v) {
    return "lose (" + name(v.loss) + ") " + to_string(v.worker.task) + ": " + v.why;
  }
  static std::string text_of(const EndWithout& v) {
    return "end (" + name(v.loss) + ") without " + to_string(v.worker.task);
  }
  static std::string text_of(const Reclaim&) { return "reclaim"; }
  static std::string text_of(const AwaitAgain& v) { return "await again " + to_string(v.worker.task); }
  static std::string text_of(const LeaveOut& v) { return "leave out " + to_string(v.worker.task) + ": " + v.why; }
  static std::string text_of(const KeepOut& v) { return "keep out " + to_string(v.worker) + ": " + v.why; }
  static std::string text_of(const LetIn& v) { return "let in " + to_string(v.worker); }
  static std::string text_of(const Join& v) { return "join " + to_string(v.worker.task); }
  static std::string text_of(const Refuse& v) { return "refuse " + to_string(v.worker.task) + ": " + v.why; }
  static std::string text_of(const AskAgain& v) { return "ask again " + to_string(v.worker.task) + ": " + v.why; }
  static std::string text_of(const DescribeWithout& v) {
    return "describe without" + names(v.workers) + ": " + v.error.message;
  }
  static std::string text_of(const StartWithout& v) {
    return "start without" + names(v.workers) + (v.is_process ? " (process): " : ": ") + v.error.message;
  }
  static std::string text_of(const StartAgainWithout& v) {
    return "start again (" + name(v.loss) + ") without " + to_string(v.worker.task) + ": " + v.why;
  }
  static std::string text_of(const EvaluateWithout& v) {
    return "evaluate without " + to_string(v.worker.task) + (v.error ? ": " + v.error->message : "");
  }
  static std::string text_of(const Suspect& v) { return "suspect " + to_string(v.from.task) + ": " + v.error.message; }
  static std::string text_of(const WaitForLinks& v) { return "wait for links to " + to_string(v.ps); }
  static std::string text_of(const GiveUpEvaluators& v) { return "give up evaluators: " + v.why; }
  static std::string text_of(const SetCheckpointAside& v) { return "set aside: " + v.damage; }
  static std::string text_of(const LeaveBehind&) { return "leave behind"; }
};

}  // namespace disttrain::chiefd
