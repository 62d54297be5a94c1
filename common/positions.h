// The intervals of one batch. Most batches have one interval. A batch has two if an interval of its lease ends inside
// the batch. Up to two intervals need no allocation, so a usual step allocates nothing for them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <vector>

#include "common/interval.h"

namespace disttrain {

// A list of intervals with the part of std::vector's interface that the code uses.
class Positions {
 public:
  using value_type = Interval;
  using const_iterator = const Interval*;
  using iterator = Interval*;

  static constexpr std::size_t kInline = 2;  // more than this many are stored on the heap

  Positions() = default;
  Positions(std::initializer_list<Interval> intervals) : Positions(std::span(intervals.begin(), intervals.size())) {}
  explicit Positions(std::span<const Interval> intervals) {
    for (const Interval& interval : intervals) push_back(interval);
  }

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  const Interval* data() const { return size_ <= kInline ? few_.data() : many_.data(); }
  Interval* data() { return size_ <= kInline ? few_.data() : many_.data(); }
  const Interval* begin() const { return data(); }
  const Interval* end() const { return data() + size_; }
  Interval* begin() { return data(); }
  Interval* end() { return data() + size_; }
  const Interval& operator[](std::size_t i) const { return data()[i]; }
  Interval& operator[](std::size_t i) { return data()[i]; }
  const Interval& front() const { return data()[0]; }
  Interval& back() { return data()[size_ - 1]; }

  Interval& push_back(const Interval& interval = {}) {
    if (size_ == kInline) many_.assign(few_.begin(), few_.end());
    if (size_ < kInline)
      few_[size_] = interval;
    else
      many_.push_back(interval);
    ++size_;
    return back();
  }
  void clear() {
    many_.clear();
    size_ = 0;
  }

  bool operator==(const Positions& other) const { return std::equal(begin(), end(), other.begin(), other.end()); }

 private:
  std::array<Interval, kInline> few_{};
  std::vector<Interval> many_;  // if there are more than kInline intervals, all of them are here
  std::size_t size_ = 0;
};

}  // namespace disttrain
