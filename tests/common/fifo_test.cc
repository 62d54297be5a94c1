#include "common/fifo.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>

#include "common/random.h"

namespace disttrain {
namespace {

TEST(Fifo, IsADeque) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed, stream_of("fifo", 0));
    Fifo<std::string> fifo;
    std::deque<std::string> naive;
    for (std::uint64_t i = 0; i < 500; ++i) {
      if (random.below(5) < 3 || naive.empty()) {
        fifo.push_back(std::to_string(i));
        naive.push_back(std::to_string(i));
      } else if (random.below(4) == 0) {
        const std::size_t at = random.below(naive.size());
        fifo.erase(at);
        naive.erase(naive.begin() + static_cast<std::ptrdiff_t>(at));
      } else {
        fifo.pop_front();
        naive.pop_front();
      }
      ASSERT_EQ(fifo.size(), naive.size());
      if (naive.empty()) continue;
      ASSERT_EQ(fifo.front(), naive.front());
      ASSERT_EQ(fifo.back(), naive.back());
      for (std::size_t at = 0; at < naive.size(); ++at) ASSERT_EQ(fifo[at], naive[at]);
    }
  }
}

TEST(Fifo, ASlotKeepsItsMemory) {
  Fifo<std::string> fifo;
  fifo.push_slot().assign(1000, 'x');
  const char* const memory = fifo.front().data();
  bool is_kept = false;
  for (int turns = 0; turns < 100 && !is_kept; ++turns) {
    fifo.pop_front();
    std::string& slot = fifo.push_slot();
    slot.clear();
    is_kept = slot.data() == memory;
  }
  EXPECT_TRUE(is_kept);
}

}  // namespace
}  // namespace disttrain
