// The chief's term, and the tasks that it accepts, hears and counts, whichever job they work for.
#include "tests/chiefd/core/cluster_fixture.h"

namespace disttrain::chiefd {
namespace {

using std::chrono::seconds;

TEST_F(ClusterTest, TermIsDurableBeforeAnyoneIsHeard) {
  disk_is_held_ = true;
  start_chief(1, 1);
  EXPECT_EQ(listens_, 0);
  release_disk();
  EXPECT_EQ(listens_, 1);
  EXPECT_EQ(cluster_->term(), Term(1));
  restart_chief();
  EXPECT_EQ(cluster_->term(), Term(2));
}

TEST_F(ClusterTest, UnlistedTaskIsRefusedWithASentence) {
  start_chief(1, 1);
  TaskHello hello;
  hello.member = Member{worker(3), Incarnation(9)};
  step(TaskJoined{hello});
  ASSERT_TRUE(task_refused_);
  EXPECT_EQ(task_refused_->code, ErrorCode::kConfig);
  EXPECT_NE(task_refused_->reason.find("worker/3"), std::string::npos);
}

// A task may obey a newer chief if an operator replaced this chief's folder by an old copy, or if a second chief runs
// on a copy of the folder.
TEST_F(ClusterTest, TaskThatObeysANewerChiefOfTheJournalIsTurnedAwayAndSaidSo) {
  start_chief(1, 1);
  ASSERT_EQ(cluster_->term(), Term(1));
  const auto answer = [this](JournalId journal, Term term, Incarnation chief) {
    TaskHello hello = hello_of(worker(0));
    hello.journal = journal;
    hello.term = term;
    hello.chief = chief;
    task_refused_.reset();
    step(TaskJoined{hello});
    return task_refused_;
  };
  const auto is_ready = [this] {
    for (const TaskStatus& status : cluster_->tasks(now_))
      if (status.task == worker(0)) return status.state == TaskState::kReady;
    return false;
  };
  const JournalId ours(7);
  for (const auto& [term, chief] : {std::pair{Term(2), Incarnation(70)}, std::pair{Term(1), Incarnation(71)}}) {
    const auto refused = answer(ours, term, chief);
    ASSERT_TRUE(refused);
    EXPECT_EQ(refused->code, ErrorCode::kTemporary);
    EXPECT_FALSE(refused->ends) << "the right chief may come to this address";
    EXPECT_NE(refused->reason.find("this chief's state directory is an old copy"), std::string::npos)
        << refused->reason;
    EXPECT_FALSE(is_ready());
  }
  EXPECT_FALSE(answer(ours, Term(1), Incarnation(70)));
  EXPECT_TRUE(is_ready());
  restart_chief();
  EXPECT_FALSE(answer(ours, Term(1), Incarnation(70))) << "this chief goes on with that one's journal";
  restart_chief();
  EXPECT_FALSE(answer(JournalId(8), Term(9), Incarnation(1))) << "terms of another journal say nothing";
}

TEST_F(ClusterTest, TasksOfALargeClusterSendHeartbeatsLessOften) {
  config_.allow_unlisted_workers = true;
  start_chief(1, 249);
  hello(ps(0));
  say(ps(0), heartbeats_[ps(0)]);
  const auto pause = [this] { return sent<HeartbeatAnswer>(ps(0)).back().heartbeat_pause; };
  EXPECT_EQ(pause(), config_.heartbeat.timeout / 8) << "250 tasks, 2,000 heartbeats per timeout";
  for (std::uint32_t i = 249; i < 600; ++i) hello(worker(i));
  say(ps(0), heartbeats_[ps(0)]);
  EXPECT_EQ(pause(), config_.heartbeat.timeout / 4) << "600 tasks, but four heartbeats per timeout";
}

TEST_F(ClusterTest, TasksOfASmallClusterSendTenHeartbeatsPerTimeout) {
  start_chief(1, 2);
  hello(ps(0));
  say(ps(0), heartbeats_[ps(0)]);
  EXPECT_EQ(sent<HeartbeatAnswer>(ps(0)).back().heartbeat_pause, config_.heartbeat.timeout / 10);
}

TEST_F(TrainingTest, LostProcessesAreCountedByHowTheyWent) {
  start_chief(2, 2);
  hello_all();
  const auto losses = [this](TaskId task) {
    for (const TaskStatus& status : cluster_->tasks(now_))
      if (status.task == task) return status.losses;
    return Losses();
  };
  kill(worker(0));
  EXPECT_EQ(losses(worker(0)).left, 1u);
  hello(worker(0));
  EXPECT_EQ(status(submit(job_config("a"))).state, JobState::kRunning);
  pass(seconds(1));
  kill(worker(0));
  EXPECT_EQ(losses(worker(0)).crash, 1u);
  restart(ps(1));
  EXPECT_EQ(losses(ps(1)).replaced, 1u);
  silence(ps(0));
  pass(seconds(2));
  step(ProbeDone{member(ps(0)), ProbeOutcome::kRefused});
  EXPECT_EQ(losses(ps(0)).silent, 1u);
  EXPECT_EQ(losses(ps(0)).crash + losses(ps(0)).left + losses(ps(0)).replaced, 0u);
}

}  // namespace
}  // namespace disttrain::chiefd
