// Leases of async and ssp: each worker borrows records of its own. The pacer's ledger says which records were visited.
// Pure.
//
// Within an epoch, positions that are lent and not given back are disjoint, and only positions that the ledger lacks
// are lent again. So each record is visited exactly once an epoch, whichever tasks die.
//
//   1. worker/1 holds positions 0 to 99. The ledger has 0 to 39 when worker/1 dies.
//   2. A push with 40 to 49 may still be on its way, so nothing is lent again until all shards have fenced worker/1.
//   3. The ledger as of then has 0 to 49: positions 50 to 99 are lent again.
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
  // epochs = 0: no limit. records and batch_size are at least 1.
  // Leases get numbers above `last_id`.
  RecordLeases(std::uint64_t records, std::uint32_t batch_size, std::uint64_t epochs, LeaseId last_id = {});

  // Restore the visited positions of a ledger, then the leases that workers hold. Call these before anything else.
  void restore(std::uint32_t complete_epochs, const std::vector<EpochLedger>& ledger);
  void hold(LeaseId id, const Member& borrower, const Lease& lease);

  // A lease for one of `workers` workers; this one reads `rate` records per second (0: unknown). None: no records are
  // free now, see complete().
  //
  // Size: min(60 s at the rate, what is left of the epoch / (4 x workers)), but at least a quarter of a second's worth
  // while everyone can still get as much, so that short epochs don't cost a durable grant every few steps. A multiple
  // of batch_size, but for the epoch's end.
  std::optional<Lease> lend(const Member& to, double rate, std::uint32_t workers);

  // Takes a report of the pacer. A report that is older than the newest does no harm: a ledger only grows.
  void note_ledger(std::uint32_t complete_epochs, const std::vector<EpochLedger>& ledger);

  // Frees the positions of the worker's leases that the ledger lacks. Call only after all shards have fenced the worker
  // and the ledger as of then was noted.
  void give_back(const Member& from);

  // The worker's leases that aren't wholly visited, oldest first.
  std::vector<Lease> held_by(const Member& borrower) const;

  // All leases that aren't wholly visited.
  std::vector<LeaseId> open() const;

  // Every record of every epoch is visited. Always false with epochs = 0.
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
  std::uint64_t lease_size(std::uint64_t left, double rate, std::uint32_t workers) const;

  const std::uint64_t records_;
  const std::uint64_t batch_size_;
  const std::uint64_t epochs_;

  std::uint32_t complete_epochs_ = 0;
  std::uint32_t next_epoch_ = 0;                // the first that isn't open yet
  std::map<std::uint32_t, Epoch> epochs_open_;  // not complete
  std::map<LeaseId, Held> held_;
  LeaseId last_id_;
};

}  // namespace disttrain::chiefd
