// A set of positions, kept as disjoint half-open intervals: the ledger of visited records, the pool of records to lend.
// A value. Operations cost the logarithm of the number of intervals, plus the intervals that they merge or remove.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "common/messages/control.h"

namespace disttrain {

// An interval with end <= begin is empty: adds nothing, removes nothing, and is contained in every set.
class IntervalSet {
 public:
  IntervalSet() = default;
  explicit IntervalSet(const std::vector<Interval>& intervals);

  // Returns how many of the interval's positions were new.
  std::uint64_t insert(Interval interval);
  // Returns how many of the interval's positions were in the set.
  std::uint64_t erase(Interval interval);
  void clear();

  bool contains(Interval interval) const;
  bool contains(std::uint64_t position) const;

  // The part of `range` that isn't in the set: ascending, disjoint, non-empty intervals that don't touch.
  std::vector<Interval> complement(Interval range) const;
  // The part of `range` that is in the set, in the same form.
  std::vector<Interval> intersection(Interval range) const;
  // The whole set, in the same form.
  std::vector<Interval> to_vector() const;

  // Number of positions.
  std::uint64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::size_t intervals() const { return ends_.size(); }

  bool operator==(const IntervalSet&) const = default;

 private:
  using Ends = std::map<std::uint64_t, std::uint64_t>;

  // First interval that ends after `position`.
  Ends::const_iterator first_ending_after(std::uint64_t position) const;

  Ends ends_;  // begin -> end; no two intervals touch
  std::uint64_t size_ = 0;
};

}  // namespace disttrain
