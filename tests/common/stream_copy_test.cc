#include "common/stream_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace disttrain {
namespace {

TEST(StreamCopy, EveryByteIsCopiedAndNoOtherWhateverTheAlignment) {
  std::vector<unsigned char> from(160);
  std::iota(from.begin(), from.end(), static_cast<unsigned char>(1));
  for (std::size_t from_begin = 0; from_begin < 20; ++from_begin)
    for (std::size_t to_begin = 0; to_begin < 20; ++to_begin)
      for (std::size_t count = 0; count < 80; ++count) {
        std::vector<unsigned char> to(160, 0);
        stream_copy(std::as_bytes(std::span(from).subspan(from_begin, count)),
                    std::as_writable_bytes(std::span(to).subspan(to_begin, count)));
        std::vector<unsigned char> expected(160, 0);
        std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(from_begin), count,
                    expected.begin() + static_cast<std::ptrdiff_t>(to_begin));
        ASSERT_EQ(to, expected) << from_begin << ' ' << to_begin << ' ' << count;
      }
}

}  // namespace
}  // namespace disttrain
