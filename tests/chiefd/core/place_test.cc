// Several processes claim the place of one task (I29).
#include "tests/chiefd/core/cluster_fixture.h"

namespace disttrain::chiefd {
namespace {

using std::chrono::seconds;

class PlaceTest : public ClusterTest {
 protected:
  void begin() {
    config_.allow_unlisted_workers = true;
    start_chief(1, 1);
    hello(ps(0), 1);
  }
  Member process(std::uint64_t incarnation) { return Member{ps(0), Incarnation(incarnation)}; }
  // A process claims the place of ps/0. Returns the refusal, or nullopt if the process gets the place.
  std::optional<Refused> claim(std::uint64_t incarnation) {
    TaskHello hello = hello_of(ps(0));
    hello.member = process(incarnation);
    hello.pid = static_cast<std::uint32_t>(incarnation);
    task_refused_.reset();
    step(TaskJoined{hello});
    return task_refused_;
  }
  void probe_is_answered_by(std::uint64_t incarnation) {
    step(ProbeDone{probes().back().member, ProbeOutcome::kAnswered, process(incarnation)});
  }
  TaskStatus place() {
    for (const TaskStatus& status : cluster_->tasks(now_))
      if (status.task == ps(0)) return status;
    return {};
  }
  // The second process lives at the address in the cluster file, and the first one lives elsewhere. The second process
  // gets the place.
  void displace_the_first() {
    begin();
    EXPECT_TRUE(claim(2));
    probe_is_answered_by(2);
    EXPECT_FALSE(claim(2));
  }
  // The first process, which has lost the place, says hello twice. In between, the second process answers the probe.
  // Returns the last refusal.
  std::optional<Refused> first_calls_twice_as(std::uint64_t incarnation) {
    TaskHello hello = hello_of(ps(0));
    hello.member = process(incarnation);
    for (int i = 0; i < 2; ++i) {
      task_refused_.reset();
      step(TaskJoined{hello});
      probe_is_answered_by(2);
    }
    return task_refused_;
  }
};

// The holder answers, and ends. The answer says nothing about the claim of its successor, which came meanwhile.
TEST_F(PlaceTest, AnswerToAProbeForAnEarlierClaimRefusesNobodyForGood) {
  begin();
  ASSERT_TRUE(claim(2));
  ASSERT_TRUE(claim(3));
  probe_is_answered_by(1);
  auto refused = claim(3);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code, ErrorCode::kTemporary);
  EXPECT_FALSE(refused->ends);
  ASSERT_EQ(probes().size(), 2u) << "the next probe is for this claim";
  probe_is_answered_by(1);
  refused = claim(3);
  ASSERT_TRUE(refused);
  EXPECT_TRUE(refused->ends);
}

TEST_F(PlaceTest, IsKeptByTheProcessThatAnswersItsProbe) {
  begin();
  auto refused = claim(2);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code, ErrorCode::kTemporary);
  EXPECT_FALSE(refused->ends) << "it may be a successor";
  ASSERT_EQ(probes().size(), 1u);
  EXPECT_EQ(probes()[0].member, process(1));
  probe_is_answered_by(1);
  refused = claim(2);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code, ErrorCode::kConfig);
  EXPECT_TRUE(refused->ends);
  EXPECT_NE(refused->reason.find("ps/0 is taken by process 1000 on host, which answers at host:7110"),
            std::string::npos)
      << refused->reason;
  EXPECT_EQ(place().state, TaskState::kReady);
  EXPECT_EQ(place().losses.replaced, 0u);
}

TEST_F(PlaceTest, IsNotKeptByAnAnswerFromBeforeTheClaimNorByOneThatHasGoneSince) {
  begin();
  step(ConnectionLost{process(1), "reset"});
  // The first process connects again a moment later, while the probe is under way.
  hello(ps(0), 1);
  ASSERT_EQ(probes().size(), 1u);
  EXPECT_TRUE(claim(2));
  probe_is_answered_by(1);
  EXPECT_EQ(claim(2)->code, ErrorCode::kTemporary) << "that may have been before the claim";
  EXPECT_EQ(probes().size(), 2u);
  probe_is_answered_by(1);
  step(ConnectionLost{process(1), "reset"});
  EXPECT_EQ(claim(2)->code, ErrorCode::kTemporary) << "it has died since, it seems";
  step(ProbeDone{process(1), ProbeOutcome::kRefused});
  EXPECT_FALSE(claim(2));
}

TEST_F(PlaceTest, GoesToTheProcessThatLivesAtItsAddress) {
  begin();
  EXPECT_TRUE(claim(2));
  probe_is_answered_by(2);
  EXPECT_EQ(place().losses.replaced, 1u);
  EXPECT_FALSE(claim(2));
  EXPECT_EQ(place().pid, 2u);
}

TEST_F(PlaceTest, IsKeptWhileItsProcessIsHeardWhateverBecomesOfTheProbe) {
  begin();
  for (const ProbeOutcome outcome : {ProbeOutcome::kNoAnswer, ProbeOutcome::kRefused}) {
    EXPECT_TRUE(claim(2));
    step(ProbeDone{process(1), outcome});
    EXPECT_EQ(claim(2)->code, ErrorCode::kTemporary);
    EXPECT_EQ(place().losses.replaced, 0u);
    step(ProbeDone{process(1), ProbeOutcome::kNoAnswer});
  }
}

TEST_F(PlaceTest, OfASilentProcessThatDoesNotAnswerGoesToTheClaim) {
  begin();
  silence(ps(0));
  pass(seconds(2));
  step(ProbeDone{process(1), ProbeOutcome::kNoAnswer});
  EXPECT_EQ(place().state, TaskState::kSilent) << "nobody claims it";
  EXPECT_TRUE(claim(2));
  step(ProbeDone{process(1), ProbeOutcome::kNoAnswer});
  EXPECT_FALSE(claim(2));
}

TEST_F(PlaceTest, OfAProcessThatWasToldToEndIsWorthWaitingFor) {
  begin();
  JobConfig config = job_config("a");
  config.checkpoint.directory = "/c";
  const JobId job = submit(config);
  hello(worker(0));
  ASSERT_EQ(status(job).state, JobState::kRunning);
  obedient_ = false;  // ps/0 must wait for a checkpoint before it may leave, and this one takes long
  say(ps(0), LeaveRequest{});
  ASSERT_TRUE(claim(2));
  probe_is_answered_by(1);
  const auto refused = claim(2);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code, ErrorCode::kTemporary);
  EXPECT_FALSE(refused->ends);
}

TEST_F(PlaceTest, ProcessThatWasDisplacedWhileItWasAwayEndsToBeStartedAgain) {
  displace_the_first();
  const auto refused = first_calls_twice_as(1);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code, ErrorCode::kTemporary);
  EXPECT_TRUE(refused->ends);
}

// A process that is ordered to leave its job draws a new incarnation. The chief must still recognize the displaced
// process.
TEST_F(PlaceTest, DisplacedProcessIsKnownThoughItBeginsAnew) {
  displace_the_first();
  const auto refused = first_calls_twice_as(3);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code, ErrorCode::kTemporary);
  EXPECT_TRUE(refused->ends);
}

TEST_F(PlaceTest, IsKeptForTheProcessAtItsAddressThoughTheDisplacedOneBeginsAnew) {
  begin();
  pass(std::chrono::milliseconds(100));
  EXPECT_TRUE(claim(2));
  probe_is_answered_by(2);
  TaskHello anew = hello_of(ps(0));  // of the first process
  anew.member = process(3);
  task_refused_.reset();
  step(TaskJoined{anew});
  ASSERT_TRUE(task_refused_);
  EXPECT_TRUE(task_refused_->ends);
  EXPECT_FALSE(claim(2));
}

// If the displaced process got the place again, the two processes would take it from each other for ever.
TEST_F(PlaceTest, IsKeptForTheProcessAtItsAddressThoughTheDisplacedOneCallsFirst) {
  begin();
  pass(std::chrono::milliseconds(100));
  EXPECT_TRUE(claim(2));
  probe_is_answered_by(2);
  const auto refused = claim(1);
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->code, ErrorCode::kTemporary);
  EXPECT_TRUE(refused->ends);
  EXPECT_FALSE(claim(2));
  EXPECT_EQ(place().pid, 2u);
}

TEST_F(PlaceTest, IsFreeAgainIfTheProcessAtItsAddressNeverComes) {
  begin();
  EXPECT_TRUE(claim(2));
  probe_is_answered_by(2);
  pass(seconds(5));
  EXPECT_FALSE(claim(1));
}

// A hello may arrive after its process has died.
TEST_F(PlaceTest, GivenToALateHelloOfADeadProcessGoesBackToTheLivingOne) {
  start_chief(1, 1);
  EXPECT_FALSE(claim(1)) << "of a dead process";
  EXPECT_TRUE(claim(2));
  probe_is_answered_by(2);
  EXPECT_FALSE(claim(2));
}

TEST_F(PlaceTest, AnotherTaskThatAnswersProvesNothing) {
  begin();
  EXPECT_TRUE(claim(2));
  step(ProbeDone{process(1), ProbeOutcome::kAnswered, Member{worker(0), Incarnation(2)}});
  EXPECT_EQ(claim(2)->code, ErrorCode::kTemporary);
  EXPECT_EQ(place().losses.replaced, 0u);
}

TEST_F(PlaceTest, ListedTasksAreDialledWhereTheFileListsThem) {
  start_chief(1, 1);
  TaskHello hello = hello_of(ps(0));
  hello.member = process(1);
  hello.address = "203.0.113.9:22";
  step(TaskJoined{hello, "127.0.0.1"});
  EXPECT_EQ(place().address, "host:7110");
  step(ConnectionLost{process(1), "reset"});
  ASSERT_FALSE(probes().empty());
  EXPECT_EQ(probes().back().address, "host:7110");
}

TEST_F(PlaceTest, UnlistedWorkersAreDialledWhereTheyCallFrom) {
  config_.allow_unlisted_workers = true;
  start_chief(1, 1);
  TaskHello hello;
  hello.member = Member{worker(7), Incarnation(1)};
  hello.address = "203.0.113.9:22";
  step(TaskJoined{hello, "10.0.0.2"});
  step(ConnectionLost{hello.member, "reset"});
  ASSERT_FALSE(probes().empty());
  EXPECT_EQ(probes().back().address, "10.0.0.2:22");
}

}  // namespace
}  // namespace disttrain::chiefd
