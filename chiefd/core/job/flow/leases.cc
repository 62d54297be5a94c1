// Lends records to the workers of a job, and takes back those of a lost worker when all shards have fenced it. A lease
// is durable before it is sent, because a restarted chief must know which records the workers hold. In sync the chief
// lends blocks of steps and doesn't journal them. A block is valid only for one roster, and a restarted chief makes a
// new roster and new blocks.
#include "chiefd/core/job/flow/flow.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "chiefd/core/job/views/workers.h"
#include "common/mutant.h"

namespace disttrain::chiefd::flow {
namespace {

// Journals which leases are still open. Without this record, a restarted chief would think that a lost worker still
// holds the records that the chief took back.
void persist_open_leases(JobFacts& job, Turn& turn) {
  turn.persist(OpenGrantsRecord{job.setup.id, job.generation.number(), job.loans.lending.open_leases()});
}

void grant(JobFacts& job, Turn& turn, const Lending::Loan& loan) {
  if (loan.lease.ranks == 0) {
    const Ticket ticket = turn.persist(GrantRecord{job.setup.id, job.generation.number(), loan.to, loan.lease});
    if (DISTTRAIN_MUTANT(kGrantNotDurable))
      return turn.send(loan.to.front().task,
                       LeaseGrant{job.setup.id, job.generation.number(), loan.lease, loan.last, {}});
    return job.held.hold(ticket, Send{loan.to.front().task,
                                      LeaseGrant{job.setup.id, job.generation.number(), loan.lease, loan.last, {}}});
  }
  for (std::uint32_t rank = 0; rank < loan.to.size(); ++rank) {
    if (job.workers.is_lost(loan.to[rank])) continue;
    LeaseGrant grant{job.setup.id, job.generation.number(), loan.lease, loan.last, loan.lease.roster};
    grant.lease->rank = Rank(rank);
    turn.send(loan.to[rank].task, grant);
  }
}

}  // namespace

void begin_loans(JobFacts& job, Term term) {
  job.loans.lending = Lending(job.setup.config(), job.generation.described()->train_records, job.workers.roster(),
                              job.progress.report(), LeaseId(term.value << 32));
  job.loans.is_allowed = true;
  job.loans.take_early_requests();
}

void resume_loans(JobFacts& job, Term term) {
  job.loans.lending = Lending(job.setup.config(), job.generation.described()->train_records, job.workers.roster(),
                              job.progress.report(), LeaseId(term.value << 32), job.loans.former_grants());
}

void request_early(JobFacts& job) {
  for (const auto& [worker, rate] : job.loans.take_early_requests())
    if (job.workers.is_unfinished(worker)) job.loans.lending.request(worker, rate);
}

void lend_to_new_roster(JobFacts& job) {
  job.loans.lending.change_roster(job.workers.roster(), job.progress.report());
}

void on_lease_request(JobFacts& job, Turn& turn, const Member& from, const LeaseRequest& request) {
  if (!job.workers.is_unfinished(from)) return;
  if (!job.loans.is_allowed) {
    job.loans.request_later(from, request.records_per_second);
    return;
  }
  job.loans.lending.request(from, request.records_per_second);
  lend(job, turn);
  // The worker may have missed the message that it gets no more leases, so the chief sends this message again.
  if (job.setup.is_sync()) grant_again(job, turn, from);
}

// At the end the chief tells a worker that it gets no more leases (LeaseGrant::last). This message must not overtake a
// grant. So it waits while the record of a grant isn't durable yet.
void lend(JobFacts& job, Turn& turn) {
  if (!job.loans.is_allowed) return;
  const Lending::Loans loans = job.loans.lending.lend(job.workers.roster().members, job.workers.unfinished().size());
  for (const Lending::Loan& loan : loans.loans) grant(job, turn, loan);
  if (!job.setup.is_sync()) {
    constexpr std::uint64_t kGrantsUnswept = 1000;
    job.loans.grants_unswept += loans.loans.size();
    if (job.loans.grants_unswept > kGrantsUnswept) {
      job.loans.grants_unswept = 0;
      persist_open_leases(job, turn);
    }
  }
  for (const Member& worker : loans.left_without) {
    LeaseGrant no_more{job.setup.id, job.generation.number(), std::nullopt, true, job.workers.roster().version};
    if (job.setup.is_sync())
      turn.send(worker.task, std::move(no_more));
    else
      send_behind_all(job, turn, worker.task, std::move(no_more));
  }
}

void grant_again(JobFacts& job, Turn& turn, const Member& worker) {
  if (!job.loans.is_allowed) return;
  const auto place = std::find(job.workers.roster().members.begin(), job.workers.roster().members.end(), worker);
  if (place == job.workers.roster().members.end()) return;
  const Lending::Held held =
      job.loans.lending.held_by(worker, Rank(static_cast<std::uint32_t>(place - job.workers.roster().members.begin())));
  for (const Lease& lease : held.leases) {
    if (job.held.is_lease_held(worker.task, lease.id)) return;
    turn.send(worker.task,
              LeaseGrant{job.setup.id, job.generation.number(), lease, false, job.workers.roster().version});
  }
  if (held.last)
    turn.send(worker.task,
              LeaseGrant{job.setup.id, job.generation.number(), std::nullopt, true, job.workers.roster().version});
}

void fence(JobFacts& job, Turn& turn, const Member& worker, std::optional<Ticket> after) {
  Fence fence{worker, {}, job.workers.roster().version, !after, after, turn.now + job.setup.answer_limit()};
  for (std::uint32_t s = 0; s < job.generation.owners().size(); ++s) fence.owed.insert(ShardId(s));
  job.fences.all.push_back(std::move(fence));
  for (const Member& ps : job.generation.holders()) {
    if (after)
      job.held.hold(*after, Send{ps.task, FenceWorker{job.setup.id, job.generation.number(), worker}});
    else
      turn.send(ps.task, FenceWorker{job.setup.id, job.generation.number(), worker});
  }
}

// The deadline counts from the time when the shards are asked. So a slow disk of the chief, which delays the request,
// doesn't shorten the time that the shards have.
void on_fence_persisted(JobFacts& job, Turn& turn, Ticket persisted) {
  for (Fence& fence : job.fences.all) {
    if (fence.held != persisted) continue;
    fence.held.reset();
    fence.deadline = turn.now + job.setup.answer_limit();
  }
}

void on_fenced(JobFacts& job, Turn& turn, const WorkerFenced& fenced) {
  for (Fence& fence : job.fences.all)
    if (fence.worker == fenced.worker) fence.owed.erase(fenced.shard);
  advance_fences(job, turn);
}

void on_fence_roster_applied(JobFacts& job, Turn& turn, RosterVersion version) {
  for (Fence& fence : job.fences.all)
    if (fence.roster <= version) fence.roster_applied = true;
  advance_fences(job, turn);
}

void advance_fences(JobFacts& job, Turn& turn) {
  if (job.stage.is(Stage::kReclaim)) return;  // the leases aren't known yet
  const auto is_done = [](const Fence& fence) {
    return DISTTRAIN_MUTANT(kLentBeforeFence) || (fence.owed.empty() && fence.roster_applied);
  };
  bool any = false;
  for (const Fence& fence : job.fences.all) {
    if (!is_done(fence)) continue;
    job.loans.lending.give_back(fence.worker);
    any = true;
  }
  std::erase_if(job.fences.all, is_done);
  // The chief journals the open leases before it lends the lost worker's records to others. Otherwise a restarted chief
  // would think that the lost worker still holds the records.
  if (any && !job.setup.is_sync()) persist_open_leases(job, turn);
  if (any && job.stage.is(Stage::kTrain)) lend(job, turn);
}

void repeat_fences(JobFacts& job, Turn& turn, const Member& ps) {
  for (Fence& fence : job.fences.all) {
    const bool owes = std::any_of(fence.owed.begin(), fence.owed.end(),
                                  [&](ShardId shard) { return job.generation.owns(ps, shard); });
    if (owes || ps == job.generation.pacer()) fence.deadline = turn.now + job.setup.answer_limit();
    if (owes) turn.send(ps.task, FenceWorker{job.setup.id, job.generation.number(), fence.worker});
  }
}

void excuse_unheard_debtors(JobFacts& job, const Turn& turn) {
  for (Fence& fence : job.fences.all)
    if (!fence.held && !turn.tasks.hears_both_ways(views::debtor_of(job, fence)))
      fence.deadline = turn.now + job.setup.answer_limit();
}

void give_fences_time(JobFacts& job, Instant now) {
  for (Fence& fence : job.fences.all) fence.deadline = now + job.setup.answer_limit();
}

}  // namespace disttrain::chiefd::flow
