// The records that a job lends to its workers: requests come in, grants are journaled and sent. Lending decides which
// worker gets which records (chiefd/core/lending.h).
//
// A lease is durable before it is sent: a restarted chief must know which records workers hold. Blocks of steps (sync)
// aren't journaled: they are void with their roster, and a restarted chief makes new ones.
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
  // Keeps a former chief's grants until the pacer has reported how much of them is used up.
  void take_up(const std::map<LeaseId, GrantRecord>& grants) { former_grants_ = grants; }
  // The pacer has reported: goes on from the former chief's loans.
  void resume(Term term);
  // After resume(): takes up the requests that came before it, and returns the workers that hold grants of the former
  // chief.
  void request_early();
  std::set<Member> take_former_borrowers();
  // The pacer has the newest roster, and its report holds the ledger.
  void roster_applied();
  void drop_generation();

  void on_request(Turn& turn, const Member& from, const LeaseRequest& request);
  void note_pacer(const PacerReport& report) { lending_.note_pacer(report); }
  // The worker has finished or is lost: drops its requests.
  void forget(const Member& worker);
  // All shards have fenced this worker: its records may be lent again.
  void give_back(const Member& worker) { lending_.give_back(worker); }
  // Journals the open leases anew, so that a restarted chief doesn't take records that were given back for the lost
  // worker's.
  void persist_open(Turn& turn);

  // Lends to every worker that waits, as far as there are records.
  void lend(Turn& turn);
  // Sends the worker's leases again. Leases whose record isn't durable yet are left out: they follow by themselves.
  void grant_again(Turn& turn, const Member& worker);
  // Every record that the job has to visit is visited.
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
