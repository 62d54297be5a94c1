// Fences around lost workers. A lost worker's records may be lent again only when each shard has answered that it takes
// nothing more from that worker, and the pacer that it has the roster without it.
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
    std::optional<Ticket> held;  // the shards are asked once this is durable
    Instant deadline;            // of the answers; set when the shards are asked
  };

  explicit Fences(JobParts& parts);

  const std::vector<Fence>& all() const { return fences_; }
  bool is_fencing(const Member& worker) const;

  // Asks every owner, once the ticket is durable (none: at once). The fence goes out before the roster, so that the
  // ledger in the answer to the roster holds everything that was applied for the worker.
  void fence(Turn& turn, const Member& worker, std::optional<Ticket> after);
  void on_persisted(Turn& turn, Ticket ticket);
  void on_fenced(Turn& turn, const WorkerFenced& fenced);
  void on_roster_applied(Turn& turn, RosterVersion version);
  // Gives the records of completely fenced workers back, to be lent again.
  void advance(Turn& turn);
  // Asks this owner again. Its answers, and the pacer's to the roster, get the full time again.
  void repeat(Turn& turn, const Member& ps);

  // A fence that is late, with the owner that owes the answer. An owner that the chief can't hear just now gets more
  // time.
  struct Late {
    Member worker;
    Member debtor;
  };
  std::optional<Late> find_late(const Turn& turn);
  // Gives every fence the full time again.
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
