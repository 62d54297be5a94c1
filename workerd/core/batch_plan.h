// BatchPlan: which records make the next batch. Three ways: the worker's own order over the whole set, leases of its
// own (async, ssp), blocks of steps lent to a whole roster (sync). See Lease in common/messages/control.h.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "workerd/core/events.h"

namespace disttrain::workerd {

struct PlanOptions {
  bool own_order = false;  // sharding = "none"
  bool sync = false;
  std::uint64_t batch_size = 1;  // >= 1
  std::uint64_t records = 0;     // own order
  std::uint64_t epochs = 0;      // own order; 0 = no limit
  std::uint64_t done = 0;        // own order: batches that were done before
};

class BatchPlan {
 public:
  explicit BatchPlan(const PlanOptions& options);

  // A lease that is void, empty or already known is ignored. False: the grant said nothing new.
  bool grant(const LeaseGrant& grant);

  // The next batch (its ticket is 0), or nothing while there is no lease to take it from.
  std::optional<BatchOrder> next();

  // sync: batches of earlier steps aren't wanted any more. Never goes back but by change_roster.
  void skip_to(Step step);

  // sync: the roster in force from `next_step` on; leases for an older one are void, and `last` said for it too. Those
  // for a newer one wait until it is in force.
  void change_roster(RosterVersion roster, Step next_step);

  // sync: the block of the next step isn't here, but a later one is: it was lost, and the others may be beyond it.
  bool has_missed_a_block() const {
    return options_.sync && has_block_in_force() && held_.front().lease.first_step > next_step_;
  }

  // sync: what is here is lent to a roster that isn't in force yet, as far as we know: nobody answers us while we push
  // nothing, so that we must ask.
  bool waits_for_a_roster() const {
    return options_.sync && roster_ && !held_.empty() && held_.front().lease.roster > *roster_;
  }

  // Nothing is left and nothing follows.
  bool exhausted() const;
  // Another lease would help soon: less is left than so many batches, than half of the newest lease or, where leases
  // are its own, than so many records.
  bool runs_dry(std::uint64_t batches_ahead, std::uint64_t records_ahead) const;

 private:
  struct Held {
    Lease lease;
    std::uint64_t records = 0;  // sum of its positions
    std::uint64_t taken = 0;    // async: records handed out
  };

  bool has_block_in_force() const { return roster_ && !held_.empty() && held_.front().lease.roster == *roster_; }
  bool is_last_told() const;
  std::optional<BatchOrder> next_own();
  std::optional<BatchOrder> next_of_lease();
  std::optional<BatchOrder> next_of_block();
  void forget_past_blocks();

  const PlanOptions options_;
  std::deque<Held> held_;
  bool last_;
  RosterVersion last_roster_;  // sync: that `last` was said for
  LeaseId newest_;
  std::uint64_t newest_size_ = 0;  // records (async) or steps (sync) of the newest lease
  std::uint32_t epoch_ = 0;        // own order
  std::uint64_t begin_ = 0;
  Step next_step_;                       // sync
  std::optional<RosterVersion> roster_;  // sync; none until the first answer of a shard
};

}  // namespace disttrain::workerd
