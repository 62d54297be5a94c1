// The link between two tasks is broken, but both still reach the chief. These tests show which task loses its place,
// and for how long.
#include "tests/chiefd/core/recovery_fixture.h"

namespace disttrain::chiefd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class LinksTest : public RecoveryTest {
 protected:
  // A worker accuses a ps that it can't reach: at once when the channel breaks, and again and again while it stays
  // broken.
  void accuse(JobId job, TaskId from, TaskId to, Duration lasts) {
    say(from, Accusation{job, generation(job), to, "its host is down", lasts});
  }
  void withdraw(JobId job, TaskId from, TaskId to) {
    say(from, Accusation{job, generation(job), to, "", Duration::zero(), true});
  }
  void cut(TaskId from, TaskId to) { broken_links_.insert({from, to}); }
  void mend(TaskId from, TaskId to) { broken_links_.erase({from, to}); }
  // Cuts the link. Until the duration has passed, the worker accuses the ps once per second.
  void cut_for(JobId job, TaskId from, TaskId to, Duration duration) {
    cut(from, to);
    for (Duration lasts = seconds(1); lasts <= duration; lasts += seconds(1)) {
      pass(seconds(1));
      accuse(job, from, to, lasts);
    }
  }
  // A worker that was removed draws a new incarnation and says hello again.
  void begin_anew(TaskId task) { restart(task); }
  std::vector<Member> roster() const { return sent<SetRoster>(ps(0)).back().roster.members; }
  bool is_in_roster(TaskId task) {
    const std::vector<Member> members = roster();
    return std::find(members.begin(), members.end(), member(task)) != members.end();
  }
  std::size_t count_events(const std::string& kind) const {
    return static_cast<std::size_t>(std::count_if(journal_.events.begin(), journal_.events.end(),
                                                  [&kind](const EventRecord& event) { return event.kind == kind; }));
  }
};

TEST_F(LinksTest, WorkerThatCannotReachAPsIsRemovedWellBeforeTheStallTimeout) {
  const JobId job = train(job_config("a", Mode::kSync), 3);
  accuse(job, worker(0), ps(0), milliseconds(1200));
  EXPECT_TRUE(is_in_roster(worker(0))) << "a channel may be lost and back in no time";
  pass(seconds(2));
  accuse(job, worker(0), ps(0), milliseconds(3200));
  EXPECT_EQ(roster(), (std::vector<Member>{member(worker(1)), member(worker(2))}));
  EXPECT_TRUE(sent<CloseJob>(worker(0)).back().removed);
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(event("link_lost"),
            "worker/0 can't reach ps/0 (no answer for 3.2 s; its host is down): the worker is removed from the job "
            "until its link is back");
  EXPECT_EQ(event("worker_lost"), "no event of this kind") << "it isn't the worker that failed";
}

TEST_F(LinksTest, OneOfTwoWorkersIsRemovedAndTheOtherGoesOn) {
  const JobId job = train(job_config("a"), 2);
  accuse(job, worker(1), ps(0), seconds(4));
  EXPECT_EQ(roster(), std::vector<Member>{member(worker(0))});
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
}

TEST_F(LinksTest, LinkThatIsBackInTimeCostsNoPlace) {
  const JobId job = train(job_config("a"), 3);
  accuse(job, worker(0), ps(0), seconds(2));
  withdraw(job, worker(0), ps(0));
  pass(seconds(50));
  EXPECT_EQ(roster().size(), 3u);
  EXPECT_EQ(event("link_lost"), "no event of this kind");
}

TEST_F(LinksTest, RemovedWorkerIsBackSoonAfterItsLink) {
  const JobId job = train(job_config("a", Mode::kSync), 3);
  cut_for(job, worker(0), ps(0), seconds(4));
  begin_anew(worker(0));
  for (int i = 0; i < 90; ++i) {
    pass(seconds(1));
    ASSERT_FALSE(is_in_roster(worker(0))) << "in sync all would wait for it";
    report_pacer(static_cast<std::uint64_t>(i) + 10, 0);
  }
  EXPECT_NE(status(job).reason.find("worker/0 can't reach ps/0"), std::string::npos) << status(job).reason;
  mend(worker(0), ps(0));
  pass(seconds(10));
  EXPECT_TRUE(is_in_roster(worker(0)));
  EXPECT_EQ(status(job).reason, "trains with 3 workers");
  EXPECT_EQ(event("link_back").rfind("worker/0 reaches ps/0 again, after 9", 0), 0u) << event("link_back");
  EXPECT_EQ(count_events("link_lost"), 1u);
}

TEST_F(LinksTest, LinkThatComesAndGoesUsesUpNoRestarts) {
  JobConfig config = job_config("a", Mode::kSync);
  config.job.max_restarts = 1;
  const JobId job = train(config, 3);
  for (int i = 0; i < 20; ++i) {
    cut_for(job, worker(0), ps(0), seconds(3));
    ASSERT_FALSE(is_in_roster(worker(0))) << i;
    begin_anew(worker(0));
    mend(worker(0), ps(0));
    pass(seconds(15));
    report_pacer(static_cast<std::uint64_t>(i) + 1, 0);
    ASSERT_TRUE(is_in_roster(worker(0))) << i;
  }
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
}

TEST_F(LinksTest, LinkThatComesAndGoesIsTriedAgainAfterLongerAndLongerPauses) {
  const JobId job = train(job_config("a"), 3);
  for (int i = 0; i < 10; ++i) {
    accuse(job, worker(0), ps(0), seconds(3));
    report_pacer(static_cast<std::uint64_t>(i) + 1, 0);
    begin_anew(worker(0));
    for (int ticks = 0; !is_in_roster(worker(0)); ++ticks) {
      ASSERT_LT(ticks, 110) << "never more than ten seconds";
      pass(milliseconds(100));
    }
  }
  accuse(job, worker(0), ps(0), seconds(3));
  begin_anew(worker(0));
  pass(seconds(9));
  EXPECT_FALSE(is_in_roster(worker(0)));
}

TEST_F(LinksTest, JobWaitsForAPsThatMostWorkersCannotReach) {
  const JobId job = train(job_config("a"), 3);
  accuse(job, worker(0), ps(0), milliseconds(1100));
  accuse(job, worker(1), ps(0), milliseconds(3100));
  EXPECT_EQ(status(job).state, JobState::kPaused);
  EXPECT_NE(status(job).reason.find("2 of 3 workers can't reach ps/0"), std::string::npos) << status(job).reason;
  EXPECT_EQ(event("link_lost").rfind("2 of 3 workers can't reach ps/0", 0), 0u) << event("link_lost");
  EXPECT_EQ(roster().size(), 3u) << "nobody is removed";
  withdraw(job, worker(0), ps(0));
  pass(milliseconds(200));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(generation(job), Generation(1)) << "no step is lost";
}

TEST_F(LinksTest, JobGoesOnWithoutAPsThatMostWorkersCannotReachForLong) {
  JobConfig config = job_config("a");
  config.job.max_restarts = 0;
  const JobId job = train(config, 3);
  ASSERT_EQ(sent<CreateShards>(ps(0)).back().owners.front().ps, member(ps(0)));
  for (const TaskId w : {worker(0), worker(1), worker(2)}) cut(w, ps(0));
  for (int i = 3; i < 40; ++i) {
    pass(seconds(1));
    for (const TaskId w : {worker(0), worker(1), worker(2)}) accuse(job, w, ps(0), seconds(i));
    if (generation(job) > Generation(1)) break;
  }
  pass(seconds(20));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(generation(job), Generation(2));
  EXPECT_EQ(sent<CreateShards>(ps(1)).back().owners.front().ps, member(ps(1)));
  EXPECT_NE(event("rolls_back").find("can't reach ps/0"), std::string::npos) << event("rolls_back");
  EXPECT_EQ(event("loss_counted"), "no event of this kind");
}

class OnePsTest : public LinksTest {
 protected:
  JobId train_on_one_ps(const JobConfig& config, std::uint32_t workers) {
    start_chief(1, workers);
    hello_all();
    const JobId job = submit(config);
    EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
    return job;
  }
};

TEST_F(OnePsTest, OnlyWorkerWithoutItsPsWaitsAndGoesOnWithItsLink) {
  const JobId job = train_on_one_ps(job_config("a"), 1);
  report_pacer(30, 0);
  cut(worker(0), ps(0));
  for (int i = 1; i < 60; ++i) {
    pass(seconds(1));
    accuse(job, worker(0), ps(0), seconds(i));
    ASSERT_EQ(status(job).state, i < 3 ? JobState::kRunning : JobState::kPaused) << status(job).reason;
    ASSERT_EQ(status(job).root_cause, std::nullopt);
  }
  mend(worker(0), ps(0));
  pacer_ = PacerReport();
  pass(seconds(10));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
}

TEST_F(OnePsTest, OnlyPsThatNobodyReachesFailsTheJobInTheEndForItsLinks) {
  JobConfig config = job_config("a");
  config.job.ps_timeout = seconds(120);
  const JobId job = train_on_one_ps(config, 2);
  cut(worker(0), ps(0));
  cut(worker(1), ps(0));
  for (int i = 1; i < 300; ++i) {
    pass(seconds(1));
    for (const TaskId w : {worker(0), worker(1)}) accuse(job, w, ps(0), seconds(i));
  }
  EXPECT_EQ(status(job).state, JobState::kFailed);
  EXPECT_NE(status(job).reason.find("can't reach ps/0"), std::string::npos) << status(job).reason;
  EXPECT_EQ(status(job).root_cause, std::nullopt) << "both ends are well";
}

// The job can't replace its only ps, so it goes on with the workers that still reach this ps.
TEST_F(OnePsTest, WorkersThatReachTheOnlyPsGoOnWithoutMostOfTheOthers) {
  const JobId job = train_on_one_ps(job_config("a"), 3);
  for (const TaskId w : {worker(0), worker(1)}) cut(w, ps(0));
  for (int i = 1; i < 60; ++i) {
    pass(seconds(1));
    if (generation(job) == Generation(1))
      for (const TaskId w : {worker(0), worker(1)}) accuse(job, w, ps(0), seconds(i));
  }
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(roster(), std::vector<Member>{member(worker(2))});
  report_pacer(1, 0);
  for (const TaskId w : {worker(0), worker(1)}) mend(w, ps(0));
  pass(seconds(10));
  EXPECT_EQ(roster().size(), 3u);
}

TEST_F(LinksTest, WorkerThatReachesNoPsIsRemoved) {
  JobConfig config = job_config("a", Mode::kSync);
  config.job.shards = 2;
  const JobId job = train(config, 3);
  accuse(job, worker(2), ps(0), seconds(2));
  accuse(job, worker(2), ps(1), seconds(3));
  EXPECT_EQ(roster(), (std::vector<Member>{member(worker(0)), member(worker(1))}));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
}

TEST_F(LinksTest, WorkerThatCannotOpenItsChannelsIsLeftOutOfTheStart) {
  start_chief(2, 3);
  hello_all();
  cut(worker(1), ps(0));
  obedient_ = false;
  const JobId job = submit(job_config("a"));
  say(worker(0), JobDescribed{job, model_, records_, 0});
  say(ps(0), ShardsCreated{job, generation(job)});
  for (const TaskId w : {worker(0), worker(2)}) say(w, JobOpened{job, generation(job)});
  obedient_ = true;
  accuse(job, worker(1), ps(0), seconds(3));
  pass(seconds(5));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(roster(), (std::vector<Member>{member(worker(0)), member(worker(2))}));
  mend(worker(1), ps(0));
  pass(seconds(10));
  EXPECT_EQ(roster().size(), 3u);
}

TEST_F(LinksTest, JoinerThatCannotReachAPsIsNotWaitedForNorBlamed) {
  const JobId job = train(job_config("a", Mode::kSync), 2);
  kill(worker(1));
  cut(worker(1), ps(0));
  restart(worker(1));
  const std::size_t before = sent<DescribeJob>(worker(1)).size();
  pass(seconds(50));
  EXPECT_EQ(roster().size(), 1u);
  EXPECT_EQ(count_events("link_lost"), 1u) << "told once";
  EXPECT_EQ(event("link_lost"),
            "worker/1 can't reach ps/0 (no answer): the worker stays out of the job until its link is back");
  EXPECT_LT(sent<DescribeJob>(worker(1)).size(), before + 30) << "asked with pauses";
  report_pacer(1, 0);
  mend(worker(1), ps(0));
  pass(seconds(10));
  EXPECT_EQ(roster().size(), 2u);
  EXPECT_EQ(status(job).state, JobState::kRunning);
}

// The chief's roster with the worker hasn't reached ps/0, so ps/0 refuses the worker, which gives up after a while.
TEST_F(LinksTest, JoinerThatAPsRefusesIsNotBlamedAndJoinsLater) {
  const JobId job = train(job_config("a"), 2);
  kill(worker(1));
  obedient_ = false;
  restart(worker(1));
  say(worker(1), JobDescribed{job, model_, records_, 0});
  ASSERT_EQ(sent<OpenJob>(worker(1)).size(), 2u);
  const std::size_t lost = count_events("worker_lost");
  say(worker(1), TaskFailed{job, generation(job), ErrorCode::kUnavailable, "can't open a channel to shard 0 at ps/0"});
  EXPECT_EQ(count_events("worker_lost"), lost);
  EXPECT_EQ(event("worker_refused"), "worker/1 can't take part: can't open a channel to shard 0 at ps/0");
  EXPECT_EQ(roster(), std::vector<Member>{member(worker(0))});
  obedient_ = true;
  restart(worker(1));
  pass(seconds(10));
  EXPECT_EQ(roster().size(), 2u);
  EXPECT_EQ(status(job).state, JobState::kRunning);
}

// The process runs on another host than the one where the cluster file lists ps/0. So no task reaches it.
TEST_F(LinksTest, PsThatIsNotAtItsAddressLosesItsPlace) {
  const JobId job = train(job_config("a"), 2);
  accuse(job, ps(0), ps(0), seconds(1));
  step(ProbeDone{member(ps(0)), ProbeOutcome::kAnswered, member(ps(0))});
  step(ProbeDone{member(ps(0)), ProbeOutcome::kRefused});
  EXPECT_EQ(status(job).state, JobState::kRunning) << "it doesn't complain any more";
  accuse(job, ps(0), ps(0), seconds(2));
  step(ProbeDone{member(ps(0)), ProbeOutcome::kRefused});
  EXPECT_EQ(status(job).state, JobState::kPaused);
  EXPECT_NE(event("task_lost").find("it runs, but nobody listens at"), std::string::npos) << event("task_lost");
  task_refused_.reset();
  hello(ps(0), 88);
  ASSERT_TRUE(task_refused_) << "the same process";
  EXPECT_EQ(task_refused_->code, ErrorCode::kTemporary);
  EXPECT_TRUE(task_refused_->ends);
  pid_of_[ps(0)] = 77;
  restart(ps(0));
  pass(seconds(10));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
}

// The accusations are about a generation that an earlier chief began. This chief doesn't continue that generation, so
// it ignores them.
TEST_F(LinksTest, AccusationsBeforeTheShardsAreMadeSayNothing) {
  start_chief(2, 2);
  hello_all();
  JobConfig config = with_checkpoints();
  config.job.shards = 3;
  folder_is_held_ = true;
  const JobId job = submit(config);
  for (const TaskId w : {worker(0), worker(1)}) accuse(job, w, ps(1), Duration::zero());
  release_folder();
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
}

// The connection between two ps tasks broke, and then the job rolls back for another reason.
TEST_F(LinksTest, PsTasksThatLostEachOtherMeetAgainInTheNextGeneration) {
  JobConfig config = job_config("a", Mode::kSync);
  config.job.shards = 3;
  config.job.on_worker_loss = OnWorkerLoss::kWait;
  const JobId job = train(config, 2);
  say(ps(0), TaskFailed{job, generation(job), ErrorCode::kUnavailable, "shard 0 lost shard 1"});
  accuse(job, ps(1), ps(0), Duration::zero());
  pass(seconds(10));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(generation(job), Generation(2));
}

TEST_F(LinksTest, EvaluatorThatCannotReachAPsIsReplaced) {
  JobConfig config = job_config("a");
  config.evaluate.files = "t10k";
  evaluation_records_ = 10;
  const JobId job = train(config, 2);
  lend_all(job);
  report_pacer(100, 1);
  for (const TaskId w : {worker(0), worker(1)}) finish(job, w);
  ASSERT_EQ(status(job).state, JobState::kEvaluating);
  ASSERT_EQ(sent<Evaluate>(worker(0)).size(), 1u);
  accuse(job, worker(0), ps(0), seconds(4));
  EXPECT_EQ(sent<Evaluate>(worker(1)).size(), 1u);
  EXPECT_EQ(status(job).state, JobState::kEvaluating) << status(job).reason;
}

TEST_F(LinksTest, RankThatWaitsForItsWorkerNamesTheLink) {
  JobConfig config = job_config("a", Mode::kSync);
  config.job.on_worker_loss = OnWorkerLoss::kWait;
  const JobId job = train(config, 3);
  cut_for(job, worker(1), ps(0), seconds(4));
  EXPECT_EQ(status(job).state, JobState::kPaused);
  EXPECT_NE(status(job).reason.find("worker/1 can't reach ps/0"), std::string::npos) << status(job).reason;
  begin_anew(worker(1));
  pass(seconds(30));
  EXPECT_EQ(status(job).state, JobState::kPaused);
  mend(worker(1), ps(0));
  pass(seconds(10));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(roster().size(), 3u);
}

TEST_F(LinksTest, JobWaitsForASilentPsWhoeverAccusesIt) {
  const JobId job = train(job_config("a"), 3);
  silence(ps(0));
  pass(seconds(2));
  ASSERT_EQ(status(job).state, JobState::kPaused);
  accuse(job, worker(0), ps(0), seconds(4));
  EXPECT_EQ(roster().size(), 3u);
  hear_again(ps(0));
  pass(milliseconds(200));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
}

TEST_F(LinksTest, StallWithALinkAwayBlamesTheLink) {
  JobConfig config = job_config("a");
  config.job.stall_timeout = seconds(10);
  const JobId job = train(config, 3);
  for (int i = 0; i < 12; ++i) {
    accuse(job, worker(0), ps(0), seconds(2));  // never long enough at a time
    pass(seconds(1));
  }
  EXPECT_EQ(status(job).state, JobState::kFailed);
  EXPECT_EQ(status(job).root_cause, std::nullopt);
  EXPECT_NE(status(job).reason.find("worker/0 can't reach ps/0"), std::string::npos) << status(job).reason;
}

TEST_F(LinksTest, WorkerThatAloneWaitsForAShardLeavesTheRoster) {
  const JobId job = train(job_config("a"), 3);
  say(worker(1), TaskFailed{job, generation(job), ErrorCode::kUnavailable, "waited 120 s for shard 0"});
  pass(seconds(2));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(roster().size(), 2u);
}

TEST_F(LinksTest, NewChiefCountsNoLinkAsALoss) {
  JobConfig config = job_config("a");
  config.job.max_restarts = 0;
  const JobId job = train(config, 3);
  accuse(job, worker(0), ps(0), seconds(4));
  begin_anew(worker(0));
  pass(seconds(5));
  restart_chief();
  for (const TaskId task : {ps(0), ps(1), worker(0), worker(1), worker(2)}) hello_again(task);
  pass(seconds(5));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(roster().size(), 3u);
}

// ---- between shards

TEST_F(LinksTest, PsThatLosesItsPacerCostsARollbackButBlamesNobody) {
  JobConfig config = job_config("a", Mode::kSync);
  config.job.shards = 2;
  config.job.max_restarts = 0;
  const JobId job = train(config, 2);
  report_pacer(30, 0);
  accuse(job, ps(1), ps(0), seconds(1));
  say(ps(1), TaskFailed{job, generation(job), ErrorCode::kUnavailable, "shard 1 lost shard 0"});
  pacer_ = PacerReport();
  pass(seconds(3));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  EXPECT_EQ(generation(job), Generation(2));
  EXPECT_NE(event("rolls_back").find("ps/1 can't reach ps/0"), std::string::npos) << event("rolls_back");
  EXPECT_EQ(event("loss_counted"), "no event of this kind");
}

TEST_F(LinksTest, JobGoesOnWithoutAPsThatCannotReachThePacer) {
  start_chief(2, 2);
  hello_all();
  JobConfig config = job_config("a", Mode::kSync);
  config.job.shards = 2;
  config.job.max_restarts = 0;
  obedient_ = false;
  const JobId job = submit(config);
  say(worker(0), JobDescribed{job, model_, records_, 0});
  say(ps(0), ShardsCreated{job, generation(job)});
  obedient_ = true;
  accuse(job, ps(1), ps(0), seconds(3));
  pass(seconds(10));
  EXPECT_EQ(status(job).state, JobState::kRunning) << status(job).reason;
  const CreateShards create = sent<CreateShards>(ps(0)).back();
  for (const Owner& owner : create.owners) EXPECT_EQ(owner.ps, member(ps(0)));
}

}  // namespace
}  // namespace disttrain::chiefd
