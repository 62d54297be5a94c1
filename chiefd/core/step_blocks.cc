#include "chiefd/core/step_blocks.h"

#include <algorithm>
#include <utility>

#include "common/bounds.h"
#include "common/check.h"

namespace disttrain::chiefd {
namespace {

// The chief grants the current block and the next one. If epochs are short, the workers could use up both before the
// pacer's next heartbeat. So the chief then grants blocks for kStepsAhead steps, and none while it has kMaxBlocks
// blocks.
constexpr std::uint64_t kStepsAhead = 5000;
constexpr std::size_t kMaxBlocks = 64;
// The most intervals of a block, and so of a batch: a push has the intervals of its batch.
constexpr std::size_t kMostIntervals = kMaxVisited;

Step last_step_of(const Lease& block) {
  return Step(block.first_step.value + block.steps - 1);
}

}  // namespace

StepBlocks::StepBlocks(const Options& options, const Begin& begin)
    : options_(options),
      global_step_(begin.step),
      complete_epochs_(begin.complete_epochs),
      next_epoch_(begin.complete_epochs),
      next_step_(begin.step.next()),
      last_id_(begin.last_id) {
  DISTTRAIN_CHECK_GE(options.records, 1u);
  DISTTRAIN_CHECK_GE(options.step_records, 1u);
  DISTTRAIN_CHECK_GE(options.ranks, 1u);
  for (const EpochLedger& entry : begin.ledger) {
    if (entry.epoch < complete_epochs_) continue;
    for (; next_epoch_ <= entry.epoch; ++next_epoch_) unfinished_.push_back(next_epoch_);
    Epoch& epoch = open_[entry.epoch];
    epoch.visited = IntervalSet(entry.visited);
    if (epoch.visited.size() < options_.records) continue;
    open_.erase(entry.epoch);
    std::erase(unfinished_, entry.epoch);
  }
}

bool StepBlocks::enough_ahead() const {
  if (blocks_.size() >= kMaxBlocks) return true;
  return blocks_.size() >= 2 && next_step_.value - 1 - global_step_.value >= kStepsAhead;
}

Lease StepBlocks::make_block(std::uint32_t epoch, std::vector<Interval> positions) {
  const std::uint64_t per_step = options_.ranks * options_.step_records;
  std::uint64_t items = 0;
  for (const Interval& interval : positions) items += interval.end - interval.begin;
  Lease lease;
  lease.id = last_id_ = last_id_.next();
  lease.epoch = epoch;
  lease.first_step = next_step_;
  lease.steps = (items + per_step - 1) / per_step;
  lease.positions = std::move(positions);
  lease.ranks = options_.ranks;
  lease.roster = options_.roster;
  next_step_ = Step(next_step_.value + lease.steps);
  open_[epoch].last_step = last_step_of(lease);
  blocks_.push_back(lease);
  return lease;
}

void StepBlocks::add_blocks(std::uint32_t epoch, const std::vector<Interval>& positions, std::vector<Lease>& leases) {
  for (std::size_t begin = 0; begin < positions.size(); begin += kMostIntervals) {
    const auto first = positions.begin() + static_cast<std::ptrdiff_t>(begin);
    const std::size_t count = std::min(kMostIntervals, positions.size() - begin);
    leases.push_back(make_block(epoch, {first, first + static_cast<std::ptrdiff_t>(count)}));
  }
}

bool StepBlocks::append_holes(std::vector<Lease>& leases) {
  for (const auto& [epoch, state] : open_) {
    if (state.last_step > global_step_) continue;
    std::vector<Interval> lacking = state.visited.complement(Interval{0, options_.records});
    if (lacking.empty()) continue;
    add_blocks(epoch, lacking, leases);
    return true;
  }
  return false;
}

StepBlocks::Grants StepBlocks::next() {
  Grants grants;
  if (last_told_) return grants;
  while (!enough_ahead()) {
    if (!unfinished_.empty()) {
      const std::uint32_t epoch = unfinished_.front();
      unfinished_.pop_front();
      add_blocks(epoch, open_[epoch].visited.complement(Interval{0, options_.records}), grants.leases);
      continue;
    }
    if (options_.may_be_late && append_holes(grants.leases)) continue;
    if (options_.epochs != 0 && next_epoch_ >= options_.epochs) {
      grants.last = last_told_ = !options_.may_be_late || open_.empty();
      break;
    }
    const std::uint32_t epoch = next_epoch_++;
    grants.leases.push_back(make_block(epoch, {Interval{0, options_.records}}));
  }
  return grants;
}

void StepBlocks::note_ledger(Step global_step, std::uint32_t complete_epochs, const std::vector<EpochLedger>& ledger) {
  if (global_step < global_step_) return;
  global_step_ = global_step;
  complete_epochs_ = std::max(complete_epochs_, std::min(complete_epochs, next_epoch_));
  std::erase_if(open_, [this](const auto& entry) { return entry.first < complete_epochs_; });
  for (const EpochLedger& entry : ledger) {
    const auto epoch = open_.find(entry.epoch);
    if (epoch != open_.end()) epoch->second.visited = IntervalSet(entry.visited);
  }
  // An epoch may complete before an older epoch that still has unvisited records. It is complete when its visited
  // intervals cover all records.
  std::erase_if(open_, [this](const auto& entry) { return entry.second.visited.size() == options_.records; });
  std::erase_if(blocks_, [this](const Lease& block) { return last_step_of(block) <= global_step_; });
}

}  // namespace disttrain::chiefd
