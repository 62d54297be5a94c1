// A set of positions, stored as disjoint half-open intervals. Examples are the records that an epoch has visited, and
// the records that can be lent. Copies are independent. An operation takes time logarithmic in the number of intervals,
// plus the time for the intervals that it merges or removes.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "common/messages/control.h"

namespace disttrain {

// An interval with end <= begin is empty. Inserting or erasing it changes nothing, and every set contains it.
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

  // Returns the part of `range` that isn't in the set, as ascending, non-empty intervals with gaps between them.
  std::vector<Interval> complement(Interval range) const;
  // Returns the part of `range` that is in the set, in the same form.
  std::vector<Interval> intersection(Interval range) const;
  // Returns the whole set in the same form.
  std::vector<Interval> to_vector() const;

  // Number of positions.
  std::uint64_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::size_t intervals() const { return ends_.size(); }

  bool operator==(const IntervalSet&) const = default;

 private:
  using Ends = std::map<std::uint64_t, std::uint64_t>;

  // Returns the first interval that ends after `position`.
  Ends::const_iterator first_ending_after(std::uint64_t position) const;

  Ends ends_;  // begin -> end; there is a gap between two intervals
  std::uint64_t size_ = 0;
};

}  // namespace disttrain
