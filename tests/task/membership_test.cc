#include "task/membership.h"

#include <gmock/gmock.h>

#include <optional>

#include "tests/transport/fake_chief.h"
#include "transport/memory/transport.h"

namespace disttrain::task {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using testing::HasSubstr;
using transport::FakeChief;

daemon::Startup startup_of(TaskId task) {
  daemon::Startup startup;
  startup.task = task;
  startup.incarnation = Incarnation(5);
  startup.address = "here:1";
  startup.metrics_address = "here:2";
  startup.cluster.name = "one";
  startup.cluster.hash = 77;
  startup.cluster.chief.address = "memory:chief";
  startup.cluster.heartbeat.timeout = milliseconds(100);
  return startup;
}

class MembershipTest : public testing::Test {
 protected:
  MembershipTest()
      : startup_(startup_of({Role::kWorker, 1})),
        log_(startup_.task, startup_.cluster.log),
        requests_({"PauseJob", "LeaveGranted"}),
        transport_(network_) {
    membership_.emplace(loop_, transport_, log_, startup_, requests_,
                        Handlers{.make_hello =
                                     [this] {
                                       TaskHello hello;
                                       hello.job = JobId(others_ == 0 ? 3 : 0);
                                       return hello;
                                     },
                                 .make_heartbeat =
                                     [this] {
                                       Heartbeat beat;
                                       beat.steps = 12;
                                       beat.work = work_left_ > 0 ? kWork - --work_left_ : kWork;
                                       return beat;
                                     },
                                 .before_heartbeat = [this] { ++beats_due_; },
                                 .on_order = [this](const wire::ControlMessage& order) { orders_.push_back(order); },
                                 .on_other_journal = [this] { ++others_; },
                                 .on_registered = [this] { ++registered_; },
                                 .on_away = [this] { ++away_; },
                                 .on_refused = [this](const Error& why) { refused_ = why.message; },
                                 .without_chief = [] { return std::string("training goes on"); },
                                 .end = [this] { has_ended_ = true; }});
  }

  bool until(const std::function<bool()>& done) {
    const auto end = steady_clock::now() + std::chrono::seconds(10);
    while (!done()) {
      if (steady_clock::now() > end) return false;
      loop_.restart();
      loop_.run_one_for(milliseconds(10));
    }
    return true;
  }
  void join() {
    chief_.emplace(loop_, transport_);
    membership_->open();
    ASSERT_TRUE(until([this] { return registered_ == 1; }));
  }
  template <typename Message>
  bool chief_hears(std::size_t times = 1) {
    return until([this, times] { return chief_->count<Message>() >= times; });
  }
  const TaskHello& said() const { return std::get<TaskHello>(chief_->hello.who); }

  asio::io_context loop_;
  daemon::Startup startup_;
  daemon::Log log_;
  metrics::RpcBook requests_;
  transport::MemoryNetwork network_;
  transport::MemoryTransport transport_;
  std::optional<FakeChief> chief_;
  int registered_ = 0;
  int away_ = 0;
  int beats_due_ = 0;
  int others_ = 0;  // how often a chief with another journal has welcomed the task
  std::vector<wire::ControlMessage> orders_;
  std::string refused_;
  bool has_ended_ = false;
  static constexpr std::uint64_t kWork = 100;
  std::uint64_t work_left_ = 0;  // pieces of work; each heartbeat reports one of them as done
  std::optional<Membership> membership_;
};

TEST_F(MembershipTest, PiecesOfATraceWaitForTheChiefAndTellTheClock) {
  membership_->open();
  membership_->tell_trace({.job = JobId(2), .generation = Generation(1), .piece = 0});
  membership_->tell_trace(
      {.job = JobId(3), .generation = Generation(1), .piece = 0});  // of another trace, which replaces the first
  membership_->tell_trace({.job = JobId(3), .generation = Generation(1), .piece = 1, .last = true});
  chief_.emplace(loop_, transport_);
  ASSERT_TRUE(chief_hears<TraceEvents>(2));
  ASSERT_TRUE(chief_hears<Heartbeat>(3));
  membership_->tell_trace({.job = JobId(4), .generation = Generation(1), .piece = 0, .last = true});
  ASSERT_TRUE(chief_hears<TraceEvents>(3));
  std::vector<TraceEvents> pieces;
  for (const auto& message : chief_->heard)
    if (const auto* piece = std::get_if<TraceEvents>(&message)) pieces.push_back(*piece);
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(pieces[0].job, JobId(3));
  EXPECT_EQ(pieces[0].piece, 0u);
  EXPECT_EQ(pieces[1].piece, 1u);
  EXPECT_EQ(pieces[2].job, JobId(4));
  ASSERT_TRUE(pieces[2].clock);
  EXPECT_EQ(pieces[2].clock->offset, Duration::zero()) << "the chief of the test reads the same clock";
}

TEST_F(MembershipTest, SaysWhoItIsAndWhatItHolds) {
  join();
  EXPECT_EQ(chief_->hello.cluster, "one");
  EXPECT_EQ(chief_->hello.cluster_hash, 77u);
  EXPECT_EQ(said().member, (Member{TaskId{Role::kWorker, 1}, Incarnation(5)}));
  EXPECT_EQ(said().address, "here:1");
  EXPECT_EQ(said().metrics, "here:2");
  EXPECT_EQ(said().job, JobId(3));
}

TEST_F(MembershipTest, BeatsAndPassesItsLogLinesOn) {
  log_.info("before anybody listened");
  join();
  ASSERT_TRUE(chief_hears<Heartbeat>(3));
  ASSERT_TRUE(chief_hears<LogLines>());
  const std::size_t lines = chief_->count<LogLines>();
  log_.info("a line");
  ASSERT_TRUE(chief_hears<LogLines>(lines + 1));
}

TEST_F(MembershipTest, HeartbeatsAreDueWithoutAChiefToo) {
  membership_->open();
  EXPECT_TRUE(until([this] { return beats_due_ >= 3; }));
}

TEST_F(MembershipTest, IsToldWhenNoChiefIsThereAnyMore) {
  join();
  EXPECT_EQ(away_, 0);
  chief_.reset();
  EXPECT_TRUE(until([this] { return away_ == 1; }));
}

TEST_F(MembershipTest, HandsOrdersOn) {
  join();
  ASSERT_TRUE(chief_->link->send(PauseJob{JobId(3), Generation(1), true, "a ps is silent"}));
  ASSERT_TRUE(until([this] { return orders_.size() == 1; }));
  EXPECT_TRUE(std::holds_alternative<PauseJob>(orders_[0]));
}

TEST_F(MembershipTest, IsAnotherIncarnationWhenItRejoins) {
  join();
  membership_->rejoin();
  ASSERT_TRUE(until([this] { return registered_ == 2; }));
  EXPECT_NE(said().member.incarnation, Incarnation(5));
  EXPECT_EQ(said().member, membership_->self());
}

// The task has named its job in the hello, so the chief believes that the task has it. To correct this, the task
// rejoins with a new incarnation.
TEST_F(MembershipTest, RejoinsWhenItHasDroppedItsJobForAChiefThatDoesNotKnowIt) {
  join();
  chief_->answer = FakeChief::welcome_of(Term(1), JournalId(8));
  chief_->link.reset();
  ASSERT_TRUE(until([this] { return registered_ == 2; }));
  EXPECT_EQ(others_, 1);
  EXPECT_EQ(chief_->hellos, 3);
  EXPECT_NE(said().member.incarnation, Incarnation(5));
  EXPECT_EQ(said().job, JobId(0));
}

TEST_F(MembershipTest, RefusalIsTheTasksToTell) {
  chief_.emplace(loop_, transport_);
  chief_->answer = Refused{ErrorCode::kConfig, "of another cluster"};
  membership_->open();
  ASSERT_TRUE(until([this] { return !refused_.empty(); }));
  EXPECT_THAT(refused_, HasSubstr("of another cluster"));
}

// ---- its end

TEST_F(MembershipTest, LeavesWhenTheChiefLetsItGo) {
  join();
  membership_->leave(hours(1), "its step");
  ASSERT_TRUE(chief_hears<LeaveRequest>());
  EXPECT_FALSE(has_ended_);
  ASSERT_TRUE(chief_->link->send(LeaveGranted{}));
  EXPECT_TRUE(until([this] { return has_ended_; }));
}

TEST_F(MembershipTest, DoesNotLeaveUnasked) {
  join();
  ASSERT_TRUE(chief_->link->send(LeaveGranted{}));
  ASSERT_TRUE(chief_->link->send(PauseJob{JobId(3), Generation(1), true, "comes after it"}));
  ASSERT_TRUE(until([this] { return orders_.size() == 1; }));
  EXPECT_FALSE(has_ended_);
}

TEST_F(MembershipTest, EndsAtOnceWithoutAChief) {
  membership_->open();
  membership_->leave(hours(1), "");
  EXPECT_TRUE(has_ended_);
}

TEST_F(MembershipTest, EndsAtOnceWhenToldAgain) {
  join();
  membership_->leave(hours(1), "");
  EXPECT_FALSE(has_ended_);
  membership_->leave(hours(1), "");
  EXPECT_TRUE(has_ended_);
}

TEST_F(MembershipTest, EndsWhenTheChiefGoesAwayMeanwhile) {
  join();
  membership_->leave(hours(1), "");
  chief_.reset();
  EXPECT_TRUE(until([this] { return has_ended_; }));
}

TEST_F(MembershipTest, EndsWhenItsPatienceIsOver) {
  join();
  membership_->leave(milliseconds(50), "");
  EXPECT_TRUE(until([this] { return has_ended_; }));
}

TEST_F(MembershipTest, IsPatientWhileItsWorkGetsOn) {
  join();
  work_left_ = kWork;
  membership_->leave(milliseconds(1), "a checkpoint");
  ASSERT_TRUE(until([this] { return has_ended_; }));
  EXPECT_EQ(work_left_, 0U);
}

TEST_F(MembershipTest, AsksToLeaveAgainWhenItIsAnotherIncarnation) {
  join();
  membership_->leave(hours(1), "");
  ASSERT_TRUE(chief_hears<LeaveRequest>());
  membership_->rejoin();
  EXPECT_TRUE(chief_hears<LeaveRequest>(2));
  EXPECT_FALSE(has_ended_);
}

// ---- what systemd is told

TEST_F(MembershipTest, IsReadyOnceItHasJoinedOrWaitsForAChief) {
  EXPECT_FALSE(membership_->state("").is_ready);
  EXPECT_EQ(membership_->waits_for(), "the chief at memory:chief");
  membership_->open();
  ASSERT_TRUE(until([this] { return membership_->state("").is_ready; })) << "nobody is there";
  EXPECT_EQ(membership_->state("").status, "waits for the chief at memory:chief");
  EXPECT_EQ(membership_->state("job a, step 3").status, "job a, step 3, waits for the chief at memory:chief");
  chief_.emplace(loop_, transport_);
  ASSERT_TRUE(until([this] { return registered_ == 1; }));
  EXPECT_EQ(membership_->waits_for(), "");
  EXPECT_EQ(membership_->state("").status, "no job; the chief is at memory:chief");
  EXPECT_EQ(membership_->state("job a, step 3").status, "job a, step 3");
  EXPECT_FALSE(membership_->state("").is_busy);
}

TEST_F(MembershipTest, SaysThatItLeaves) {
  join();
  membership_->leave(hours(1), "");
  const daemon::ServiceState state = membership_->state("job a, step 3");
  EXPECT_TRUE(state.is_busy);
  EXPECT_EQ(state.status, "job a, step 3, told to end, waits for the chief at memory:chief to grant the leave");
}

}  // namespace
}  // namespace disttrain::task
