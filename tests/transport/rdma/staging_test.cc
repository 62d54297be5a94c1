// The pieces of a buffer from which answers are sent.
#include <gtest/gtest.h>

#include <deque>
#include <random>

#include "transport/rdma/staging.h"

namespace disttrain::transport {
namespace {

// Against a list of the bytes in use.
TEST(RdmaStaging, PiecesNeverOverlap) {
  constexpr std::size_t kSize = 1000;
  for (unsigned seed = 1; seed <= 50; ++seed) {
    std::mt19937 random(seed);
    Staging staging(kSize);
    std::deque<std::pair<std::size_t, std::size_t>> pieces;
    for (int i = 0; i < 5'000; ++i) {
      if (random() % 2 == 0 && !pieces.empty()) {
        pieces.pop_front();
        staging.free_oldest();
      } else {
        const std::size_t bytes = 1 + random() % 400;
        const auto begin = staging.take(bytes);
        if (!begin) {
          ASSERT_FALSE(pieces.empty() && bytes <= kSize) << "seed " << seed;
          continue;
        }
        ASSERT_LE(*begin + bytes, kSize) << "seed " << seed;
        for (const auto& [from, to] : pieces)
          ASSERT_TRUE(*begin + bytes <= from || to <= *begin) << "seed " << seed << ", turn " << i;
        pieces.emplace_back(*begin, *begin + bytes);
      }
      ASSERT_EQ(staging.pieces(), pieces.size());
    }
  }
}

}  // namespace
}  // namespace disttrain::transport
