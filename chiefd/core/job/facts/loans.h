// Which records are lent to the workers of a generation, and whether the chief may lend. chiefd/core/lending.h decides
// which worker gets which records.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "chiefd/core/journal_state.h"
#include "chiefd/core/lending.h"
#include "common/messages/session.h"

namespace disttrain::chiefd {

class Loans {
 public:
  Lending lending;
  // True if the chief may lend records, because it knows the ledger. It doesn't know the ledger before training starts.
  // In sync it also doesn't know the ledger after a change of the roster, until the pacer has answered.
  bool is_allowed = false;
  std::uint64_t grants_unswept = 0;  // grants that were written since the open leases were last written

  bool is_complete() const { return lending.is_complete(); }

  // A worker has asked for records while the chief may not lend.
  void request_later(const Member& worker, double records_per_second) { early_requests_[worker] = records_per_second; }
  std::map<Member, double> take_early_requests() { return std::exchange(early_requests_, {}); }
  // Drops the requests of a worker that has finished or is lost.
  void forget(const Member& worker) {
    lending.forget(worker);
    early_requests_.erase(worker);
  }

  // Keeps the grants from before a restart of the chief, until the pacer has reported how many of their records are
  // used up.
  void take_up(const std::map<LeaseId, GrantRecord>& grants) { former_grants_ = grants; }
  const std::map<LeaseId, GrantRecord>& former_grants() const { return former_grants_; }
  // Returns the workers that hold grants from before the restart, and forgets these grants.
  std::set<Member> take_former_borrowers() {
    std::set<Member> borrowers;
    for (const auto& [lease, grant] : std::exchange(former_grants_, {})) borrowers.insert(grant.borrowers.front());
    return borrowers;
  }

  void drop_generation() {
    lending = Lending();
    is_allowed = false;
    early_requests_.clear();
    former_grants_.clear();
  }

 private:
  std::map<Member, double> early_requests_;
  std::map<LeaseId, GrantRecord> former_grants_;
};

}  // namespace disttrain::chiefd
