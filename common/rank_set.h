// A set of ranks as bits, for example the workers of a synchronous step. It needs no allocated memory. Ranks have a
// meaning only in a version of the roster, so keep that version beside the set.
//
// Commits and the shards' reports have such a set, of at most 128 bytes, instead of a list of members. By intersecting
// the reports, the pacer finds the workers whose pushes are staged on every shard. A shard gets the list of members
// only when it is created, when the roster changes, and when it connects to the pacer again.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "common/ids.h"

namespace disttrain {

// The most workers that a job can have.
inline constexpr std::size_t kMaxRoster = 1024;

class RankSet {
 public:
  static constexpr std::size_t kWordBits = 64;
  using Words = std::array<std::uint64_t, kMaxRoster / kWordBits>;

  // rank < kMaxRoster.
  void insert(Rank rank) { words_[rank.value / kWordBits] |= bit(rank); }
  bool contains(Rank rank) const {
    return rank.value < kMaxRoster && (words_[rank.value / kWordBits] & bit(rank)) != 0;
  }
  std::size_t size() const {
    std::size_t count = 0;
    for (std::uint64_t word : words_) count += static_cast<std::size_t>(std::popcount(word));
    return count;
  }
  bool empty() const { return *this == RankSet(); }
  bool is_part_of(const RankSet& other) const { return (*this & other) == *this; }

  // Calls `visit(Rank)` for each rank in ascending order.
  template <typename Visit>
  void each(Visit visit) const {
    for (std::size_t i = 0; i < words_.size(); ++i)
      for (std::uint64_t word = words_[i]; word != 0; word &= word - 1)
        visit(Rank(static_cast<std::uint32_t>(i * kWordBits + static_cast<std::size_t>(std::countr_zero(word)))));
  }

  friend RankSet operator&(const RankSet& a, const RankSet& b) {
    RankSet both;
    for (std::size_t i = 0; i < both.words_.size(); ++i) both.words_[i] = a.words_[i] & b.words_[i];
    return both;
  }
  bool operator==(const RankSet&) const = default;

  // For the codec: the words that hold the bits. The first word holds ranks 0 to 63. used_words() is the number of
  // words without the zero words at the end.
  Words& words() { return words_; }
  const Words& words() const { return words_; }
  std::size_t used_words() const {
    std::size_t used = words_.size();
    while (used > 0 && words_[used - 1] == 0) --used;
    return used;
  }

 private:
  static std::uint64_t bit(Rank rank) { return std::uint64_t{1} << (rank.value % kWordBits); }

  Words words_{};
};

}  // namespace disttrain
