// Laws checks the invariants of docs/invariants.md while a simulation runs. It keeps the first violation.
// ShardTwin has the laws of one shard; those in here go over several.
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

// What a shard has taken of a worker in its generation: sums of value_of() of the records behind its frames.
struct Taken {
  std::map<BucketId, double> sums;    // of all frames, those of its newest push too
  std::map<BucketId, double> newest;  // of that one alone
  double visited = 0.0;               // pacer: of the records that its ledger has by this worker
  double visited_last = 0.0;          // of the newest push
};
using TakenByWorker = std::map<Member, Taken>;

// What a shard had at a cut.
struct CutTaken {
  Step version;
  std::vector<float> values;              // parameters, as a shard has them
  std::vector<std::vector<float>> slots;  // alike
  std::map<Member, Step> clocks;          // of each worker's last whole push
  TakenByWorker taken;
};

// sync: what the pacer has decided on for a step.
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

  // A worker of the job's running generation is gone, or was taken for gone.
  void worker_lost(JobId job, const std::string& task);
  // A task was told to end: one rollback without it counts as no loss.
  void is_to_leave() { ++leavers_; }
  // The chief told of a rollback that counts as no loss: of a task that was told to end, or of a link.
  void rolls_back_uncounted(bool is_link) { ++(is_link ? link_rollbacks_ : leaver_rollbacks_); }
  bool has_lost_links() const { return link_rollbacks_ > 0; }
  // A generation is durable: it is about to begin with this checkpoint, or with initial values.
  void generation_begins(const chiefd::GenerationRecord& record);
  // A step was skipped at a shard.
  void skips() { ++skipped_; }
  std::uint64_t skipped() const { return skipped_; }
  // Some generation has begun to train.
  void trains() { has_trained_ = true; }
  bool has_trained() const { return has_trained_; }
  // I1, I12: what the chief says is durable before; a lease has one owner, and its records come back only once all
  // shards have fenced it.
  void welcomes(Term term, const chiefd::JournalState& durable);
  void sends(const chiefd::Send& message, const chiefd::JournalState& durable);

  // I28: what a client was told is known to every later chief.
  void accepted(const std::string& job) { accepted_.insert(job); }
  void begins(const chiefd::JournalState& durable);

  // Of shards, from their making to their end.
  void serves(const RunId& run, ShardId shard, const ShardTwin& twin) { twins_[{run, shard}] = &twin; }
  void ends(const RunId& run, ShardId shard, const ShardTwin& twin);
  // I2: in a generation one process has a shard.
  void owns(const RunId& run, ShardId shard, const Member& owner);
  // It has applied a frame. Where another process has the shard in a newer generation, that is one for nothing.
  void applies(const RunId& run, ShardId shard, const Member& owner);
  std::uint64_t applied_by_former_owners() const { return applied_by_former_owners_; }
  void begins_at(const RunId& run, ShardId shard, Step step);
  void fenced(const RunId& run, ShardId shard, const Member& worker) { fenced_[run][worker].insert(shard); }
  // I7: what the pacer has decided on for a step, once.
  void decided(const RunId& run, Step step, Decision decision);
  // Of the mean gradient at one of so many shards, with clip = "global_norm": the pacer scales by all of them.
  void norm_is(const RunId& run, const ClipConfig& clip, std::uint32_t shards, Step step, ShardId shard, double norm2);
  const Decision* decision_of(const RunId& run, Step step) const;
  void cut(const RunId& run, std::uint64_t attempt, ShardId shard, CutTaken cut);
  // The chief makes no checkpoint of it any more. A shard may hear of that after the others.
  bool is_abandoned(const RunId& run, std::uint64_t attempt) const;

  // I10, I13, I14, I17, I18, I19: a checkpoint that can be seen is whole, of this generation, and what the shards had
  // at one moment, in any layout.
  void committed(const chiefd::CommitAttempt& commit, JobId job, const std::string& path);
  // I15, I16: of those that could be seen the newest is still there and good. What follows a commit and a loss of
  // power.
  void folder_is_good(const std::string& when);
  void power_lost();
  // Something was done to it that nobody promises to withstand, but to notice.
  void damaged(const std::string& path) { damaged_.insert(path); }
  bool is_any_damaged() const { return !damaged_.empty(); }
  // A generation goes on from the newest that was committed and isn't damaged, and from what that was made of. `held`:
  // a shard's parameters and slots, in its order.
  void rolls_back(const chiefd::GenerationRecord& record, const std::string& folder);
  void begins_with(const RunId& run, const JobConfig& job, const Layout& layout, ShardId shard, const CutTaken& held);
  // A client was told of it.
  void saved(const std::string& path);
  void has_last_checkpoint(const JobConfig& job, Step step);
  // "Newest" goes by generation, then by step.
  void found_newest(const std::string& folder, const std::optional<chiefd::RestorePoint>& newest);

  // async, ssp: a worker's gradient is its records' sum, so whatever the order, and whoever was lost, all frames that
  // were taken add up to one number, and each whole push is at all shards and in the ledger.
  void final_parameters(const RunId& run, const JobConfig& job, const Layout& layout, const std::vector<float>& flat);
  // sync: what a gradient is computed from is of one version, all of `buckets`.
  void computed_from(const std::string& who, const std::map<BucketId, Step>& versions, std::size_t buckets);
  // ssp: the clocks of the slowest and the fastest worker that compute now. Who has pushed for the last time leaves.
  void computes(const RunId& run, const JobConfig& job, const Member& worker, std::uint64_t clock);
  void leaves(const RunId& run, const Member& worker) { clocks_[run].erase(worker); }
  // L2: never a loop: each generation is for a loss, a damaged checkpoint, a chief that died, a task that was told to
  // end, or a link. A link may fail as often as the network makes it fail: of those the chief's word is taken, for it
  // must have told of each.
  void restarts(const JobConfig& job, const chiefd::GenerationRecord& record, Term term);
  // L4: a pause ends, and says why it is. `timeout`: of heartbeats, from which all others are derived.
  void state_is(Instant now, Duration timeout, chiefd::JobState state, const std::string& reason);
  // A finished job has visited each record of each epoch once.
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

  // Variable, element: its value, and those of its slots.
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
  std::map<RunId, std::set<Member>> lost_;      // they may not know it yet
  std::map<RunId, std::set<TaskId>> lost_any_;  // before they computed: whichever process it was
  std::map<JobId, chiefd::GenerationRecord> generations_;
  std::map<JobId, std::uint64_t> begun_;  // generations

  std::map<std::pair<RunId, ShardId>, Member> owners_;
  std::uint64_t applied_by_former_owners_ = 0;
  std::map<RunId, std::map<Member, std::set<ShardId>>> fenced_;
  std::map<RunId, std::map<LeaseId, Loan>> loans_;
  std::map<RunId, std::map<Step, Decision>> decisions_;
  std::map<std::pair<RunId, Step>, std::map<ShardId, double>> norms_;
  std::map<RunId, std::pair<std::uint64_t, std::map<ShardId, CutTaken>>> cuts_;        // of the newest attempt
  std::map<std::string, std::pair<std::pair<Generation, Step>, std::string>> newest_;  // by folder: its path
  std::set<std::string> damaged_;
  std::map<std::string, ByElement> values_of_;  // of each checkpoint, by its path
  std::map<std::string, double> visited_of_;    // of the records in its ledger
  std::optional<Instant> paused_since_;
  Duration longest_timeout_{};                // while it is paused
  std::map<RunId, std::uint64_t> abandoned_;  // the newest attempt that the chief has given up, with all before it
};

}  // namespace disttrain::sim
