#include "chiefd/client_admission.h"

#include <gtest/gtest.h>

#include <set>

namespace disttrain::chiefd {
namespace {

using std::chrono::seconds;

class ClientAdmissionTest : public testing::Test {
 protected:
  // A client connects. Returns the client's number, or nullopt if it was refused.
  std::optional<PeerId> come(bool is_local) {
    const ClientAdmission::Verdict verdict = admission_.find_place(is_local, now_, use_of_);
    if (!verdict.is_free) return std::nullopt;
    if (verdict.leaves) {
      left_.push_back(*verdict.leaves);
      admission_.leave(*verdict.leaves);
    }
    now_ += std::chrono::milliseconds(1);
    last_ = last_.next();
    admission_.take(last_, is_local, now_);
    return last_;
  }
  void fill(std::size_t count, bool is_local, bool waits) {
    for (std::size_t i = 0; i < count; ++i) {
      const auto id = come(is_local);
      ASSERT_TRUE(id) << i;
      if (waits) waiting_.insert(*id);
    }
  }

  ClientAdmission admission_;
  Instant now_{seconds(1000)};
  PeerId last_;
  std::set<PeerId> waiting_;
  std::set<PeerId> following_;
  std::vector<PeerId> left_;
  ClientAdmission::UseOf use_of_ = [this](PeerId id) {
    if (waiting_.count(id) != 0) return ClientAdmission::Use::kAsks;
    return following_.count(id) != 0 ? ClientAdmission::Use::kStays : ClientAdmission::Use::kIdle;
  };
};

TEST_F(ClientAdmissionTest, TheLongestIdleGivesItsPlaceUp) {
  fill(kMaxClients - kLocalClients, false, false);
  EXPECT_TRUE(left_.empty());
  admission_.stir(PeerId(1), now_ + seconds(1));
  ASSERT_TRUE(come(false));
  EXPECT_EQ(left_, std::vector<PeerId>{PeerId(2)});
}

TEST_F(ClientAdmissionTest, ClientsThatWaitKeepTheirPlacesAndTheLastPlacesAreForLocalClients) {
  fill(kMaxClients - kLocalClients, false, true);
  EXPECT_FALSE(come(false)) << "all others wait for an answer";
  fill(kLocalClients, true, true);
  EXPECT_TRUE(left_.empty());
  EXPECT_FALSE(come(true));
  waiting_.erase(PeerId(7));
  EXPECT_TRUE(come(true));
  EXPECT_EQ(left_, std::vector<PeerId>{PeerId(7)});
}

TEST_F(ClientAdmissionTest, ALocalClientGivesUpItsPlaceOnlyToALocalOne) {
  fill(kMaxClients, true, false);
  EXPECT_FALSE(come(false));
  EXPECT_TRUE(come(true));
  EXPECT_EQ(left_, std::vector<PeerId>{PeerId(1)});
}

// If a new client counted as idle, a command line could lose its place before it has sent its first request.
TEST_F(ClientAdmissionTest, ClientThatHasJustComeIsNotIdle) {
  for (std::size_t i = 1; i < kMaxClients; ++i) following_.insert(PeerId(i));
  fill(kMaxClients, true, false);
  ASSERT_TRUE(come(true));
  EXPECT_EQ(left_, std::vector<PeerId>{PeerId(1)});
  now_ += kMinClientIdle;
  ASSERT_TRUE(come(true));
  EXPECT_EQ(left_.back(), PeerId(kMaxClients));
}

// A follower is a client that reads log lines as they come. Followers may stay forever, so without this rule they would
// lock out the operators.
TEST_F(ClientAdmissionTest, FollowersGiveTheirPlacesUpWhereNobodyIsIdle) {
  fill(kMaxClients, true, false);
  for (std::size_t i = 1; i <= kMaxClients; ++i) following_.insert(PeerId(i));
  following_.erase(PeerId(9));
  waiting_.insert(PeerId(1));
  now_ += kMinClientIdle;
  EXPECT_TRUE(admission_.idle(now_ + seconds(1), use_of_).empty());
  EXPECT_TRUE(come(true));
  following_.insert(last_);
  EXPECT_TRUE(come(true));
  EXPECT_EQ(left_, (std::vector<PeerId>{PeerId(9), PeerId(2)}))
      << "first the idle client, then the one that has followed for longest";
  EXPECT_FALSE(come(false)) << "these places are for clients of this host";
}

TEST_F(ClientAdmissionTest, ClientThatAsksNothingForTooLongIsIdle) {
  fill(3, false, false);
  waiting_.insert(PeerId(1));
  EXPECT_TRUE(admission_.idle(now_ + kMaxClientIdle - seconds(1), use_of_).empty());
  now_ += kMaxClientIdle + seconds(1);
  admission_.stir(PeerId(2), now_);
  EXPECT_EQ(admission_.idle(now_, use_of_), std::vector<PeerId>{PeerId(3)});
}

}  // namespace
}  // namespace disttrain::chiefd
