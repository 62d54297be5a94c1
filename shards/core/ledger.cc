#include "shards/core/ledger.h"

namespace disttrain::shards {

void Ledger::restore(std::uint32_t complete_epochs, const std::vector<EpochLedger>& open) {
  complete_ = complete_epochs;
  open_.clear();
  for (const EpochLedger& epoch : open)
    if (epoch.epoch >= complete_ && !epoch.visited.empty()) open_.emplace(epoch.epoch, IntervalSet(epoch.visited));
}

Status Ledger::check(std::uint32_t epoch, std::span<const Interval> positions) const {
  if (positions.empty()) return {};
  if (epoch >= complete_ && epoch - complete_ >= kMaxOpenEpochs)
    return fail(ErrorCode::kData, "a push names epoch " + std::to_string(epoch) + ", too far ahead of epoch " +
                                      std::to_string(complete_) + ", the oldest incomplete one");
  for (const Interval& interval : positions)
    if (interval.begin > interval.end || interval.end > records_)
      return fail(ErrorCode::kData, "a push names the records [" + std::to_string(interval.begin) + ", " +
                                        std::to_string(interval.end) + ") of an epoch that has " +
                                        std::to_string(records_) + " records");
  return {};
}

bool Ledger::visit(std::uint32_t epoch, std::span<const Interval> positions) {
  if (epoch < complete_ || positions.empty()) return false;
  IntervalSet& visited = open_[epoch];
  for (const Interval& interval : positions) visited.insert(interval);
  const std::uint32_t before = complete_;
  for (auto first = open_.begin(); first != open_.end() && first->first == complete_; first = open_.erase(first)) {
    if (first->second.size() < records_) break;
    ++complete_;
  }
  return complete_ != before;
}

std::vector<EpochLedger> Ledger::open_epochs() const {
  std::vector<EpochLedger> epochs;
  for (const auto& [epoch, visited] : open_) {
    while (complete_ + epochs.size() < epoch)
      epochs.push_back(EpochLedger{static_cast<std::uint32_t>(complete_ + epochs.size()), {}});
    epochs.push_back(EpochLedger{epoch, visited.to_vector()});
  }
  return epochs;
}

}  // namespace disttrain::shards
