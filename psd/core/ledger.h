// Which records of each epoch have been visited. The chief lends records by this ledger (I11). Owned by the pacer.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "common/interval_set.h"
#include "common/messages/control.h"
#include "common/result.h"

namespace disttrain::psd {

class Ledger {
 public:
  // Epochs that may be open at once. Workers hold leases of few epochs; a bigger number is a peer's mistake.
  static constexpr std::uint32_t kMaxOpenEpochs = 16 * 1024;

  // records: length of an epoch; 0 if the job keeps no ledger.
  explicit Ledger(std::uint64_t records) : records_(records) {}
  // Sets the state of the checkpoint that is restored; arguments as in PacerReport.
  void restore(std::uint32_t complete_epochs, const std::vector<EpochLedger>& open);

  // kData when a position or the epoch is out of range. Changes nothing: a push is checked before it is taken.
  Status check(std::uint32_t epoch, std::span<const Interval> positions) const;

  // Marks positions that check() accepted. Returns whether the number of complete epochs grew.
  bool visit(std::uint32_t epoch, std::span<const Interval> positions);

  // All epochs below this number are complete.
  std::uint32_t complete_epochs() const { return complete_; }

  // Ledgers of the epochs from the first incomplete one to the last one that was visited.
  std::vector<EpochLedger> open_epochs() const;

 private:
  const std::uint64_t records_;
  std::uint32_t complete_ = 0;
  std::map<std::uint32_t, IntervalSet> open_;  // epochs >= complete_
};

}  // namespace disttrain::psd
