// BatchQueue: the batches that a worker has requested from its input and hasn't computed yet, in the order of their
// computation, and its requests for leases. BatchPlan decides what is in a batch.
#pragma once

#include <cstdint>
#include <optional>

#include "common/fifo.h"
#include "workerd/core/batch_plan.h"
#include "workerd/core/events.h"

namespace disttrain::workerd {

class BatchQueue {
 public:
  explicit BatchQueue(const JobFacts& facts);

  // Events.
  void grant(const LeaseGrant& grant);
  void note_ready(BatchTicket ticket);
  // The chief is back, and may not know what this worker has asked for.
  void ask_again() { is_lease_requested_ = false; }
  void tick() { is_lease_refused_ = false; }

  // Requests batches until data.prefetch of them are there, as far as the worker holds leases.
  void fill(Actions& out);
  // Asks the chief for a lease if it is time to. `records_per_second`: how fast the worker trains.
  void request_lease(double records_per_second, Actions& out);

  bool is_empty() const { return planned_.empty(); }
  // Whether the next batch is there and ready.
  bool is_ready() const { return !planned_.empty() && planned_.front().is_ready; }
  // The next batch, if it isn't ready.
  std::optional<BatchTicket> awaited() const;
  // Removes the next batch. REQUIRES: is_ready().
  BatchOrder take();
  void drop_all(Actions& out);

  // No batch is left, and no lease will follow.
  bool is_used_up() const { return planned_.empty() && plan_.exhausted(); }
  // The job may have reached a step or a roster that this worker doesn't know.
  bool must_look_ahead() const {
    return plan_.has_missed_a_block() || (planned_.empty() && plan_.waits_for_a_roster());
  }

  // sync with leases: another roster is in force from `next` on, so all batches are void.
  void change_roster(RosterVersion roster, Step next, bool is_first, Actions& out);
  // sync with leases: drops the batches for steps before `next`.
  void skip_to(Step next, Actions& out);

 private:
  struct Planned {
    BatchOrder order;
    bool is_ready = false;
  };
  void drop_front(Actions& out);

  const std::size_t prefetch_;
  const bool has_leases_;
  BatchPlan plan_;
  Fifo<Planned> planned_;
  BatchTicket last_ticket_;
  bool is_lease_requested_ = false;
  bool is_lease_refused_ = false;  // the last grant contained nothing new; the next request is sent after the next tick
};

}  // namespace disttrain::workerd
