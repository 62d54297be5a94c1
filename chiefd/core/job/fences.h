// Fences lost workers. The chief may lend a lost worker's records again only after these answers: every shard says that
// it takes nothing more from that worker, and the pacer says that it has the roster without that worker.
//
//   1. worker/1 is lost. The chief writes roster 4, sends FenceWorker to every ps, and then sends SetRoster to the
//      pacer.
//   2. ps/0 answers for shards 0 and 1, and ps/1 answers for shard 2. Now all shards have answered.
//   3. The pacer answers that roster 4 is in force, and sends its ledger. The chief lends again the records that
//      worker/1 held and that aren't in the ledger.
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
    std::optional<Ticket> held;  // the shards are asked when this record is durable
    Instant deadline;            // when the answers are due; set when the shards are asked
  };

  explicit Fences(JobParts& parts);

  const std::vector<Fence>& all() const { return fences_; }
  bool is_fencing(const Member& worker) const;

  // Asks every ps to fence the worker, as soon as the record `after` is durable. If `after` is none, asks at once. The
  // fence is sent before the roster. So when the pacer answers that it has the roster, its ledger has the records of
  // all pushes of this worker that were applied.
  void fence(Turn& turn, const Member& worker, std::optional<Ticket> after);
  void on_persisted(Turn& turn, Ticket ticket);
  void on_fenced(Turn& turn, const WorkerFenced& fenced);
  void on_roster_applied(Turn& turn, RosterVersion version);
  // Finds the workers that are completely fenced, and makes their records free to be lent again.
  void advance(Turn& turn);
  // Asks this ps again to fence the workers. The ps gets the full time for its answers again. The pacer also gets the
  // full time to answer that it has the roster.
  void repeat(Turn& turn, const Member& ps);

  // Returns a fence whose answer is late, with the ps that owes the answer. A ps that the chief can't hear just now
  // gets more time.
  struct Late {
    Member worker;
    Member debtor;
  };
  std::optional<Late> find_late(const Turn& turn);
  // Restarts the time limit of every fence.
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
