#include "chiefd/core/job/loans.h"

#include <algorithm>
#include <utility>

#include "chiefd/core/job/parts.h"
#include "common/mutant.h"

namespace disttrain::chiefd {

Loans::Loans(JobParts& parts)
    : setup_(parts.setup),
      held_(parts.held),
      progress_(parts.progress),
      generation_(parts.generation),
      workers_(parts.workers) {}

void Loans::begin(Term term) {
  lending_ = Lending(setup_.config(), generation_.described()->train_records, workers_.roster(), progress_.report(),
                     LeaseId(term.value << 32));
  is_allowed_ = true;
  early_requests_.clear();
}

void Loans::resume(Term term) {
  lending_ = Lending(setup_.config(), generation_.described()->train_records, workers_.roster(), progress_.report(),
                     LeaseId(term.value << 32), former_grants_);
}

void Loans::request_early() {
  for (const auto& [worker, rate] : std::exchange(early_requests_, {}))
    if (workers_.is_unfinished(worker)) lending_.request(worker, rate);
}

std::set<Member> Loans::take_former_borrowers() {
  std::set<Member> borrowers;
  for (const auto& [lease, grant] : std::exchange(former_grants_, {})) borrowers.insert(grant.borrowers.front());
  return borrowers;
}

void Loans::roster_applied() {
  lending_.change_roster(workers_.roster(), progress_.report());
}

void Loans::drop_generation() {
  lending_ = Lending();
  is_allowed_ = false;
  early_requests_.clear();
  former_grants_.clear();
}

void Loans::forget(const Member& worker) {
  lending_.forget(worker);
  early_requests_.erase(worker);
}

void Loans::persist_open(Turn& turn) {
  turn.persist(OpenGrantsRecord{setup_.id, generation_.number(), lending_.open_leases()});
}

void Loans::on_request(Turn& turn, const Member& from, const LeaseRequest& request) {
  if (!workers_.is_unfinished(from)) return;
  if (!is_allowed_) {
    early_requests_[from] = request.records_per_second;
    return;
  }
  lending_.request(from, request.records_per_second);
  lend(turn);
  // The worker may have missed the message that it gets no more leases, so the chief sends this message again.
  if (setup_.is_sync()) grant_again(turn, from);
}

void Loans::grant(Turn& turn, const Lending::Loan& loan) {
  if (loan.lease.ranks == 0) {
    const Ticket ticket = turn.persist(GrantRecord{setup_.id, generation_.number(), loan.to, loan.lease});
    if (DISTTRAIN_MUTANT(kGrantNotDurable))
      return turn.send(loan.to.front().task, LeaseGrant{setup_.id, generation_.number(), loan.lease, loan.last, {}});
    return held_.hold(
        ticket, Send{loan.to.front().task, LeaseGrant{setup_.id, generation_.number(), loan.lease, loan.last, {}}});
  }
  for (std::uint32_t rank = 0; rank < loan.to.size(); ++rank) {
    if (workers_.is_lost(loan.to[rank])) continue;
    LeaseGrant grant{setup_.id, generation_.number(), loan.lease, loan.last, loan.lease.roster};
    grant.lease->rank = Rank(rank);
    turn.send(loan.to[rank].task, grant);
  }
}

// At the end the chief tells a worker that it gets no more leases (LeaseGrant::last). This message must not overtake a
// grant. So it waits while the record of a grant isn't durable yet.
void Loans::lend(Turn& turn) {
  if (!is_allowed_) return;
  const Lending::Loans loans = lending_.lend(workers_.roster().members, workers_.unfinished().size());
  for (const Lending::Loan& loan : loans.loans) grant(turn, loan);
  if (!setup_.is_sync()) {
    constexpr std::uint64_t kGrantsUnswept = 1000;
    grants_written_ += loans.loans.size();
    if (grants_written_ > kGrantsUnswept) {
      grants_written_ = 0;
      persist_open(turn);
    }
  }
  for (const Member& worker : loans.left_without) {
    LeaseGrant no_more{setup_.id, generation_.number(), std::nullopt, true, workers_.roster().version};
    if (setup_.is_sync())
      turn.send(worker.task, std::move(no_more));
    else
      held_.send_behind_all(turn, worker.task, std::move(no_more));
  }
}

void Loans::grant_again(Turn& turn, const Member& worker) {
  if (!is_allowed_) return;
  const auto place = std::find(workers_.roster().members.begin(), workers_.roster().members.end(), worker);
  if (place == workers_.roster().members.end()) return;
  const Lending::Held held =
      lending_.held_by(worker, Rank(static_cast<std::uint32_t>(place - workers_.roster().members.begin())));
  for (const Lease& lease : held.leases) {
    if (held_.is_lease_held(worker.task, lease.id)) return;
    turn.send(worker.task, LeaseGrant{setup_.id, generation_.number(), lease, false, workers_.roster().version});
  }
  if (held.last)
    turn.send(worker.task, LeaseGrant{setup_.id, generation_.number(), std::nullopt, true, workers_.roster().version});
}

}  // namespace disttrain::chiefd
