// What a job lends to its workers. In async and ssp each worker gets records of its own, in sync the whole roster gets
// blocks of steps. With sharding = "none" nothing is lent. Lending only decides; the job makes each loan durable and
// sends it. Pure.
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
    bool last = false;  // no lease follows for any of them
  };
  struct Loans {
    std::vector<Loan> loans;           // in the order in which they are to be sent
    std::vector<Member> left_without;  // no lease follows for these, and none is granted that could say so
  };
  // What one worker was lent and may not have used up yet, oldest first.
  struct Held {
    std::vector<Lease> leases;
    bool last = false;
  };

  // Lends nothing.
  Lending() = default;
  // Goes on from the pacer's ledger. `granted`: in async and ssp, the leases of this generation that workers hold.
  // Leases get numbers above `last_id`.
  Lending(const JobConfig& job, std::uint64_t records, const Roster& roster, const PacerReport& ledger,
          LeaseId last_id = {}, const std::map<LeaseId, GrantRecord>& granted = {});

  // In sync: the roster changed. It holds from the step after the report's; blocks of the old roster are void.
  void change_roster(const Roster& roster, const PacerReport& ledger);

  // In async and ssp: this worker runs out of records, and reads so many per second (0: unknown).
  void request(const Member& worker, double records_per_second);
  // The worker has finished or is lost: drops its request.
  void forget(const Member& worker);
  void note_pacer(const PacerReport& report);
  // A lost worker's records, as far as the ledger lacks them, can be lent again: all shards have fenced it.
  void give_back(const Member& worker);

  // Lends to every worker that waits, as far as there are records. `workers`: the number of unfinished workers, at
  // least 1.
  Loans lend(const std::vector<Member>& roster, std::size_t workers);
  Held held_by(const Member& worker, Rank rank) const;

  // In async and ssp: the leases that aren't used up.
  std::vector<LeaseId> open_leases() const;
  // Every record that the job has to visit is visited.
  bool is_complete() const;

 private:
  JobConfig job_;
  std::uint64_t records_ = 0;
  LeaseId last_block_;  // before blocks_
  std::unique_ptr<RecordLeases> leases_;
  std::unique_ptr<StepBlocks> blocks_;
  std::map<Member, double> waiting_;  // workers that wait for a lease, and their rates
  std::set<Member> told_last_;
  bool is_over_ = false;  // train.steps is reached
};

}  // namespace disttrain::chiefd
