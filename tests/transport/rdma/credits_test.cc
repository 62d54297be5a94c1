// The accounts of receive slots.
#include <gtest/gtest.h>

#include <deque>
#include <random>

#include "transport/rdma/credits.h"

namespace disttrain::transport {
namespace {

TEST(RdmaCreditsTest, APeerThatLiesIsFound) {
  RdmaCredits credits(4, 4);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(credits.arrived());
  EXPECT_FALSE(credits.arrived()) << "it had four";
  EXPECT_FALSE(credits.returned(1)) << "nothing was sent";
  credits.sent();
  EXPECT_FALSE(credits.returned(2));
  EXPECT_TRUE(credits.returned(1));
}

// Two ends in any order of sending, receiving and emptying: nobody runs out of slots, and nobody waits for ever.
TEST(RdmaCreditsTest, TwoEndsNeverRunOutOfSlots) {
  constexpr std::uint32_t kOwn = 8, kSpare = 4;
  for (unsigned seed = 1; seed <= 50; ++seed) {
    std::mt19937 random(seed);
    struct Wire {
      bool needs_credit;
      std::uint32_t credits;
    };
    struct EndOfWire {
      RdmaCredits credits{kOwn, kOwn};
      std::deque<Wire> arriving;  // each holds a slot of this end
      std::uint32_t unread = 0;
      std::uint32_t sent = 0, read = 0;
    } ends[2];
    for (int i = 0; i < 20'000; ++i) {
      EndOfWire& self = ends[random() % 2];
      EndOfWire& other = &self == &ends[0] ? ends[1] : ends[0];
      switch (random() % 4) {
        case 0:
          if (!self.credits.may_send()) break;
          self.credits.sent();
          ++self.sent;
          other.arriving.push_back({true, self.credits.take_returned()});
          break;
        case 1:
          if (self.arriving.empty()) break;
          ASSERT_TRUE(self.credits.returned(self.arriving.front().credits)) << "seed " << seed;
          if (self.arriving.front().needs_credit) {
            ASSERT_TRUE(self.credits.arrived()) << "seed " << seed;
            ++self.unread;
          }
          self.arriving.pop_front();
          break;
        case 2:
          if (self.unread == 0) break;
          --self.unread;
          ++self.read;
          self.credits.emptied();
          break;
        case 3:
          if (self.credits.must_return()) other.arriving.push_back({false, self.credits.take_returned()});
          break;
      }
      ASSERT_LE(other.arriving.size() + other.unread, kOwn + kSpare) << "seed " << seed;
    }
    EXPECT_GT(ends[0].sent, 1000u) << "seed " << seed;
    EXPECT_GT(ends[1].read, 1000u) << "seed " << seed;
  }
}

}  // namespace
}  // namespace disttrain::transport
