#include "common/interval_set.h"

#include <algorithm>

namespace disttrain {

IntervalSet::IntervalSet(const std::vector<Interval>& intervals) {
  for (const Interval& interval : intervals) insert(interval);
}

IntervalSet::Ends::const_iterator IntervalSet::first_ending_after(std::uint64_t position) const {
  auto next = ends_.upper_bound(position);
  if (next == ends_.begin()) return next;
  const auto previous = std::prev(next);
  return previous->second > position ? previous : next;
}

std::uint64_t IntervalSet::insert(Interval interval) {
  if (interval.end <= interval.begin) return 0;
  auto at = ends_.lower_bound(interval.begin);
  // A worker usually visits intervals in order, so the new interval often touches the one before it. The earlier
  // interval then grows without new memory.
  if (at != ends_.begin() && std::prev(at)->second == interval.begin &&
      (at == ends_.end() || at->first > interval.end)) {
    std::prev(at)->second = interval.end;
    size_ += interval.end - interval.begin;
    return interval.end - interval.begin;
  }
  std::uint64_t present = 0;  // positions in the merged intervals
  Interval merged = interval;
  if (at != ends_.begin() && std::prev(at)->second >= interval.begin) --at;
  while (at != ends_.end() && at->first <= interval.end) {
    merged.begin = std::min(merged.begin, at->first);
    merged.end = std::max(merged.end, at->second);
    present += at->second - at->first;
    at = ends_.erase(at);
  }
  ends_.emplace_hint(at, merged.begin, merged.end);
  const std::uint64_t added = merged.end - merged.begin - present;
  size_ += added;
  return added;
}

std::uint64_t IntervalSet::erase(Interval interval) {
  if (interval.end <= interval.begin) return 0;
  std::uint64_t removed = 0;
  auto at = first_ending_after(interval.begin);
  while (at != ends_.end() && at->first < interval.end) {
    const auto [begin, end] = *at;
    removed += std::min(end, interval.end) - std::max(begin, interval.begin);
    at = ends_.erase(at);
    if (begin < interval.begin) ends_.emplace(begin, interval.begin);
    if (end > interval.end) ends_.emplace(interval.end, end);
  }
  size_ -= removed;
  return removed;
}

void IntervalSet::clear() {
  ends_.clear();
  size_ = 0;
}

bool IntervalSet::contains(Interval interval) const {
  if (interval.end <= interval.begin) return true;
  const auto at = first_ending_after(interval.begin);
  return at != ends_.end() && at->first <= interval.begin && at->second >= interval.end;
}

bool IntervalSet::contains(std::uint64_t position) const {
  const auto at = first_ending_after(position);
  return at != ends_.end() && at->first <= position;
}

std::vector<Interval> IntervalSet::intersection(Interval range) const {
  std::vector<Interval> parts;
  if (range.end <= range.begin) return parts;
  for (auto at = first_ending_after(range.begin); at != ends_.end() && at->first < range.end; ++at)
    parts.push_back(Interval{std::max(at->first, range.begin), std::min(at->second, range.end)});
  return parts;
}

std::vector<Interval> IntervalSet::complement(Interval range) const {
  std::vector<Interval> gaps;
  std::uint64_t from = range.begin;
  for (const Interval& part : intersection(range)) {
    if (from < part.begin) gaps.push_back(Interval{from, part.begin});
    from = part.end;
  }
  if (from < range.end) gaps.push_back(Interval{from, range.end});
  return gaps;
}

std::vector<Interval> IntervalSet::to_vector() const {
  std::vector<Interval> all;
  all.reserve(ends_.size());
  for (const auto& [begin, end] : ends_) all.push_back(Interval{begin, end});
  return all;
}

}  // namespace disttrain
