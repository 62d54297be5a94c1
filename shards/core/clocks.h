// ssp: limits how far the workers may drift apart. A worker's clock is the number of its own step, and each push
// carries this clock. Suppose that a worker has pushed with clock c, and that s is the lowest clock of the active
// workers. While c - s > staleness, the shard doesn't send the worker new parameters, so the worker waits. (Ho et al.,
// "More Effective Distributed ML via a Stale Synchronous Parallel Parameter Server", NIPS 2013, section 3.)
//
// A worker becomes active with a pull that has Pull::begins. It stops being active with its final push (Push::final),
// or when it leaves the roster. A worker that loads data or waits for records isn't active. When a worker becomes
// active, the shard and the worker both raise its clock to s, so that the worker has no steps to catch up. A worker
// whose connection breaks stays active, because it will reconnect, or the chief will take it out of the roster.
//
// Example, staleness 2:
// 1. Workers A and B are at clocks 5 and 3. A pushes with clock 6. 6 - 3 > 2, so A's answer waits.
// 2. B pushes with clock 4. 6 - 4 <= 2, so A gets its parameters.
// 3. Worker C becomes active. enter() returns 4, the lowest clock. With clock 0, C would block A until C had done four
//    steps.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "common/ids.h"
#include "common/mutant.h"

namespace disttrain::shards {

class Clocks {
 public:
  explicit Clocks(std::uint64_t staleness) : staleness_(staleness) {}

  // Makes a worker active, for the first time or again, and returns its clock. The worker gets at least the lowest
  // clock of the active workers, so that it doesn't block the others for steps that it never did. If no worker is
  // active, the worker gets at least the highest clock that any worker ever had. Without this second rule, two workers
  // that become active one after the other could start far apart, and one would block the other.
  Step enter(Member member, Step last_clock);
  void leave(Member member) { clocks_.erase(member); }
  void pushed(Member member, Step clock);

  // The lowest clock of the active workers; none if no worker is active.
  std::optional<Step> slowest() const;
  // The lowest clock that enter() would give to a worker now.
  Step start() const { return slowest().value_or(furthest_); }

  // Returns true if a worker at `clock` may get its parameters. `slowest` is the result of slowest(); a caller that
  // asks for several workers computes it once, because slowest() scans all clocks.
  bool may_go_on(Step clock, std::optional<Step> slowest) const;

  std::vector<Member> members() const;

 private:
  const std::uint64_t staleness_;
  std::map<Member, Step> clocks_;
  Step furthest_;  // the highest clock that any worker ever had
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

}  // namespace disttrain::shards
