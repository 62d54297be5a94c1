// Leases of sync: blocks of steps lent to a whole roster at once, so that which records a step reads is a function of
// the block, the step and the rank. Pure.
//
// Blocks are granted ahead: nobody waits for the chief at an epoch's border. Records that a dropped (late) gradient
// left unvisited are put into a further block of the same epoch, once all its blocks are committed.
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
  // What was done before: blocks begin after `step`, with what the ledger lacks.
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
    bool last = false;          // nothing follows, now or ever; told once
  };
  // What is to be granted now.
  Grants next();

  // Granted and not wholly committed, oldest first; `rank` left to be set.
  std::vector<Lease> open_blocks() const { return std::vector<Lease>(blocks_.begin(), blocks_.end()); }
  bool is_last_told() const { return last_told_; }
  LeaseId last_id() const { return last_id_; }
  // Every record of every epoch is visited.
  bool is_complete() const { return options_.epochs != 0 && complete_epochs_ >= options_.epochs; }

  // What the pacer reports.
  void note_ledger(Step global_step, std::uint32_t complete_epochs, const std::vector<EpochLedger>& ledger);

 private:
  struct Epoch {
    IntervalSet visited;
    Step last_step;  // of its last block
  };

  bool enough_ahead() const;
  Lease make_block(std::uint32_t epoch, std::vector<Interval> positions);
  // A block of what an epoch lacks, whose blocks are all committed.
  bool append_holes(std::vector<Lease>& leases);

  const Options options_;

  Step global_step_;
  std::uint32_t complete_epochs_ = 0;
  std::uint32_t next_epoch_ = 0;
  Step next_step_{1};
  std::map<std::uint32_t, Epoch> open_;   // granted and not known to be complete
  std::deque<Lease> blocks_;              // that aren't committed yet
  std::deque<std::uint32_t> unfinished_;  // epochs that were begun before and lack records, no block of which was made
  LeaseId last_id_;
  bool last_told_ = false;
};

}  // namespace disttrain::chiefd
