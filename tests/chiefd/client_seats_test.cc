#include "chiefd/client_seats.h"

#include <gtest/gtest.h>

#include <set>

namespace disttrain::chiefd {
namespace {

using std::chrono::seconds;

class ClientSeatsTest : public testing::Test {
 protected:
  // Its number; none: there is no seat.
  std::optional<PeerId> come(bool is_local) {
    const ClientSeats::Verdict verdict = seats_.find_seat(is_local, now_, use_of_);
    if (!verdict.is_free) return std::nullopt;
    if (verdict.leaves) {
      left_.push_back(*verdict.leaves);
      seats_.leave(*verdict.leaves);
    }
    now_ += std::chrono::milliseconds(1);
    last_ = last_.next();
    seats_.take(last_, is_local, now_);
    return last_;
  }
  void fill(std::size_t count, bool is_local, bool waits) {
    for (std::size_t i = 0; i < count; ++i) {
      const auto id = come(is_local);
      ASSERT_TRUE(id) << i;
      if (waits) waiting_.insert(*id);
    }
  }

  ClientSeats seats_;
  Instant now_{seconds(1000)};
  PeerId last_;
  std::set<PeerId> waiting_;
  std::set<PeerId> following_;
  std::vector<PeerId> left_;
  ClientSeats::UseOf use_of_ = [this](PeerId id) {
    if (waiting_.count(id) != 0) return ClientSeats::Use::kAsks;
    return following_.count(id) != 0 ? ClientSeats::Use::kStays : ClientSeats::Use::kIdle;
  };
};

TEST_F(ClientSeatsTest, TheLongestIdleGivesItsSeatUp) {
  fill(kMaxClients - kLocalSeats, false, false);
  EXPECT_TRUE(left_.empty());
  seats_.stir(PeerId(1), now_ + seconds(1));
  ASSERT_TRUE(come(false));
  EXPECT_EQ(left_, std::vector<PeerId>{PeerId(2)});
}

TEST_F(ClientSeatsTest, ClientsThatWaitKeepTheirSeatsAndLocalOnesHaveTheLast) {
  fill(kMaxClients - kLocalSeats, false, true);
  EXPECT_FALSE(come(false)) << "all others wait for an answer";
  fill(kLocalSeats, true, true);
  EXPECT_TRUE(left_.empty());
  EXPECT_FALSE(come(true));
  waiting_.erase(PeerId(7));
  EXPECT_TRUE(come(true));
  EXPECT_EQ(left_, std::vector<PeerId>{PeerId(7)});
}

TEST_F(ClientSeatsTest, ALocalClientGivesUpItsSeatOnlyToALocalOne) {
  fill(kMaxClients, true, false);
  EXPECT_FALSE(come(false));
  EXPECT_TRUE(come(true));
  EXPECT_EQ(left_, std::vector<PeerId>{PeerId(1)});
}

// A command line that has just come would give its seat up before it has asked, again and again.
TEST_F(ClientSeatsTest, WhoHasOnlyJustComeIsNotIdle) {
  for (std::size_t i = 1; i < kMaxClients; ++i) following_.insert(PeerId(i));
  fill(kMaxClients, true, false);
  ASSERT_TRUE(come(true));
  EXPECT_EQ(left_, std::vector<PeerId>{PeerId(1)});
  now_ += kMinClientIdle;
  ASSERT_TRUE(come(true));
  EXPECT_EQ(left_.back(), PeerId(kMaxClients));
}

// They may follow for ever: else they would lock out the operators.
TEST_F(ClientSeatsTest, ThoseThatFollowGiveTheirSeatsUpWhereNobodyIsIdle) {
  fill(kMaxClients, true, false);
  for (std::size_t i = 1; i <= kMaxClients; ++i) following_.insert(PeerId(i));
  following_.erase(PeerId(9));
  waiting_.insert(PeerId(1));
  now_ += kMinClientIdle;
  EXPECT_TRUE(seats_.idle(now_ + seconds(1), use_of_).empty());
  EXPECT_TRUE(come(true));
  following_.insert(last_);
  EXPECT_TRUE(come(true));
  EXPECT_EQ(left_, (std::vector<PeerId>{PeerId(9), PeerId(2)})) << "first who is idle, then who follows for longest";
  EXPECT_FALSE(come(false)) << "the seats of this host's clients";
}

TEST_F(ClientSeatsTest, WhoAsksNothingForTooLongIsIdle) {
  fill(3, false, false);
  waiting_.insert(PeerId(1));
  EXPECT_TRUE(seats_.idle(now_ + kMaxClientIdle - seconds(1), use_of_).empty());
  now_ += kMaxClientIdle + seconds(1);
  seats_.stir(PeerId(2), now_);
  EXPECT_EQ(seats_.idle(now_, use_of_), std::vector<PeerId>{PeerId(3)});
}

}  // namespace
}  // namespace disttrain::chiefd
