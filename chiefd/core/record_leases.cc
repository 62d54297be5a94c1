#include "chiefd/core/record_leases.h"

#include <algorithm>

#include "common/check.h"
#include "common/mutant.h"

namespace disttrain::chiefd {
namespace {

// Records are lent from at most this many incomplete epochs. This limits the size of the ledger if a worker is slow.
constexpr std::uint32_t kMaxOpenEpochs = 8;
// It is far more than a worker can work through until the pacer's next report.
constexpr std::size_t kMaxLeasesOfOne = 1000;
// The most intervals of a lease. With so many, a lease still fits into a control message of 64 KiB.
constexpr std::size_t kMaxIntervals = 1000;
constexpr double kLongestSeconds = 60.0;
constexpr double kShortestSeconds = 0.25;
// The longest lease, in batches, while the rate of a worker isn't known.
constexpr std::uint64_t kFirstBatches = 1000;

// Removes the first `count` positions of `set`, and returns them as intervals. If `count` positions make more than
// kMaxIntervals intervals, removes only the positions in the first kMaxIntervals.
std::vector<Interval> take_front(IntervalSet& set, std::uint64_t count) {
  std::vector<Interval> taken;
  for (Interval first : set.to_vector()) {
    if (count == 0 || taken.size() == kMaxIntervals) break;
    first.end = std::min(first.end, first.begin + count);
    count -= set.erase(first);
    taken.push_back(first);
  }
  return taken;
}

// The positions that aren't visited yet.
IntervalSet lacking(const std::vector<Interval>& positions, const IntervalSet& visited) {
  IntervalSet rest;
  for (const Interval& interval : positions)
    for (const Interval& gap : visited.complement(interval)) rest.insert(gap);
  return rest;
}

}  // namespace

RecordLeases::RecordLeases(std::uint64_t records, std::uint64_t step_records, std::uint64_t epochs, LeaseId last_id)
    : records_(records), step_records_(step_records), epochs_(epochs), last_id_(last_id) {
  DISTTRAIN_CHECK_GE(records, 1u);
  DISTTRAIN_CHECK_GE(step_records, 1u);
}

void RecordLeases::restore(std::uint32_t complete_epochs, const std::vector<EpochLedger>& ledger) {
  complete_epochs_ = next_epoch_ = complete_epochs;
  for (const EpochLedger& entry : ledger) {
    if (entry.epoch < complete_epochs) continue;
    for (; next_epoch_ <= entry.epoch; ++next_epoch_) epochs_open_[next_epoch_].free.insert(Interval{0, records_});
    Epoch& epoch = epochs_open_[entry.epoch];
    epoch.visited = IntervalSet(entry.visited);
    for (const Interval& interval : entry.visited) epoch.free.erase(interval);
  }
}

void RecordLeases::hold(LeaseId id, const Member& borrower, const Lease& lease) {
  last_id_ = std::max(last_id_, id);
  if (lease.epoch < complete_epochs_) return;
  for (; next_epoch_ <= lease.epoch; ++next_epoch_) epochs_open_[next_epoch_].free.insert(Interval{0, records_});
  Epoch& epoch = epochs_open_[lease.epoch];
  if (lacking(lease.positions, epoch.visited).empty()) return;
  for (const Interval& interval : lease.positions) epoch.free.erase(interval);
  const bool is_new = held_.insert_or_assign(id, Held{borrower, lease.epoch, lease.positions}).second;
  DISTTRAIN_CHECK(is_new);
  ++counts_[borrower];
}

std::vector<LeaseId> RecordLeases::open() const {
  std::vector<LeaseId> ids;
  for (const auto& [id, held] : held_) ids.push_back(id);
  return ids;
}

bool RecordLeases::open_next_epoch() {
  if (epochs_ != 0 && next_epoch_ >= epochs_) return false;
  if (next_epoch_ >= complete_epochs_ + kMaxOpenEpochs) return false;
  epochs_open_[next_epoch_++].free.insert(Interval{0, records_});
  return true;
}

std::uint64_t RecordLeases::lease_size(std::uint64_t left, double rate, std::uint32_t workers) const {
  const auto worth = [rate](double seconds) { return static_cast<std::uint64_t>(std::min(rate * seconds, 1e15)); };
  const std::uint64_t fair = left / (4 * std::uint64_t{workers});
  const std::uint64_t brief = std::min(worth(kShortestSeconds), left / workers);
  const std::uint64_t longest = rate > 0 ? worth(kLongestSeconds) : kFirstBatches * step_records_;
  const std::uint64_t size = std::min(longest, std::max(fair, brief));
  return std::max(size / step_records_ * step_records_, step_records_);
}

std::optional<Lease> RecordLeases::lend(const Member& to, double rate, std::uint32_t workers) {
  DISTTRAIN_CHECK_GE(workers, 1u);
  const auto has_free = [](const auto& entry) { return !entry.second.free.empty(); };
  auto epoch = std::find_if(epochs_open_.begin(), epochs_open_.end(), has_free);
  if (epoch == epochs_open_.end()) {
    if (!open_next_epoch()) return std::nullopt;
    epoch = std::prev(epochs_open_.end());
  }
  IntervalSet& free = epoch->second.free;
  Lease lease;
  lease.id = last_id_ = last_id_.next();
  lease.epoch = epoch->first;
  lease.positions = take_front(free, lease_size(free.size(), rate, workers));
  held_[lease.id] = Held{to, lease.epoch, lease.positions};
  ++counts_[to];
  return lease;
}

void RecordLeases::note_ledger(std::uint32_t complete_epochs, const std::vector<EpochLedger>& ledger) {
  // Ignore a wrong report that calls an epoch complete before any of its records was lent.
  complete_epochs_ = std::max(complete_epochs_, std::min(complete_epochs, next_epoch_));
  std::erase_if(epochs_open_, [this](const auto& entry) { return entry.first < complete_epochs_; });
  for (const EpochLedger& entry : ledger) {
    const auto epoch = epochs_open_.find(entry.epoch);
    if (epoch == epochs_open_.end()) continue;
    IntervalSet visited(entry.visited);
    if (visited.size() >= epoch->second.visited.size()) epoch->second.visited = std::move(visited);
  }
  for (auto it = held_.begin(); it != held_.end();) {
    const auto epoch = epochs_open_.find(it->second.epoch);
    const bool is_done = epoch == epochs_open_.end() || lacking(it->second.positions, epoch->second.visited).empty();
    it = is_done ? drop(it) : std::next(it);
  }
}

void RecordLeases::give_back(const Member& from) {
  for (auto it = held_.begin(); it != held_.end();) {
    if (it->second.borrower != from) {
      ++it;
      continue;
    }
    const auto epoch = epochs_open_.find(it->second.epoch);
    if (epoch != epochs_open_.end()) {
      const IntervalSet none;
      const IntervalSet& visited = DISTTRAIN_MUTANT(kWholeLeaseGivenBack) ? none : epoch->second.visited;
      for (const Interval& gap : lacking(it->second.positions, visited).to_vector()) epoch->second.free.insert(gap);
    }
    it = drop(it);
  }
}

std::map<LeaseId, RecordLeases::Held>::iterator RecordLeases::drop(std::map<LeaseId, Held>::iterator held) {
  const auto count = counts_.find(held->second.borrower);
  DISTTRAIN_CHECK(count != counts_.end());
  if (--count->second == 0) counts_.erase(count);
  return held_.erase(held);
}

// Asked for each worker that waits, at each message that may free records.
bool RecordLeases::has_most(const Member& borrower) const {
  const auto count = counts_.find(borrower);
  return count != counts_.end() && count->second >= kMaxLeasesOfOne;
}

std::vector<Lease> RecordLeases::held_by(const Member& borrower) const {
  std::vector<Lease> leases;
  for (const auto& [id, held] : held_) {
    if (held.borrower != borrower) continue;
    Lease& lease = leases.emplace_back();
    lease.id = id;
    lease.epoch = held.epoch;
    lease.positions = held.positions;
  }
  return leases;
}

bool RecordLeases::complete() const {
  return epochs_ != 0 && complete_epochs_ >= epochs_;
}

}  // namespace disttrain::chiefd
