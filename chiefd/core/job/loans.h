// The records that a job lends to its workers: requests come in, grants are journaled and sent. What is lent to whom is
// Lending's to decide (chiefd/core/lending.h).
//
// A lease is durable before it is sent: a later chief must know what workers hold. Blocks of steps (sync) are void with
// their roster, and a later chief makes new ones.
#pragma once

#include <cstdint>
#include <map>
#include <set>

#include "chiefd/core/job/turn.h"
#include "chiefd/core/lending.h"

namespace disttrain::chiefd {

class GenerationPlan;
class HeldActions;
class Progress;
class Workers;
struct JobParts;
struct JobSetup;

class Loans {
 public:
  explicit Loans(JobParts& parts);

  // Nothing is lent until the ledger is known: from the start of training, and in sync from the pacer's answer to the
  // newest roster on.
  bool is_allowed() const { return is_allowed_; }
  void forbid() { is_allowed_ = false; }
  void allow() { is_allowed_ = true; }

  // Training starts.
  void begin(Term term);
  // A former chief's grants, until the pacer has told what of them is used up.
  void take_up(const std::map<LeaseId, GrantRecord>& grants) { former_grants_ = grants; }
  // It has: goes on from the former chief's loans.
  void resume(Term term);
  // Then: requests that came before that, and who holds grants of the former chief.
  void request_early();
  std::set<Member> take_former_borrowers();
  // The pacer has the newest roster, and this is the ledger.
  void roster_applied();
  void drop_generation();

  void on_request(Turn& turn, const Member& from, const LeaseRequest& request);
  void note_pacer(const PacerReport& report) { lending_.note_pacer(report); }
  // It waits for nothing any more: it has finished, or is lost.
  void forget(const Member& worker);
  // All shards have fenced this one.
  void give_back(const Member& worker) { lending_.give_back(worker); }
  // What is lent is written anew: records that were given back must not be taken for the lost worker's.
  void persist_open(Turn& turn);

  // Whoever waits gets what there is.
  void lend(Turn& turn);
  // What it holds is sent once more, but for what is still being written and comes by itself.
  void grant_again(Turn& turn, const Member& worker);
  // All that the job has to visit is visited.
  bool is_complete() const { return lending_.is_complete(); }

 private:
  void grant(Turn& turn, const Lending::Loan& loan);

  const JobSetup& setup_;
  HeldActions& held_;
  const Progress& progress_;
  const GenerationPlan& generation_;
  const Workers& workers_;

  Lending lending_;
  bool is_allowed_ = false;
  std::map<Member, double> early_requests_;
  std::map<LeaseId, GrantRecord> former_grants_;
  std::uint64_t grants_written_ = 0;  // since the last OpenGrantsRecord
};

}  // namespace disttrain::chiefd
