// ssp: how far the workers may drift apart. A worker's clock is the number of its own step, carried by its pushes;
// after push c it gets parameters, and so may compute on, only while c - slowest <= staleness (Ho et al., "More
// Effective Distributed ML via a Stale Synchronous Parallel Parameter Server", NIPS 2013, section 3).
//
// Who pushes no more (it left the roster, it said so with its last push) holds nobody back. Who said so because it
// waited for records comes back with its next push. A worker whose connection is away holds the others to the bound:
// it comes back, or the chief takes it out of the roster.
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
  // did.
  void enter(Member member, Step last_clock);
  void leave(Member member) { clocks_.erase(member); }
  void pushed(Member member, Step clock);

  // None: nobody is at work.
  std::optional<Step> slowest() const;

  bool may_go_on(Step clock) const;

  std::vector<Member> members() const;

 private:
  const std::uint64_t staleness_;
  std::map<Member, Step> clocks_;
};

inline void Clocks::enter(Member member, Step last_clock) {
  leave(member);
  clocks_[member] = std::max(last_clock, slowest().value_or(last_clock));
}

inline void Clocks::pushed(Member member, Step clock) {
  const auto found = clocks_.find(member);
  if (found == clocks_.end()) return enter(member, clock);
  found->second = std::max(found->second, clock);
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

inline bool Clocks::may_go_on(Step clock) const {
  const Step least = slowest().value_or(clock);
  if (DISTTRAIN_MUTANT(kLooseBound)) return clock <= least || clock.value - least.value <= staleness_ + 1;
  return clock <= least || clock.value - least.value <= staleness_;
}

}  // namespace disttrain::psd
