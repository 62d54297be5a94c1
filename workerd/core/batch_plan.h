// BatchPlan decides which records make up a worker's next batch. With sharding = "none" each worker goes through the
// whole data set in an order of its own. Otherwise the chief lends the records in leases. In async and ssp a lease is
// for one worker. In sync all workers of the roster get the same lease; it covers several steps and is also called a
// block. See Lease in common/messages/control.h.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "workerd/core/events.h"

namespace disttrain::workerd {

struct PlanOptions {
  bool own_order = false;  // sharding = "none"
  bool sync = false;
  std::uint64_t step_records = 1;  // number of records of a batch, >= 1

  // The other options are used only if own_order is true.
  std::uint64_t records = 0;  // number of records in the data set
  std::uint64_t epochs = 0;   // number of epochs to train; 0 = no limit
  std::uint64_t done = 0;     // number of batches that the worker did before this plan began
};

class BatchPlan {
 public:
  explicit BatchPlan(const PlanOptions& options);

  // Takes a grant of the chief. Ignores its lease if the lease is void, empty or already known. Returns whether the
  // grant contained anything new.
  bool grant(const LeaseGrant& grant);

  // Returns the next batch, with ticket 0. Returns nothing if the worker holds no lease for the next batch.
  std::optional<BatchOrder> next();

  // sync: next() returns no more batches for steps before `step`. Only change_roster() can go back to an earlier step.
  void skip_to(Step step);

  // sync: `roster` is in force from `next_step` on. Leases for an older roster become void, and so does the chief's
  // statement that no lease follows for that roster (LeaseGrant::last). Leases for a newer roster are kept until that
  // roster is in force.
  void change_roster(RosterVersion roster, Step next_step);

  // sync: the worker has a block for later steps but none for the next step. The grant of the missing block was lost,
  // and the other workers may already have done the steps of that block.
  bool has_missed_a_block() const {
    return options_.sync && has_block_in_force() && held_.front().lease.first_step > next_step_;
  }

  // sync: the worker follows a roster, but all leases that it holds are for newer rosters. Answers of the shards name
  // the roster in force, so the worker must pull to learn whether the roster has changed.
  bool waits_for_a_roster() const {
    return options_.sync && roster_ && !held_.empty() && held_.front().lease.roster > *roster_;
  }

  // True if no batch is left and the chief will grant no more leases.
  bool exhausted() const;
  // True if the worker should ask for another lease now. That is so if fewer batches than `batches_ahead` are left, or
  // if less than half of the newest lease is left. In async and ssp it is also so if fewer records than `records_ahead`
  // are left.
  bool runs_dry(std::uint64_t batches_ahead, std::uint64_t records_ahead) const;

 private:
  struct Held {
    Lease lease;
    std::uint64_t records = 0;  // number of records in the lease
    std::uint64_t taken = 0;    // async, ssp: how many of them next() has already returned
  };

  bool has_block_in_force() const { return roster_ && !held_.empty() && held_.front().lease.roster == *roster_; }
  bool is_last_told() const;
  std::optional<BatchOrder> next_own();
  std::optional<BatchOrder> next_of_lease();
  std::optional<BatchOrder> next_of_block();
  void forget_past_blocks();

  const PlanOptions options_;
  std::deque<Held> held_;
  bool last_;                  // the chief said that no lease follows
  RosterVersion last_roster_;  // sync: the roster for which last_ is true
  LeaseId newest_;
  std::uint64_t newest_size_ = 0;        // size of the newest lease: its records (async, ssp) or its steps (sync)
  std::uint32_t epoch_ = 0;              // own order: epoch of the next batch
  std::uint64_t begin_ = 0;              // own order: first position of the next batch
  Step next_step_;                       // sync: step of the next batch
  std::optional<RosterVersion> roster_;  // sync: the roster in force; unknown until a shard's first answer
};

}  // namespace disttrain::workerd
