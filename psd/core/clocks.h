// ssp: how far the workers may drift apart. A worker's clock is the number of its own step, carried by its pushes;
// after push c it gets parameters, and so may compute on, only while c - slowest <= staleness (Ho et al., "More
// Effective Distributed ML via a Stale Synchronous Parallel Parameter Server", NIPS 2013, section 3).
//
// A worker is active, and the bound counts its clock, from the pull that begins (see Pull) until its final push or
// until it leaves the roster. While it loads data or waits for records it isn't active. When it begins, the shard and
// the worker both raise its clock, so that it has no steps to catch up. A worker that lost its connection stays active:
// it comes back, or the chief takes it out of the roster.
//
// Example, staleness 2:
// 1. Workers A and B are at clocks 5 and 3. A pushes 6: 6 - 3 > 2, so A's answer waits.
// 2. B pushes 4: 6 - 4 <= 2, and A gets its parameters.
// 3. C begins now: enter() returns 4, the slowest clock. From 0, C would block A for four steps.
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

  // A worker begins, or begins again: it starts at the clock of the slowest active worker, so that it doesn't hold the
  // others back for steps that it never did. While nobody is active it starts at the highest clock that any worker ever
  // had: workers that come one by one would otherwise start from clocks further apart than the bound. Returns the
  // worker's clock.
  Step enter(Member member, Step last_clock);
  void leave(Member member) { clocks_.erase(member); }
  void pushed(Member member, Step clock);

  // None: no worker is active.
  std::optional<Step> slowest() const;
  // The clock of a worker that begins now.
  Step start() const { return slowest().value_or(furthest_); }

  // `slowest`: the result of slowest(), which scans all clocks.
  bool may_go_on(Step clock, std::optional<Step> slowest) const;

  std::vector<Member> members() const;

 private:
  const std::uint64_t staleness_;
  std::map<Member, Step> clocks_;
  Step furthest_;  // highest clock that any worker ever had
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
