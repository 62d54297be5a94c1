// The link of a task to its chief, over the memory transport; the test plays the chief.
#include "transport/chief_link.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "tests/transport/fake_chief.h"
#include "transport/memory/transport.h"

namespace disttrain::transport {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

class ChiefLinkTest : public testing::Test {
 protected:
  ChiefLinkTest()
      : transport_(network_),
        link_(loop_, transport_, "memory:chief", derive_timeouts(milliseconds(100)),
              {.make_hello = [] { return hello(); },
               .on_welcome = [this](const Welcome&) { ++welcomes_; },
               .on_other_journal = [this] { ++other_journals_; },
               .on_message = [this](const wire::ControlMessage& message) { heard_.push_back(message); },
               .on_refused = [this](const Error& why) { refused_ = why; },
               .on_away = [this](const std::string& why) { away_.push_back(why); },
               .on_unsent = [](const Error& why) { FAIL() << why.message; },
               .on_unread = [this](const Error& why) { unread_.push_back(why.message); }}) {}

  static Hello hello() {
    Hello hello;
    hello.who = TaskHello{};
    return hello;
  }
  void start_chief() { chief_.emplace(loop_, transport_); }
  bool until(const std::function<bool()>& done) {
    const auto end = steady_clock::now() + std::chrono::seconds(10);
    while (!done()) {
      if (steady_clock::now() > end) return false;
      loop_.restart();
      loop_.run_one_for(milliseconds(10));
    }
    return true;
  }

  asio::io_context loop_;
  MemoryNetwork network_;
  MemoryTransport transport_;
  std::optional<FakeChief> chief_;
  int welcomes_ = 0;
  int other_journals_ = 0;
  std::vector<wire::ControlMessage> heard_;
  std::optional<Error> refused_;
  std::vector<std::string> away_;
  std::vector<std::string> unread_;
  ChiefLink link_;
};

TEST_F(ChiefLinkTest, DialsUntilTheChiefIsThereAndSaysOnceThatItIsAway) {
  link_.open();
  ASSERT_TRUE(until([&] { return !away_.empty(); }));
  start_chief();
  ASSERT_TRUE(until([&] { return welcomes_ == 1; }));
  EXPECT_EQ(away_.size(), 1u);
  EXPECT_EQ(link_.obedience().journal(), JournalId(7));
}

TEST_F(ChiefLinkTest, TimeoutOfTheChiefHoldsAndMayChange) {
  link_.set_own_timeouts(derive_timeouts(milliseconds(200)));
  EXPECT_EQ(link_.timeouts().silent, milliseconds(200)) << "no chief has sent its own";
  start_chief();
  link_.open();
  ASSERT_TRUE(until([&] { return link_.is_registered(); }));
  EXPECT_EQ(link_.timeouts().silent, milliseconds(100));
  link_.set_own_timeouts(derive_timeouts(milliseconds(300)));
  EXPECT_EQ(link_.timeouts().silent, milliseconds(100));
  chief_->timeout = milliseconds(700);
  link_.tell(Heartbeat{});
  EXPECT_TRUE(until([&] { return link_.timeouts().silent == milliseconds(700); }));
}

TEST_F(ChiefLinkTest, ChiefSaysHowOftenItWantsHeartbeats) {
  start_chief();
  link_.open();
  ASSERT_TRUE(until([&] { return link_.is_registered(); }));
  EXPECT_EQ(link_.timeouts().heartbeat, milliseconds(10));
  chief_->pause = milliseconds(20);
  link_.tell(Heartbeat{});
  EXPECT_TRUE(until([&] { return link_.timeouts().heartbeat == milliseconds(20); }));
  chief_->pause = milliseconds(1000);
  link_.tell(Heartbeat{});
  EXPECT_TRUE(until([&] { return link_.timeouts().heartbeat == milliseconds(50); })) << "a task must not fall silent";
}

TEST_F(ChiefLinkTest, ReportsWaitForTheChiefAndWhatIsSaidAgainDoesNot) {
  start_chief();
  link_.open();
  ASSERT_TRUE(until([&] { return welcomes_ == 1; }));
  chief_->link.reset();
  ASSERT_TRUE(until([&] { return !away_.empty(); }));
  link_.tell(JobOpened{JobId(5), Generation(1)});
  link_.tell(Heartbeat{});
  link_.tell(Accusation{});
  link_.tell(WorkerFinished{JobId(5), Generation(1), 9});
  ASSERT_TRUE(until([&] { return chief_->heard.size() >= 2; }));
  link_.tell(JobClosed{JobId(5)});
  ASSERT_TRUE(until([&] { return chief_->count<JobClosed>() == 1; }));
  ASSERT_EQ(chief_->heard.size(), 3u);
  EXPECT_TRUE(std::holds_alternative<JobOpened>(chief_->heard[0]));
  EXPECT_TRUE(std::holds_alternative<WorkerFinished>(chief_->heard[1]));
}

TEST_F(ChiefLinkTest, NoMoreThanItsBoundOfReportsWaits) {
  for (std::size_t i = 0; i < ChiefLink::kMaxWaiting + 10; ++i) link_.tell(JobClosed{JobId(i)});
  start_chief();
  link_.open();
  ASSERT_TRUE(until([&] { return chief_->heard.size() == ChiefLink::kMaxWaiting; }));
  EXPECT_EQ(std::get<JobClosed>(chief_->heard.front()).job, JobId(10));
}

TEST_F(ChiefLinkTest, SilentChiefIsDialledAnew) {
  start_chief();
  chief_->answers_heartbeats = false;
  link_.open();
  ASSERT_TRUE(until([&] { return welcomes_ == 2; }));
  EXPECT_NE(away_.front().find("silent"), std::string::npos) << away_.front();
}

TEST_F(ChiefLinkTest, ChiefThatAnswersHeartbeatsIsKept) {
  start_chief();
  link_.open();
  const auto end = steady_clock::now() + milliseconds(100) * ChiefLink::kSilentTimeouts * 2;
  ASSERT_TRUE(until([&] {
    link_.tell(Heartbeat{});
    return steady_clock::now() > end;
  }));
  EXPECT_EQ(chief_->hellos, 1);
}

TEST_F(ChiefLinkTest, HeartbeatsTellHowFarTheChiefsClockIsAhead) {
  start_chief();
  chief_->clock_ahead = std::chrono::minutes(5);
  link_.open();
  ASSERT_TRUE(until([this] { return link_.is_registered(); }));
  EXPECT_FALSE(link_.clock_offset());
  link_.tell(Heartbeat{});
  ASSERT_TRUE(until([this] { return link_.clock_offset().has_value(); }));
  const ClockOffset clock = *link_.clock_offset();
  EXPECT_LE(std::chrono::abs(clock.offset - chief_->clock_ahead), clock.uncertainty);
  EXPECT_LT(clock.uncertainty, std::chrono::seconds(10));
}

TEST_F(ChiefLinkTest, ClockOfThisHostIsNotAhead) {
  start_chief();
  link_.open();
  ASSERT_TRUE(until([this] { return link_.is_registered(); }));
  link_.tell(Heartbeat{});
  ASSERT_TRUE(until([this] { return link_.clock_offset().has_value(); }));
  EXPECT_EQ(link_.clock_offset()->offset, Duration::zero());
}

TEST_F(ChiefLinkTest, ChiefThatTakesTheConnectionAndSaysNothingIsDialledAnew) {
  start_chief();
  chief_->answers_hello = false;
  link_.open();
  ASSERT_TRUE(until([&] { return !away_.empty(); }));
  chief_->answers_hello = true;
  EXPECT_TRUE(until([&] { return welcomes_ == 1; }));
}

TEST_F(ChiefLinkTest, ChiefOfAnOlderTermIsNotObeyed) {
  start_chief();
  chief_->answer = FakeChief::welcome_of(Term(3), JournalId(7));
  link_.open();
  ASSERT_TRUE(until([&] { return welcomes_ == 1; }));
  chief_->answer = FakeChief::welcome_of(Term(2), JournalId(7));
  chief_->link.reset();
  ASSERT_TRUE(until([&] { return chief_->hellos == 3; }));
  EXPECT_EQ(welcomes_, 1);
  chief_->answer = FakeChief::welcome_of(Term(3), JournalId(7));
  EXPECT_TRUE(until([&] { return welcomes_ == 2; }));
}

// First the task logs that no chief answers. Then a chief answers, but the task doesn't obey it. The task must log
// this, too.
TEST_F(ChiefLinkTest, WhyAChiefIsNotObeyedIsSaidOnceThoughNoneWasThereBefore) {
  start_chief();
  chief_->answer = FakeChief::welcome_of(Term(3), JournalId(7));
  link_.open();
  ASSERT_TRUE(until([&] { return welcomes_ == 1; }));
  chief_.reset();
  ASSERT_TRUE(until([&] { return away_.size() == 1; }));
  start_chief();
  chief_->answer = FakeChief::welcome_of(Term(2), JournalId(7));
  ASSERT_TRUE(until([&] { return away_.size() == 2; }));
  EXPECT_NE(away_[1].find("has obeyed a chief of term 3"), std::string::npos) << away_[1];
  const auto hellos = chief_->hellos;
  ASSERT_TRUE(until([&] { return chief_->hellos >= hellos + 3; }));
  EXPECT_EQ(away_.size(), 2u);
}

TEST_F(ChiefLinkTest, ChiefWithAnotherJournalIsToldOfWhateverItsTermAndOldReportsAreDropped) {
  start_chief();
  chief_->answer = FakeChief::welcome_of(Term(3), JournalId(7));
  link_.open();
  ASSERT_TRUE(until([&] { return welcomes_ == 1; }));
  chief_->answer = FakeChief::welcome_of(Term(1), JournalId(8));
  chief_->link.reset();
  ASSERT_TRUE(until([&] { return !away_.empty(); }));
  link_.tell(JobClosed{JobId(5)});
  ASSERT_TRUE(until([&] { return welcomes_ == 2; }));
  EXPECT_EQ(other_journals_, 1);
  EXPECT_TRUE(chief_->heard.empty());
  EXPECT_EQ(link_.obedience().journal(), JournalId(8));
}

TEST_F(ChiefLinkTest, TemporaryRefusalIsDialledAgainAndAnyOtherEndsIt) {
  start_chief();
  chief_->answer = Refused{ErrorCode::kTemporary, "too many"};
  link_.open();
  ASSERT_TRUE(until([&] { return chief_->hellos == 2; }));
  EXPECT_FALSE(refused_);
  chief_->answer = Refused{ErrorCode::kConfig, "another cluster"};
  ASSERT_TRUE(until([&] { return refused_.has_value(); }));
  EXPECT_EQ(refused_->code, ErrorCode::kConfig);
  EXPECT_NE(refused_->message.find("another cluster"), std::string::npos);
}

TEST_F(ChiefLinkTest, MessagesThatCannotBeReadAreToldOnceAndTheLinkGoesOn) {
  start_chief();
  link_.open();
  ASSERT_TRUE(until([&] { return link_.is_registered(); }));
  const auto send = [this](const std::string& metric) {
    JobConfig job;
    job.evaluate.metric = metric + "\u202E";
    EvaluateCheckpoint order;
    order.config = std::make_shared<const JobConfig>(job);
    EXPECT_TRUE(chief_->link->send(order));
  };
  const auto go_on = [this] {
    heard_.clear();
    ASSERT_TRUE(chief_->link->send(JobClosed{JobId(3)}));
    ASSERT_TRUE(until([&] { return heard_.size() == 1; }));
  };
  for (int times = 0; times < 3; ++times)  // the chief repeats its orders
    for (const char* metric : {"one", "other"}) send(metric);
  go_on();
  ASSERT_EQ(unread_.size(), 2u);
  EXPECT_NE(unread_.front().find("metric isn't printable: \"one"), std::string::npos) << unread_.front();
  EXPECT_NE(unread_.back().find("metric isn't printable: \"other"), std::string::npos) << unread_.back();
  for (int i = 0; i < 100; ++i) send("metric" + std::to_string(i));
  go_on();
  EXPECT_EQ(unread_.size(), ChiefLink::kMaxUnread);
  const int before = welcomes_;
  chief_->link.reset();
  ASSERT_TRUE(until([&] { return welcomes_ > before; }));
  send("one");
  go_on();
  EXPECT_EQ(unread_.size(), ChiefLink::kMaxUnread + 1) << "the task was registered again, perhaps with another chief";
}

TEST_F(ChiefLinkTest, RefusalThatEndsIsNotDialledAgainWhateverItsCode) {
  start_chief();
  chief_->answer = Refused{ErrorCode::kTemporary, "another process took the place", true, {}};
  link_.open();
  ASSERT_TRUE(until([&] { return refused_.has_value(); }));
  EXPECT_EQ(refused_->code, ErrorCode::kTemporary) << "to be started again";
  EXPECT_EQ(chief_->hellos, 1);
}

}  // namespace
}  // namespace disttrain::transport
