// Laws checks the invariants of docs/invariants.md while a simulation runs. It keeps the first violation.
// ShardTwin checks the laws of one shard; this class checks those that span several shards or processes.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "chiefd/core/events.h"
#include "common/checkpoint/manifest.h"
#include "common/layout.h"
#include "tests/sim/jobs.h"

namespace disttrain::sim {

using RunId = std::pair<JobId, Generation>;

// What a shard has taken from one worker in its generation, as sums of value_of() over the records of its frames.
struct Taken {
  std::map<BucketId, double> sums;    // over all frames
  std::map<BucketId, double> newest;  // over the frames of the newest push alone
  double visited = 0.0;               // pacer: over the records that the ledger has from this worker
  double visited_last = 0.0;          // pacer: over the records of the newest push
};
using TakenByWorker = std::map<Member, Taken>;

// The state of a shard at a checkpoint's cut.
struct CutTaken {
  Step version;
  std::vector<float> values;              // parameters, in the shard's order
  std::vector<std::vector<float>> slots;  // one array for each slot, in the same order
  std::map<Member, Step> clocks;          // of each worker's last whole push
  TakenByWorker taken;
};

// sync: the pacer's decision for one step.
struct Decision {
  std::vector<Member> members;
  double scale = 1.0;
  bool skip = false;
};

class ShardTwin;

class Laws {
 public:
  explicit Laws(const Jobs& jobs) : jobs_(jobs) {}

  const std::string& violation() const { return violation_; }
  void violated(const std::string& what) {
    if (violation_.empty()) violation_ = what;
  }

  // The chief recorded that a worker of the job's newest generation was lost or left, or lost a link.
  void worker_lost(JobId job, const std::string& task);
  // A task was told to end. One rollback because of it doesn't count as a loss.
  void is_to_leave() { ++leavers_; }
  // The chief recorded a rollback that doesn't count as a loss: a task was told to end, or a link failed.
  void rolls_back_uncounted(bool is_link) { ++(is_link ? link_rollbacks_ : leaver_rollbacks_); }
  bool has_lost_links() const { return link_rollbacks_ > 0; }
  // The record is durable, and the generation is about to begin with its checkpoint, or with initial values.
  void generation_begins(const chiefd::GenerationRecord& record);
  // A step was skipped at a shard.
  void skips() { ++skipped_; }
  std::uint64_t skipped() const { return skipped_; }
  // A generation of any job has begun to train.
  void trains() { has_trained_ = true; }
  bool has_trained() const { return has_trained_; }
  // I1: what the chief sends is durable before it is sent. I11, I12: a lease has one owner, and its records are lent
  // again only after all shards have fenced that owner.
  void welcomes(Term term, const chiefd::JournalState& durable);
  void sends(const chiefd::Send& message, const chiefd::JournalState& durable);

  // I28: every later chief knows each job that a client was told is accepted.
  void accepted(const std::string& job) { accepted_.insert(job); }
  void begins(const chiefd::JournalState& durable);

  // A twin calls serves() when it is made and ends() when it is destroyed. The pointer is kept in between.
  void serves(const RunId& run, ShardId shard, const ShardTwin& twin) { twins_[{run, shard}] = &twin; }
  void ends(const RunId& run, ShardId shard, const ShardTwin& twin);
  // I2: in one generation only one process owns a shard.
  void owns(const RunId& run, ShardId shard, const Member& owner);
  // `owner` has applied a frame. Counts the frame if another process owns the shard in a newer generation.
  void applies(const RunId& run, ShardId shard, const Member& owner);
  std::uint64_t applied_by_former_owners() const { return applied_by_former_owners_; }
  void begins_at(const RunId& run, ShardId shard, Step step);
  void fenced(const RunId& run, ShardId shard, const Member& worker) { fenced_[run][worker].insert(shard); }
  // I7: the pacer decides on each step once.
  void decided(const RunId& run, Step step, Decision decision);
  // I7, clip = "global_norm": norm2 is the squared norm of the mean gradient at one shard. The pacer's scale must
  // follow from the norms of all `shards` shards.
  void norm_is(const RunId& run, const ClipConfig& clip, std::uint32_t shards, Step step, ShardId shard, double norm2);
  const Decision* decision_of(const RunId& run, Step step) const;
  void cut(const RunId& run, std::uint64_t attempt, ShardId shard, CutTaken cut);
  // Whether the chief has given this attempt up. One shard may hear of that later than another.
  bool is_abandoned(const RunId& run, std::uint64_t attempt) const;

  // I10, I13, I14, I17, I18, I19: a visible checkpoint is complete and of this generation. It holds what the shards had
  // at one moment, also when it is restored into another layout.
  void committed(const chiefd::CommitAttempt& commit, JobId job, const std::string& path);
  // I15, I16: the newest committed checkpoint of each folder is still there and verifies. Checked after each commit and
  // each loss of power.
  void folder_is_good(const std::string& when);
  void power_lost();
  // A fault damaged the checkpoint at `path`. Restores must notice the damage; the checkpoint may be useless.
  void damaged(const std::string& path) { damaged_.insert(path); }
  bool is_any_damaged() const { return !damaged_.empty(); }
  // I15, I18: a generation begins with the newest checkpoint that isn't damaged, and with the values that were saved in
  // it. `held`: a shard's parameters and slots, in the shard's order.
  void rolls_back(const chiefd::GenerationRecord& record, const std::string& folder);
  void begins_with(const RunId& run, const JobConfig& job, const Layout& layout, ShardId shard, const CutTaken& held);
  // A client was told that the checkpoint at `path` is saved.
  void saved(const std::string& path);
  void has_last_checkpoint(const JobConfig& job, Step step);
  // The chief found `newest` in the folder. The newest checkpoint has the highest generation, then the highest step.
  void found_newest(const std::string& folder, const std::optional<chiefd::RestorePoint>& newest);

  // async, ssp: the frames that were taken add up exactly, in any order and whichever workers were lost, because a
  // gradient is a sum of integers over its records. Each whole push is at all shards and in the ledger.
  void final_parameters(const RunId& run, const JobConfig& job, const Layout& layout, const std::vector<float>& flat);
  // sync: a gradient is computed from all `buckets` buckets, and all of them have one version.
  void computed_from(const std::string& who, const std::map<BucketId, Step>& versions, std::size_t buckets);
  // I9: a worker computes step `clock`; with ssp it isn't too far ahead of the slowest worker. A worker leaves with its
  // last push, and its clock counts no longer.
  void computes(const RunId& run, const JobConfig& job, const Member& worker, std::uint64_t clock);
  void leaves(const RunId& run, const Member& worker) { clocks_[run].erase(worker); }
  // L2: a job doesn't restart endlessly. Each generation has a cause: a loss, a damaged checkpoint, a chief that died,
  // a task that was told to end, or a failed link. Links may fail any number of times, so as many generations are
  // allowed for them as the chief has recorded rollbacks for a link.
  void restarts(const JobConfig& job, const chiefd::GenerationRecord& record, Term term);
  // L4: a pause ends, and has a reason. `timeout`: the heartbeat timeout, from which all others are derived.
  void state_is(Instant now, Duration timeout, chiefd::JobState state, const std::string& reason);
  // I11: a finished job has visited each record of each epoch once.
  void finished(const JobConfig& job, std::uint64_t examples);

 private:
  struct Loan {
    Member borrower;
    std::uint32_t epoch = 0;
    std::vector<Interval> positions;
  };
  void lends(const RunId& run, TaskId to, const Lease& lease);
  void is_as_cut(const chiefd::CommitAttempt& commit, const RunId& run, const checkpoint::Manifest& manifest,
                 const std::string& path);
  void restores_elsewhere(const Layout& layout, const std::map<ShardId, CutTaken>& cuts,
                          const checkpoint::Manifest& manifest, const std::string& path);
  void adds_up(const chiefd::CommitAttempt& commit, const RunId& run, const checkpoint::Manifest& manifest,
               const std::string& path);
  void are_whole(const RunId& run, const std::map<ShardId, const TakenByWorker*>& shards, const std::string& when);

  // By variable and element: the parameter, then its slots.
  using ByElement = std::map<std::pair<std::uint32_t, std::uint64_t>, std::vector<float>>;
  const ByElement* begun_with(const RunId& run) const;

  const Jobs& jobs_;
  std::string violation_;
  bool has_trained_ = false;
  std::uint64_t leavers_ = 0;
  std::uint64_t leaver_rollbacks_ = 0;
  std::uint64_t link_rollbacks_ = 0;
  std::uint64_t skipped_ = 0;
  std::set<std::string> accepted_;
  std::map<std::pair<RunId, ShardId>, const ShardTwin*> twins_;
  std::map<RunId, std::map<Member, std::uint64_t>> clocks_;
  std::map<RunId, std::set<Member>> lost_;      // a lost worker may not know it yet
  std::map<RunId, std::set<TaskId>> lost_any_;  // lost before the first step: any process of the task
  std::map<JobId, chiefd::GenerationRecord> generations_;
  std::map<JobId, std::uint64_t> begun_;  // number of generations

  std::map<std::pair<RunId, ShardId>, Member> owners_;
  std::uint64_t applied_by_former_owners_ = 0;
  std::map<RunId, std::map<Member, std::set<ShardId>>> fenced_;
  std::map<RunId, std::map<LeaseId, Loan>> loans_;
  std::map<RunId, std::map<Step, Decision>> decisions_;
  std::map<std::pair<RunId, Step>, std::map<ShardId, double>> norms_;
  std::map<RunId, std::pair<std::uint64_t, std::map<ShardId, CutTaken>>> cuts_;        // of the newest attempt
  std::map<std::string, std::pair<std::pair<Generation, Step>, std::string>> newest_;  // by folder, with its path
  std::set<std::string> damaged_;
  std::map<std::string, ByElement> values_of_;  // by the checkpoint's path
  std::map<std::string, double> visited_of_;    // by path: sum of value_of() over the records in its ledger
  std::optional<Instant> paused_since_;
  Duration longest_timeout_{};                // in this pause
  std::map<RunId, std::uint64_t> abandoned_;  // newest attempt given up
};

}  // namespace disttrain::sim
