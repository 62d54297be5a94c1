// BatchPlan: which records make the next batch. They come from the worker's own order over the whole set, from its own
// leases (async, ssp), or from blocks of steps lent to a whole roster (sync). See Lease in common/messages/control.h.
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
  std::uint64_t done = 0;        // own order: batches done before this plan began
};

class BatchPlan {
 public:
  explicit BatchPlan(const PlanOptions& options);

  // Ignores a lease that is void, empty or already known. False: the grant brought nothing new.
  bool grant(const LeaseGrant& grant);

  // The next batch (its ticket is 0), or nothing while there is no lease for it.
  std::optional<BatchOrder> next();

  // sync: batches of earlier steps are no longer wanted. Only change_roster() goes back to an earlier step.
  void skip_to(Step step);

  // sync: the roster in force from `next_step` on. Leases and `last` for an older roster are void. Leases for a newer
  // roster wait until it is in force.
  void change_roster(RosterVersion roster, Step next_step);

  // sync: the block of the next step is missing, but a later one is here: the missing one was lost, and the others may
  // be past it.
  bool has_missed_a_block() const {
    return options_.sync && has_block_in_force() && held_.front().lease.first_step > next_step_;
  }

  // sync: the leases here are for a roster that isn't in force yet, as far as this worker knows. Shards answer only
  // pushes, so the worker must ask.
  bool waits_for_a_roster() const {
    return options_.sync && roster_ && !held_.empty() && held_.front().lease.roster > *roster_;
  }

  // No batch is left and no lease follows.
  bool exhausted() const;
  // Whether to ask for another lease now: fewer batches are left than `batches_ahead`, or fewer than half of the newest
  // lease or, with leases of its own, fewer records than `records_ahead`.
  bool runs_dry(std::uint64_t batches_ahead, std::uint64_t records_ahead) const;

 private:
  struct Held {
    Lease lease;
    std::uint64_t records = 0;  // sum of its positions
    std::uint64_t taken = 0;    // async: records already given out
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
  RosterVersion last_roster_;  // sync: the roster for which `last` holds
  LeaseId newest_;
  std::uint64_t newest_size_ = 0;  // records (async) or steps (sync) of the newest lease
  std::uint32_t epoch_ = 0;        // own order
  std::uint64_t begin_ = 0;
  Step next_step_;                       // sync
  std::optional<RosterVersion> roster_;  // sync; none until a shard's first answer
};

}  // namespace disttrain::workerd
