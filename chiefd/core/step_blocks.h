// Leases of sync: blocks of steps, each lent to a whole roster at once. The block, the step and the rank determine
// which records a worker reads. Pure.
//
// Blocks are granted ahead, so that no worker waits for the chief at the end of an epoch. A dropped (late) gradient
// leaves records unvisited. They go into a further block of the same epoch, once all its blocks are committed.
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
    std::uint64_t records = 0;     // at least 1
    std::uint32_t batch_size = 0;  // at least 1
    std::uint64_t epochs = 0;      // 0 = no limit
    std::uint32_t ranks = 0;       // members of the roster, at least 1
    RosterVersion roster;
    bool may_be_late = false;  // backup workers: gradients can be dropped
  };
  // Where to begin: after `step`, with the records that the ledger lacks.
  struct Begin {
    Step step;
    std::uint32_t complete_epochs = 0;
    std::vector<EpochLedger> ledger;
    LeaseId last_id;  // of leases that were given out before
  };
  StepBlocks(const Options& options, const Begin& begin);
  explicit StepBlocks(const Options& options) : StepBlocks(options, Begin()) {}

  struct Grants {
    std::vector<Lease> leases;  // for each member of the roster, `rank` left to be set
    bool last = false;          // no block will ever follow; set once
  };
  // The blocks to grant now.
  Grants next();

  // Granted and not wholly committed, oldest first; `rank` left to be set.
  std::vector<Lease> open_blocks() const { return std::vector<Lease>(blocks_.begin(), blocks_.end()); }
  bool is_last_told() const { return last_told_; }
  LeaseId last_id() const { return last_id_; }
  // Every record of every epoch is visited.
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
  // Appends a block of the records that an epoch lacks after all its blocks are committed.
  bool append_holes(std::vector<Lease>& leases);

  const Options options_;

  Step global_step_;
  std::uint32_t complete_epochs_ = 0;
  std::uint32_t next_epoch_ = 0;
  Step next_step_{1};
  std::map<std::uint32_t, Epoch> open_;   // granted and not known to be complete
  std::deque<Lease> blocks_;              // that aren't committed yet
  std::deque<std::uint32_t> unfinished_;  // epochs of the ledger that lack records and have no block yet
  LeaseId last_id_;
  bool last_told_ = false;
};

}  // namespace disttrain::chiefd
