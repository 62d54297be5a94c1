// Answers that travel in their frames, and later ones that are written at once.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "transport/rdma/overtaking.h"

namespace disttrain::transport {
namespace {

TEST(RdmaOvertaking, AnAnswerWaitsForAnEarlierOneOfItsPlace) {
  RdmaOvertaking overtaking;
  EXPECT_TRUE(overtaking.may_overtake(0, 100, 0));
  overtaking.note_slow(100, 50);
  EXPECT_FALSE(overtaking.may_overtake(149, 1, 10)) << "its frame isn't sent yet";
  EXPECT_TRUE(overtaking.may_overtake(150, 50, 10));
  EXPECT_TRUE(overtaking.may_overtake(50, 50, 10));
  overtaking.note_all_sent(20);
  EXPECT_FALSE(overtaking.may_overtake(50, 51, 19));
  overtaking.note_all_sent(30);
  EXPECT_TRUE(overtaking.may_overtake(50, 51, 20));
}

// Against a list without a bound. With more answers than the class remembers, it may say no where the list says yes,
// but never the other way round.
TEST(RdmaOvertaking, NeverOvertakes) {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    std::mt19937 random(seed);
    struct Slow {
      std::uint64_t begin, end, read_with;
    };
    std::vector<Slow> list;
    RdmaOvertaking overtaking;
    std::uint64_t sent = 0, read = 0;
    int refused = 0, allowed = 0;
    for (int i = 0; i < 5'000; ++i) {
      const std::uint64_t at = random() % 1000, bytes = 1 + random() % 20;
      switch (random() % 4) {
        case 0:
          overtaking.note_slow(at, bytes);
          list.push_back({at, at + bytes, ~std::uint64_t{0}});
          break;
        case 1:
          sent += random() % 8;
          overtaking.note_all_sent(sent);
          for (Slow& one : list)
            if (one.read_with == ~std::uint64_t{0}) one.read_with = sent;
          break;
        case 2:
          read += random() % (sent - read + 1);
          break;
        case 3: {
          bool may = true;
          for (const Slow& one : list)
            if (one.read_with > read && at < one.end && one.begin < at + bytes) may = false;
          const bool does = overtaking.may_overtake(at, bytes, read);
          ASSERT_TRUE(may || !does) << "seed " << seed << ", turn " << i;
          ++(does ? allowed : refused);
        }
      }
    }
    EXPECT_GT(allowed, 100) << "seed " << seed;
    EXPECT_GT(refused, 10) << "seed " << seed;
  }
}

}  // namespace
}  // namespace disttrain::transport
