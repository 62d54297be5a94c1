// ssp: how far the workers may drift apart. A worker's clock is the number of its own step, carried by its pushes;
// after push c it gets parameters, and so may compute on, only while c - slowest <= staleness (Ho et al., "More
// Effective Distributed ML via a Stale Synchronous Parallel Parameter Server", NIPS 2013, section 3).
//
// A worker is at work, and holds the others to the bound, from the pull that begins (see Pull) to a push that is final
// or to its leaving the roster: not while it loads, or waits for records to train on. Its clock is raised when
// it begins, at both ends, so that it has nothing to make up for. One whose connection is away still is at work: it
// comes back, or the chief takes it out of the roster.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "common/ids.h"
#include "common/mutant.h"

namespace disttrain::psd {

class Clocks {
 public:
  explicit Clocks(std::uint64_t staleness) : staleness_(staleness) {}

  // A worker comes, or comes back: it starts at the slowest of the others, lest it hold them back for what it never
  // did. While nobody is at work it starts where the furthest ever was: else those who come one by one would start at
  // the clocks that they bring along, further apart than the bound. The clock that it has now.
  Step enter(Member member, Step last_clock);
  void leave(Member member) { clocks_.erase(member); }
  void pushed(Member member, Step clock);

  // None: nobody is at work.
  std::optional<Step> slowest() const;
  // Where a worker starts that comes now.
  Step start() const { return slowest().value_or(furthest_); }

  // `slowest`: slowest(), which takes a look at all clocks.
  bool may_go_on(Step clock, std::optional<Step> slowest) const;

  std::vector<Member> members() const;

 private:
  const std::uint64_t staleness_;
  std::map<Member, Step> clocks_;
  Step furthest_;  // of all that ever were at work
};

inline Step Clocks::enter(Member member, Step last_clock) {
  leave(member);
  const Step clock = std::max(last_clock, start());
  furthest_ = std::max(furthest_, clock);
  return clocks_[member] = clock;
}

inline void Clocks::pushed(Member member, Step clock) {
  furthest_ = std::max(furthest_, clock);
  const auto found = clocks_.find(member);
  if (found != clocks_.end()) found->second = std::max(found->second, clock);
}

inline std::optional<Step> Clocks::slowest() const {
  if (clocks_.empty()) return std::nullopt;
  const auto least = std::min_element(clocks_.begin(), clocks_.end(),
                                      [](const auto& a, const auto& b) { return a.second < b.second; });
  return least->second;
}

inline std::vector<Member> Clocks::members() const {
  std::vector<Member> members;
  for (const auto& [member, clock] : clocks_) members.push_back(member);
  return members;
}

inline bool Clocks::may_go_on(Step clock, std::optional<Step> slowest) const {
  const Step least = slowest.value_or(clock);
  if (DISTTRAIN_MUTANT(kLooseBound)) return clock <= least || clock.value - least.value <= staleness_ + 1;
  return clock <= least || clock.value - least.value <= staleness_;
}

}  // namespace disttrain::psd
