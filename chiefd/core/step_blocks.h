// The leases of sync. A lease is a block of steps, which the chief lends to the whole roster at once. From the block,
// the step and its own rank, a worker knows which records to read. This class does no I/O.
//
// The chief grants blocks in advance, so that no worker waits for the chief at the end of an epoch. When a gradient
// comes too late and is dropped, its records stay unvisited. They go into another block of the same epoch, after all
// earlier blocks of this epoch are committed.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "common/interval_set.h"
#include "common/messages/control.h"

namespace disttrain::chiefd {

class StepBlocks {
 public:
  struct Options {
    std::uint64_t records = 0;       // at least 1
    std::uint64_t step_records = 0;  // of one worker, at least 1
    std::uint64_t epochs = 0;        // 0 = no limit
    std::uint32_t ranks = 0;         // members of the roster, at least 1
    RosterVersion roster;
    bool may_be_late = false;  // true: late gradients are dropped, because the job has backup workers
  };
  // Where to begin: after `step`, with the records that aren't in the ledger.
  struct Begin {
    Step step;
    std::uint32_t complete_epochs = 0;
    std::vector<EpochLedger> ledger;
    LeaseId last_id;  // new leases get numbers above this one
  };
  StepBlocks(const Options& options, const Begin& begin);
  explicit StepBlocks(const Options& options) : StepBlocks(options, Begin()) {}

  struct Grants {
    std::vector<Lease> leases;  // each lease goes to all members of the roster; the caller sets the `rank` of each
    bool last = false;          // true: no other block will follow; next() says so only once
  };
  // The blocks to grant now.
  Grants next();

  // The granted blocks that have uncommitted steps, oldest first. The caller sets `rank`.
  std::vector<Lease> open_blocks() const { return std::vector<Lease>(blocks_.begin(), blocks_.end()); }
  bool is_last_told() const { return last_told_; }
  LeaseId last_id() const { return last_id_; }
  // Returns true if every record of every epoch is visited. With `epochs` = 0, always returns false.
  bool is_complete() const { return options_.epochs != 0 && complete_epochs_ >= options_.epochs; }

  // Takes a report of the pacer.
  void note_ledger(Step global_step, std::uint32_t complete_epochs, const std::vector<EpochLedger>& ledger);

 private:
  struct Epoch {
    IntervalSet visited;
    Step last_step;  // of its last block
  };

  bool enough_ahead() const;
  Lease make_block(std::uint32_t epoch, std::vector<Interval> positions);
  // Appends to `leases` a block of these positions, or several if they are in many pieces.
  void add_blocks(std::uint32_t epoch, const std::vector<Interval>& positions, std::vector<Lease>& leases);
  // If an epoch has unvisited records although all its blocks are committed, appends blocks of these records to
  // `leases` and returns true.
  bool append_holes(std::vector<Lease>& leases);

  const Options options_;

  Step global_step_;
  std::uint32_t complete_epochs_ = 0;
  std::uint32_t next_epoch_ = 0;
  Step next_step_{1};
  std::map<std::uint32_t, Epoch> open_;   // the epochs that have blocks, and that may still have unvisited records
  std::deque<Lease> blocks_;              // the granted blocks that aren't committed yet
  std::deque<std::uint32_t> unfinished_;  // the epochs that the ledger shows as incomplete, and that have no block yet
  LeaseId last_id_;
  bool last_told_ = false;
};

}  // namespace disttrain::chiefd
