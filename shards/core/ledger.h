// The pacer's list of which records of each epoch have been visited. The chief never lends a record of this list again,
// so that each record of an epoch counts once (I11).
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "common/interval_set.h"
#include "common/messages/control.h"
#include "common/result.h"

namespace disttrain::shards {

class Ledger {
 public:
  // How many epochs a push may be ahead of the oldest incomplete epoch. Workers hold leases of only a few epochs, so a
  // push beyond this limit is an error of its worker.
  static constexpr std::uint32_t kMaxOpenEpochs = 16 * 1024;

  // `records`: the number of records in an epoch; 0 if the job keeps no ledger.
  explicit Ledger(std::uint64_t records) : records_(records) {}
  // Continues from a restored checkpoint. The arguments are PacerReport::complete_epochs and PacerReport::ledger.
  void restore(std::uint32_t complete_epochs, const std::vector<EpochLedger>& open);

  // Checks the positions of a push before the shard takes the push; changes nothing. kData: the epoch or a position is
  // out of range.
  Status check(std::uint32_t epoch, std::span<const Interval> positions) const;

  // Marks the positions as visited; check() must have accepted them. Returns whether the number of complete epochs
  // grew.
  bool visit(std::uint32_t epoch, std::span<const Interval> positions);

  // All epochs below this number are complete.
  std::uint32_t complete_epochs() const { return complete_; }

  // The ledgers of all epochs from the first incomplete one to the last visited one.
  std::vector<EpochLedger> open_epochs() const;

 private:
  const std::uint64_t records_;
  std::uint32_t complete_ = 0;
  std::map<std::uint32_t, IntervalSet> open_;  // epochs >= complete_
};

}  // namespace disttrain::shards
