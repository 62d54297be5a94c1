#include "chiefd/core/lending.h"

namespace disttrain::chiefd {

Lending::Lending(const JobConfig& job, std::uint64_t records, const Roster& roster, const PacerReport& ledger,
                 LeaseId last_id, const std::map<LeaseId, GrantRecord>& granted)
    : job_(job), records_(records), last_block_(last_id) {
  if (job.data.sharding != Sharding::kLease) return;
  if (job.train.mode == Mode::kSync) {
    change_roster(roster, ledger);
    return;
  }
  leases_ = std::make_unique<RecordLeases>(records, job.train.step_records(), job.train.epochs, last_id);
  leases_->restore(ledger.complete_epochs, ledger.ledger);
  for (const auto& [id, grant] : granted) leases_->hold(id, grant.borrowers.front(), grant.lease);
  is_over_ = ledger.finished;
}

void Lending::change_roster(const Roster& roster, const PacerReport& ledger) {
  const TrainSection& train = job_.train;
  if (job_.data.sharding != Sharding::kLease || train.mode != Mode::kSync) return;
  if (blocks_) last_block_ = blocks_->last_id();
  blocks_.reset();
  if (roster.members.empty()) return;
  blocks_ = std::make_unique<StepBlocks>(
      StepBlocks::Options{.records = records_,
                          .step_records = train.step_records(),
                          .epochs = train.epochs,
                          .ranks = static_cast<std::uint32_t>(roster.members.size()),
                          .roster = roster.version,
                          .may_be_late = train.aggregate != 0 && train.aggregate < roster.members.size()},
      StepBlocks::Begin{ledger.global_step, ledger.complete_epochs, ledger.ledger, last_block_});
}

std::vector<LeaseId> Lending::open_leases() const {
  return leases_ ? leases_->open() : std::vector<LeaseId>();
}

bool Lending::is_complete() const {
  return is_over_ || (leases_ && leases_->complete()) || (blocks_ && blocks_->is_complete());
}

void Lending::request(const Member& worker, double records_per_second) {
  waiting_[worker] = records_per_second;
}

void Lending::forget(const Member& worker) {
  waiting_.erase(worker);
}

void Lending::note_pacer(const PacerReport& report) {
  if (leases_) leases_->note_ledger(report.complete_epochs, report.ledger);
  if (blocks_) blocks_->note_ledger(report.global_step, report.complete_epochs, report.ledger);
  is_over_ = report.finished;
}

void Lending::give_back(const Member& worker) {
  if (leases_) leases_->give_back(worker);
}

Lending::Loans Lending::lend(const std::vector<Member>& roster, std::size_t workers) {
  Loans loans;
  if (blocks_) {
    StepBlocks::Grants grants = blocks_->next();
    for (std::size_t i = 0; i < grants.leases.size(); ++i)
      loans.loans.push_back(Loan{roster, grants.leases[i], grants.last && i + 1 == grants.leases.size()});
    if (grants.last && grants.leases.empty()) loans.left_without = roster;
  }
  if (!leases_) return loans;
  // If no records are free now, a worker keeps waiting, because the records of a lost worker may become free later.
  const bool is_end = is_over_ || leases_->complete();
  for (auto it = waiting_.begin(); it != waiting_.end() && workers > 0;) {
    const auto& [worker, rate] = *it;
    std::optional<Lease> lease;
    if (!is_over_ && told_last_.count(worker) == 0 && !leases_->has_most(worker))
      lease = leases_->lend(worker, rate, static_cast<std::uint32_t>(workers));
    if (lease) {
      loans.loans.push_back(Loan{{worker}, std::move(*lease), false});
    } else if (is_end) {
      told_last_.insert(worker);
      loans.left_without.push_back(worker);
    } else {
      ++it;
      continue;
    }
    it = waiting_.erase(it);
  }
  return loans;
}

Lending::Held Lending::held_by(const Member& worker, Rank rank) const {
  Held held;
  if (leases_) held = Held{leases_->held_by(worker), told_last_.count(worker) != 0};
  if (!blocks_) return held;
  held = Held{blocks_->open_blocks(), blocks_->is_last_told()};
  for (Lease& block : held.leases) block.rank = rank;
  return held;
}

}  // namespace disttrain::chiefd
