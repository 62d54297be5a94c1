// The workers of a job's generation: which are in the roster, lost or finished. This class decides nothing:
// chiefd/core/job/rules/workers.h decides which worker joins and which is lost. An example:
//
//   1. The roster is worker/0, worker/1, worker/2. all() has the same workers, and all of them are unfinished.
//   2. worker/1 is lost. It is in lost(), and the next roster is without it.
//   3. worker/1 comes back as another process. It is in the next roster at once, and it is in joining() until its
//      channels are open.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "common/messages/control.h"
#include "common/messages/session.h"
#include "common/time.h"

namespace disttrain::chiefd {

class Workers {
 public:
  // ---- the roster
  const Roster& roster() const { return roster_; }
  bool is_in_roster(const Member& member) const;
  // The workers of the roster that aren't lost, in the order of their ranks.
  std::vector<Member> living() const;
  // The workers of this generation that aren't lost, whether or not the roster still has them.
  std::vector<Member> unlost() const;
  bool has_living() const;
  // Sets the roster of the next generation. Its version is 1.
  void choose(std::vector<Member> members);
  void choose_members(std::vector<Member> members) { roster_.members = std::move(members); }
  // Sets the members of the roster and raises its version.
  const Roster& change(std::vector<Member> members);
  // The task of each rank, if the rank of a lost worker waits for its task to come back (job.on_worker_loss = "wait").
  // Otherwise empty.
  const std::vector<TaskId>& ranks() const { return ranks_; }
  void fix_ranks(const std::vector<Member>& members);
  bool has_rank(TaskId worker) const;

  // ---- the generation
  // All workers that were in a roster of this generation, including lost ones.
  const std::vector<Member>& all() const { return all_; }
  bool is_taking_part(const Member& member) const;  // in all(), and not lost
  // Sets all() to the workers of the chosen roster.
  void use_roster();
  void begin_generation();
  void begin_training();
  void drop_generation();
  // Takes over the roster from the journal after a restart of the chief.
  void take_up(const Roster& roster);

  // ---- single workers
  const std::set<Member>& unfinished() const { return unfinished_; }
  bool is_unfinished(const Member& member) const { return unfinished_.count(member) != 0; }
  // Notes that the worker has finished. Returns false if it had finished before.
  bool finish(const Member& member) { return unfinished_.erase(member) > 0; }

  const std::set<Member>& lost() const { return lost_; }
  bool is_lost(const Member& member) const { return lost_.count(member) != 0; }
  // Marks the worker as lost. Changes nothing else.
  void mark_lost(const Member& member) { lost_.insert(member); }
  // Marks the worker as lost. From then on it doesn't count as unfinished, joining or stopping. Returns true if it had
  // finished.
  bool lose(const Member& member);
  // async and ssp with data.sharding = "none": how many batches of its own order each worker has done, as the pacer has
  // reported in this generation. At most kMaxMembers entries.
  const std::map<TaskId, Step>& own_batches() const { return own_batches_; }
  void note_own_batches(TaskId worker, Step batches);
  // The earlier lost incarnations of this worker's task. The chief will never hear from them again.
  std::vector<Member> predecessors_of(const Member& worker) const;
  void forget(const Member& member);

  // The workers that are in the roster but haven't opened their channels yet, each with the time when it joined.
  const std::map<Member, Instant>& joining() const { return joining_; }
  bool is_joining(const Member& member) const { return joining_.count(member) != 0; }
  void join(const Member& member, Instant now);
  void join_again(const Member& member, Instant now) { joining_[member] = now; }
  // Notes that the worker has opened its channels. Returns true if it was joining.
  bool has_joined(const Member& member) { return joining_.erase(member) > 0; }
  void postpone_joins(Duration by);

  // Notes that the worker is told to stop, because it leaves. Returns true if it wasn't told before.
  bool tell_to_stop(const Member& member) { return told_to_stop_.insert(member).second; }
  bool was_told_to_stop(const Member& member) const { return told_to_stop_.count(member) != 0; }
  void note_stopped(const Member& member) { stopped_.insert(member); }
  bool has_stopped(const Member& member) const { return stopped_.count(member) != 0; }

  // How the workers of this generation are connected to the shards, as each has told last. 0 from a worker: not told.
  Wires wires() const;
  void note_wires(const Member& member, Wires wires);

  // The worker that evaluates while the job trains.
  const std::optional<Member>& evaluator() const { return evaluator_; }
  void let_evaluate(std::optional<Member> worker) { evaluator_ = worker; }

 private:
  Roster roster_;
  std::vector<TaskId> ranks_;
  std::vector<Member> all_;
  std::set<Member> in_all_;  // the same workers; each heartbeat looks for its sender
  std::set<Member> unfinished_;
  std::set<Member> lost_;
  std::map<TaskId, Step> own_batches_;
  std::map<Member, Instant> joining_;
  std::set<Member> told_to_stop_;
  std::set<Member> stopped_;
  std::optional<Member> evaluator_;
  std::map<Member, Wires> wires_;
};

}  // namespace disttrain::chiefd
