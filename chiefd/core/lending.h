// What a job lends to its workers: to each one records of its own (async, ssp), or blocks of steps to the whole roster
// (sync), or nothing (sharding = "none"). It says what to grant; the job makes each loan durable and sends it. Pure.
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
    std::vector<Member> to;  // by rank where it is a block
    Lease lease;
    bool last = false;  // nothing follows, for any of them
  };
  struct Loans {
    std::vector<Loan> loans;           // in the order in which they are to be sent
    std::vector<Member> left_without;  // nothing follows for these, and there is no lease to say it with
  };
  // What one worker was lent and may not have used up yet, oldest first.
  struct Held {
    std::vector<Lease> leases;
    bool last = false;
  };

  // Lends nothing.
  Lending() = default;
  // Goes on from what the pacer's ledger has. `granted`: async, ssp: leases of this generation that workers hold.
  // Leases get numbers above `last_id`.
  Lending(const JobConfig& job, std::uint64_t records, const Roster& roster, const PacerReport& ledger,
          LeaseId last_id = {}, const std::map<LeaseId, GrantRecord>& granted = {});

  // sync: the roster changed, and holds from the step after the report's on: what was lent to the old one is void.
  void change_roster(const Roster& roster, const PacerReport& ledger);

  // async, ssp: this worker runs dry, and does so many records per second (0 = unknown).
  void request(const Member& worker, double records_per_second);
  // It has finished or is lost: it waits for nothing any more.
  void forget(const Member& worker);
  void note_pacer(const PacerReport& report);
  // A lost worker's records, as far as the ledger lacks them, can be lent again: all shards have fenced it.
  void give_back(const Member& worker);

  // Whoever waits gets what there is. `workers`: those that have not finished, at least one.
  Loans lend(const std::vector<Member>& roster, std::size_t workers);
  Held held_by(const Member& worker, Rank rank) const;

  // async, ssp: leases that aren't used up.
  std::vector<LeaseId> open_leases() const;
  // All that the job has to visit is visited.
  bool is_complete() const;

 private:
  JobConfig job_;
  std::uint64_t records_ = 0;
  LeaseId last_block_;  // before blocks_
  std::unique_ptr<RecordLeases> leases_;
  std::unique_ptr<StepBlocks> blocks_;
  std::map<Member, double> waiting_;  // for a lease, with their rates
  std::set<Member> told_last_;
  bool is_over_ = false;  // train.steps is reached
};

}  // namespace disttrain::chiefd
