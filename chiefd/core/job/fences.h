// Lost workers whose records wait for the shards' answers: each shard says that it takes nothing of the worker any
// more, and the pacer that it has the roster without it. Then the records may be lent again.
//
//   1. worker/1 is lost: roster 4 is written, then FenceWorker goes to every ps, then SetRoster to the pacer.
//   2. ps/0 answers for shards 0 and 1, ps/1 for shard 2: nothing is owed.
//   3. The pacer answers that roster 4 is in force, with the ledger: what worker/1 held and the ledger lacks is lent
//      again.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "chiefd/core/job/turn.h"
#include "common/messages/control.h"

namespace disttrain::chiefd {

class GenerationPlan;
class HeldActions;
class Loans;
class StageWait;
class Workers;
struct JobParts;
struct JobSetup;

class Fences {
 public:
  struct Fence {
    Member worker;
    std::set<ShardId> owed;
    RosterVersion roster;
    bool roster_applied = false;
    std::optional<Ticket> held;  // until this is durable the shards haven't been asked
    Instant deadline;            // from then on
  };

  explicit Fences(JobParts& parts);

  const std::vector<Fence>& all() const { return fences_; }
  bool is_fencing(const Member& worker) const;

  // Asks every owner, once the ticket is durable (none: at once). Before the roster, so that the ledger in the answer
  // to the roster has all that the worker ever got applied.
  void fence(Turn& turn, const Member& worker, std::optional<Ticket> after);
  void on_persisted(Turn& turn, Ticket ticket);
  void on_fenced(Turn& turn, const WorkerFenced& fenced);
  void on_roster_applied(Turn& turn, RosterVersion version);
  // What is fenced is given back and lent again.
  void advance(Turn& turn);
  // Asks this owner again. What it owes, and the pacer's roster, have the whole time again.
  void repeat(Turn& turn, const Member& ps);

  // A fence that is late, with the owner who owes it. One that can't be heard just now is given time.
  struct Late {
    Member worker;
    Member debtor;
  };
  std::optional<Late> find_late(const Turn& turn);
  // All have the whole time again.
  void give_time(Instant now);
  void drop_generation() { fences_.clear(); }

 private:
  const JobSetup& setup_;
  const StageWait& stage_;
  HeldActions& held_;
  const GenerationPlan& generation_;
  Workers& workers_;
  Loans& loans_;

  std::vector<Fence> fences_;
};

}  // namespace disttrain::chiefd
