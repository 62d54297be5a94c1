// The leases of async and ssp. Each worker borrows records of its own. The pacer's ledger says which records the job
// has visited. This class does no I/O.
//
// A lease lists positions in an epoch, and each position stands for one record. A position is never lent to two workers
// at the same time, and a position that is in the ledger is never lent again. So each record is visited exactly once in
// an epoch, whichever tasks die. For example:
//
//   1. worker/1 holds the positions 0 to 99. The ledger has the positions 0 to 39 when worker/1 dies.
//   2. A push with the positions 40 to 49 may still be on its way. So the chief lends nothing again until all shards
//      have fenced worker/1.
//   3. After the fence, the ledger has the positions 0 to 49. The chief lends the positions 50 to 99 again.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "common/interval_set.h"
#include "common/messages/control.h"

namespace disttrain::chiefd {

class RecordLeases {
 public:
  // With `epochs` = 0 the number of epochs has no limit. `records` and `step_records` must be at least 1. New leases
  // get numbers above `last_id`.
  RecordLeases(std::uint64_t records, std::uint64_t step_records, std::uint64_t epochs, LeaseId last_id = {});

  // Call these before any other function: restore() with the ledger, and then hold() for each lease that a worker
  // already holds.
  void restore(std::uint32_t complete_epochs, const std::vector<EpochLedger>& ledger);
  void hold(LeaseId id, const Member& borrower, const Lease& lease);

  // Grants a lease to the worker `to`, which is one of `workers` workers and reads `rate` records per second (0:
  // unknown). None: no records are free now. See complete().
  //
  // The lease has a quarter of the worker's equal share of the epoch's free records, but not more records than the
  // worker reads in 60 s. If the worker would read that quarter in less than 0.25 s, the lease has as many records as
  // the worker reads in 0.25 s, but at most the whole share. Without this rule, a short epoch would need a durable
  // grant every few steps. The size is a multiple of step_records, except at the end of the epoch.
  std::optional<Lease> lend(const Member& to, double rate, std::uint32_t workers);

  // Notes the ledger of a report of the pacer. An older report than before does no harm, because a ledger only grows.
  void note_ledger(std::uint32_t complete_epochs, const std::vector<EpochLedger>& ledger);

  // Takes back the positions of the worker's leases that aren't in the ledger. Call this only after all shards have
  // fenced the worker, and after note_ledger() has got a ledger that includes the worker's last push.
  void give_back(const Member& from);

  // The leases of this worker that have unvisited positions, oldest first.
  std::vector<Lease> held_by(const Member& borrower) const;
  // True if the borrower has as many open leases as one worker may have, so that all workers' fit into one record of
  // the journal. A worker that works through its leases never has.
  bool has_most(const Member& borrower) const;

  // All leases that have unvisited positions.
  std::vector<LeaseId> open() const;

  // Returns true if every record of every epoch is visited. With `epochs` = 0, always returns false.
  bool complete() const;

 private:
  struct Held {
    Member borrower;
    std::uint32_t epoch = 0;
    std::vector<Interval> positions;
  };
  struct Epoch {
    IntervalSet free;
    IntervalSet visited;
  };

  bool open_next_epoch();
  std::map<LeaseId, Held>::iterator drop(std::map<LeaseId, Held>::iterator held);
  std::uint64_t lease_size(std::uint64_t left, double rate, std::uint32_t workers) const;

  const std::uint64_t records_;
  const std::uint64_t step_records_;
  const std::uint64_t epochs_;

  std::uint32_t complete_epochs_ = 0;
  std::uint32_t next_epoch_ = 0;                // the first epoch from which nothing has been lent yet
  std::map<std::uint32_t, Epoch> epochs_open_;  // not complete
  std::map<LeaseId, Held> held_;
  std::map<Member, std::size_t> counts_;  // of held_, by borrower; no count is 0
  LeaseId last_id_;
};

}  // namespace disttrain::chiefd
