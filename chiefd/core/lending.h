// Decides which records a job lends to its workers. In async and ssp each worker gets leases of its own. In sync the
// whole roster gets the same leases, and each lease is a block of steps. With sharding = "none" nothing is lent. This
// class does no I/O: the job makes each loan durable and sends it.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <vector>

#include "chiefd/core/journal_state.h"
#include "chiefd/core/record_leases.h"
#include "chiefd/core/step_blocks.h"
#include "common/config/job_config.h"
#include "common/messages/control.h"

namespace disttrain::chiefd {

class Lending {
 public:
  struct Loan {
    std::vector<Member> to;  // for a block: by rank
    Lease lease;
    bool last = false;  // true: these workers get no other lease after this one
  };
  struct Loans {
    // The new leases, in the order in which the job must send them.
    std::vector<Loan> loans;
    // Workers that get no lease now and none later. The job must tell them so in a message of its own.
    std::vector<Member> left_without;
  };
  // The leases that one worker has and may not have used up yet, oldest first. `last`: the worker gets no other lease.
  struct Held {
    std::vector<Lease> leases;
    bool last = false;
  };

  // Lends nothing.
  Lending() = default;
  // Lends the records that aren't in the pacer's ledger. In async and ssp, `granted` has the leases of this generation
  // that workers already hold. New leases get numbers above `last_id`.
  Lending(const JobConfig& job, std::uint64_t records, const Roster& roster, const PacerReport& ledger,
          LeaseId last_id = {}, const std::map<LeaseId, GrantRecord>& granted = {});

  // In sync: the roster has changed. The new roster makes the steps after `ledger.global_step`. The blocks of the old
  // roster are void.
  void change_roster(const Roster& roster, const PacerReport& ledger);

  // In async and ssp: the worker asks for records. `records_per_second` is the worker's reading speed (0: unknown).
  void request(const Member& worker, double records_per_second);
  // Drops the request of a worker that has finished or is lost.
  void forget(const Member& worker);
  void note_pacer(const PacerReport& report);
  // Takes back the records of a lost worker that aren't in the ledger, so that they can be lent again. Call this only
  // after all shards have fenced the worker.
  void give_back(const Member& worker);

  // Grants leases to the workers that wait for one, as long as there are records. `workers` is the number of unfinished
  // workers, at least 1.
  Loans lend(const std::vector<Member>& roster, std::size_t workers);
  Held held_by(const Member& worker, Rank rank) const;

  // In async and ssp: the leases that aren't used up yet.
  std::vector<LeaseId> open_leases() const;
  // Returns true if the job needs no more records, because it has visited all of them or train.steps is reached.
  bool is_complete() const;

 private:
  JobConfig job_;
  std::uint64_t records_ = 0;
  LeaseId last_block_;  // before blocks_
  std::unique_ptr<RecordLeases> leases_;
  std::unique_ptr<StepBlocks> blocks_;
  std::map<Member, double> waiting_;  // the workers that wait for a lease, and how many records each reads per second
  std::set<Member> told_last_;
  bool is_over_ = false;  // train.steps is reached
};

}  // namespace disttrain::chiefd
