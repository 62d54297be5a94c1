// Lends records to the workers of a job. This class takes the workers' requests, journals the grants, and sends them.
// chiefd/core/lending.h decides which worker gets which records.
//
// A lease is durable before it is sent, because a restarted chief must know which records the workers hold. In sync the
// chief lends blocks of steps and doesn't journal them. A block is valid only for one roster, and a restarted chief
// makes a new roster and new blocks.
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

  // True if the chief may lend records, because it knows the ledger. It doesn't know the ledger before training starts.
  // In sync it also doesn't know the ledger after a change of the roster, until the pacer has answered.
  bool is_allowed() const { return is_allowed_; }
  void forbid() { is_allowed_ = false; }
  void allow() { is_allowed_ = true; }

  // Called when training starts.
  void begin(Term term);
  // Keeps the grants from before a restart of the chief, until the pacer has reported how many of their records are
  // used up.
  void take_up(const std::map<LeaseId, GrantRecord>& grants) { former_grants_ = grants; }
  // Called after a restart of the chief, when the pacer has reported. The leases from before the restart stay open.
  void resume(Term term);
  // Called after resume(). Adds the requests that came before resume().
  void request_early();
  // Called after resume(). Returns the workers that hold grants from before the restart, and forgets these grants.
  std::set<Member> take_former_borrowers();
  // Called when the pacer has the newest roster and its report has the ledger. Lends to the new roster from now on.
  void roster_applied();
  void drop_generation();

  void on_request(Turn& turn, const Member& from, const LeaseRequest& request);
  void note_pacer(const PacerReport& report) { lending_.note_pacer(report); }
  // The worker has finished or is lost. Drops its requests.
  void forget(const Member& worker);
  // All shards have fenced this worker, so the chief may lend its records again.
  void give_back(const Member& worker) { lending_.give_back(worker); }
  // Journals which leases are still open. Without this record, a restarted chief would think that a lost worker still
  // holds the records that the chief took back.
  void persist_open(Turn& turn);

  // Lends to every worker that waits, as long as there are records.
  void lend(Turn& turn);
  // Sends the worker's leases again. Leaves out a lease whose record isn't durable yet, because this lease is sent when
  // its record is durable.
  void grant_again(Turn& turn, const Member& worker);
  // True if all records that the job has to visit have been visited.
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
  std::uint64_t grants_written_ = 0;  // since lend() last called persist_open()
};

}  // namespace disttrain::chiefd
