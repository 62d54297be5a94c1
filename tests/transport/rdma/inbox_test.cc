// Messages that have arrived and aren't read yet.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "transport/rdma/inbox.h"

namespace disttrain::transport {
namespace {

std::vector<std::uint32_t> free_slots(RdmaInbox& inbox) {
  std::vector<std::uint32_t> slots;
  while (const auto slot = inbox.take_free()) slots.push_back(*slot);
  return slots;
}

std::vector<std::byte> read(RdmaInbox& inbox, std::size_t first, std::size_t second = 0) {
  std::vector<std::byte> bytes(first + second);
  const std::array<iovec, 2> buffers = {iovec{bytes.data(), first}, iovec{bytes.data() + first, second}};
  bytes.resize(inbox.read(buffers));
  return bytes;
}

TEST(RdmaInbox, ASlotIsFreeWhenAllItsBytesAreRead) {
  const std::vector<std::byte> one(10, std::byte{1}), two(20, std::byte{2});
  RdmaInbox inbox;
  inbox.push(7, one);
  inbox.push(3, two);
  EXPECT_EQ(free_slots(inbox), std::vector<std::uint32_t>{});
  EXPECT_EQ(read(inbox, 9).size(), 9u);
  EXPECT_EQ(free_slots(inbox), std::vector<std::uint32_t>{});
  EXPECT_EQ(read(inbox, 2).size(), 2u);
  EXPECT_EQ(free_slots(inbox), std::vector<std::uint32_t>{7});
  EXPECT_FALSE(inbox.empty());
  EXPECT_EQ(read(inbox, 100).size(), 19u);
  EXPECT_TRUE(inbox.empty());
  EXPECT_EQ(free_slots(inbox), std::vector<std::uint32_t>{3});
  EXPECT_EQ(read(inbox, 100).size(), 0u);
}

TEST(RdmaInbox, AMessageWithoutBytesIsReadWithThoseBeforeIt) {
  const std::vector<std::byte> one(10, std::byte{1});
  RdmaInbox inbox;
  inbox.push(7, one);
  inbox.push(3, {});
  EXPECT_EQ(read(inbox, 5).size(), 5u);
  EXPECT_EQ(free_slots(inbox), std::vector<std::uint32_t>{});
  EXPECT_EQ(read(inbox, 100).size(), 5u);
  EXPECT_EQ(free_slots(inbox), (std::vector<std::uint32_t>{7, 3}));
}

// Against one long array.
TEST(RdmaInbox, BytesComeInOrderAndSlotsTheSame) {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    std::mt19937 random(seed);
    std::vector<std::byte> all(20'000);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::byte>(random());
    RdmaInbox inbox;
    std::vector<std::byte> got;
    std::vector<std::size_t> ends;  // of each message
    std::size_t pushed = 0;
    std::uint32_t freed = 0;
    while (got.size() < all.size()) {
      if (random() % 2 == 0) {
        const std::size_t bytes = std::min<std::size_t>(random() % 500, all.size() - pushed);
        inbox.push(static_cast<std::uint32_t>(ends.size()), Bytes(all).subspan(pushed, bytes));
        ends.push_back(pushed += bytes);
      } else {
        const std::size_t before = got.size();
        for (const std::byte one : read(inbox, random() % 300, random() % 300)) got.push_back(one);
        ASSERT_LE(got.size(), pushed);
        for (const std::uint32_t slot : free_slots(inbox)) {
          ASSERT_EQ(slot, freed++) << "seed " << seed;
          ASSERT_LE(ends[slot], got.size()) << "seed " << seed;
        }
        ASSERT_TRUE(inbox.empty() == (got.size() == pushed)) << "seed " << seed << ", from " << before;
      }
    }
    EXPECT_EQ(got, all) << "seed " << seed;
  }
}

}  // namespace
}  // namespace disttrain::transport
