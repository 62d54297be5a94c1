// Laws checks the invariants of docs/invariants.md while a simulation runs, and keeps the first violation. The
// invariants of a single shard are checked by ShardTwin. Laws checks those of several shards or processes.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "chiefd/core/events.h"
#include "chiefd/core/status.h"
#include "common/checkpoint/manifest.h"
#include "common/layout.h"
#include "tests/sim/jobs.h"

namespace disttrain::sim {

using RunId = std::pair<JobId, Generation>;

// The frames that a shard has taken from one worker in its generation. Each member is a sum of value_of() over records.
struct Taken {
  std::map<BucketId, double> sums;    // over the records of all frames
  std::map<BucketId, double> newest;  // over the records of the newest push's frames
  double visited = 0.0;               // pacer: over the worker's records in the ledger
  double visited_last = 0.0;          // pacer: over the records of the newest push
};
using TakenByWorker = std::map<Member, Taken>;

// The state of a shard at a checkpoint's cut.
struct CutTaken {
  Step version;
  std::vector<float> values;              // the words of the parameters, in the shard's order
  std::vector<std::vector<float>> slots;  // one array for each slot, in the order of `values`
  std::map<Member, Step> clocks;          // for each worker, the clock of its last complete push
  TakenByWorker taken;
  std::optional<std::map<TaskId, std::uint64_t>> batches{};  // the pacer's: see Laws::orders_begin
};

// The pacer's decision about one synchronous step.
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

  // The chief recorded that a worker of the job's newest generation was lost, has left, or lost a link.
  void worker_lost(JobId job, const std::string& task);
  // A task was told to end. For each such task, one rollback doesn't count as a loss.
  void is_to_leave() { ++leavers_; }
  // The chief recorded a start without a worker that has failed. It doesn't count as a loss. Between two other
  // rollbacks there are at most as many such starts as workers.
  void starts_without_a_worker();
  // The chief recorded another rollback of the job, or the chief is a new one.
  void begins_anew() { spared_in_a_row_ = 0; }
  // The chief recorded a rollback that doesn't count as a loss, because a task was told to end or a link failed.
  void rolls_back_uncounted(bool is_link) { ++(is_link ? link_rollbacks_ : leaver_rollbacks_); }
  bool has_lost_links() const { return link_rollbacks_ > 0; }
  // The record is durable. The generation is about to begin with the checkpoint that the record names, or with initial
  // values.
  void generation_begins(const chiefd::GenerationRecord& record);
  // A step was skipped at a shard.
  void skips() { ++skipped_; }
  std::uint64_t skipped() const { return skipped_; }
  // Called when a job, no matter which, begins to train.
  void trains() { has_trained_ = true; }
  bool has_trained() const { return has_trained_; }
  // I1, I12: the chief sends a term, generation, roster or lease only when it is durable. I11, I12: each lease has one
  // borrower, and its records are lent again only after all shards have fenced that borrower.
  void welcomes(Term term, const chiefd::JournalState& durable);
  void sends(const chiefd::Send& message, const chiefd::JournalState& durable);

  // I28: if a client was told that its job is accepted, every later chief knows the job.
  void accepted(const std::string& job) { accepted_.insert(job); }
  void begins(const chiefd::JournalState& durable);

  // A ShardTwin calls serves() when it is made and ends() when it is destroyed. In between, the laws may use the
  // pointer.
  void serves(const RunId& run, ShardId shard, const ShardTwin& twin) { twins_[{run, shard}] = &twin; }
  void ends(const RunId& run, ShardId shard, const ShardTwin& twin);
  // I2: in each generation, only one process owns a shard.
  void owns(const RunId& run, ShardId shard, const Member& owner);
  // `owner` has applied a frame. Counts this frame if another process owns the shard in a newer generation.
  void applies(const RunId& run, ShardId shard, const Member& owner);
  std::uint64_t applied_by_former_owners() const { return applied_by_former_owners_; }
  void begins_at(const RunId& run, ShardId shard, Step step);
  void fenced(const RunId& run, ShardId shard, const Member& worker) { fenced_[run][worker].insert(shard); }
  // I7: the pacer decides only once about each step.
  void decided(const RunId& run, Step step, Decision decision);
  // I7, for jobs with clip = "global_norm". `norm2` is the squared norm of the mean gradient at one shard. When the
  // norms of all `shards` shards are known, they must give the scale that the pacer decided on.
  void norm_is(const RunId& run, const ClipConfig& clip, std::uint32_t shards, Step step, ShardId shard, double norm2);
  const Decision* decision_of(const RunId& run, Step step) const;
  void cut(const RunId& run, std::uint64_t attempt, ShardId shard, CutTaken cut);
  // Returns true if the chief has given this attempt up. The shards may learn of this at different times.
  bool is_abandoned(const RunId& run, std::uint64_t attempt) const;

  // I35: in async and ssp with data.sharding = "none", a worker goes on in its own order right after the batches that
  // are in the parameters: no batch is repeated or left out, whoever was lost or rolled back. The laws count these
  // batches for the pacer. `restore_path`: "" for initial values.
  void orders_begin(const RunId& run, const std::string& restore_path);
  void batch_applied(const RunId& run, TaskId worker, std::uint64_t batches);
  void goes_on(const RunId& run, TaskId worker, std::uint64_t batches);

  // I10, I13, I14, I17, I18, I19: when a checkpoint becomes visible, it is complete and belongs to the current
  // generation. It holds the state that the shards had at one moment. A restore into another layout gives the same
  // values.
  void committed(const chiefd::CommitAttempt& commit, JobId job, const std::string& path);
  // I15, I16: in each folder, the newest committed checkpoint is still there and verifies. Called after each commit and
  // each loss of power. `when` is a part of the violation's text.
  void folder_is_good(const std::string& when);
  void power_lost();
  // A fault damaged the checkpoint at `path`. From now on, this checkpoint may be unusable, but a restore must notice
  // the damage.
  void damaged(const std::string& path) {
    damaged_.insert(path);
    ++damages_;
  }
  bool was_any_damaged() const { return damages_ > 0; }
  // I15, I18: a generation begins with the newest checkpoint that isn't damaged, and with the values that were saved in
  // it. `held` has a shard's parameters and slots, in the shard's order.
  void rolls_back(const chiefd::GenerationRecord& record, const std::string& folder);
  void begins_with(const RunId& run, const JobConfig& job, const Layout& layout, ShardId shard, const CutTaken& held);
  // A client was told that the checkpoint at `path` is saved.
  void saved(const std::string& path);
  void has_last_checkpoint(const JobConfig& job, Step step);
  // The chief has searched the folder, and takes `newest` for the newest checkpoint in it. Of two checkpoints, the
  // newer one has the higher generation. If their generations are equal, the newer one has the higher step.
  void found_newest(const std::string& folder, const std::optional<chiefd::RestorePoint>& newest);

  // An evaluator has evaluated the checkpoint at `path`, or a worker its parameters. "": no checkpoint has these.
  void evaluated(JobId job, const std::string& path, Step step);
  // The chief has committed a checkpoint, and knows it.
  void knows_checkpoint(const chiefd::CheckpointRecord& record) { committed_[record.job].insert(record.path); }
  // The chief gives up the evaluation of a checkpoint. "": of all that aren't evaluated.
  void evaluates_no_more(JobId job, const std::string& path);
  // I33: evaluate.stop_after counts each step once.
  void notes_evaluations(const chiefd::EvaluationsRecord& record);
  // I32: of the best checkpoints in the chief's record, those that are there before a commit are there after it.
  std::vector<std::string> pins_there(const chiefd::EvaluationsRecord& record) const;
  void pins_stay(const std::vector<std::string>& pins);
  // I31: the job has finished. Each checkpoint that is still there was evaluated.
  void has_evaluated_all(JobId job, const JobConfig& config);

  // async, ssp: checks the final parameters. They must be the initial parameters minus all gradients that the shards
  // have taken. These gradients are sums of integers over records, so neither their order nor lost workers change the
  // result. If a push has reached one shard whole, it must have reached all shards and the ledger.
  void final_parameters(const RunId& run, const JobConfig& job, const Layout& layout, const std::vector<float>& flat);
  // sync: a worker computes a gradient from parameters of one version. It has received all `buckets` buckets.
  void computed_from(const std::string& who, const std::map<BucketId, Step>& versions, std::size_t buckets);
  // I9: a worker computes the step `clock`. In ssp, it isn't too far ahead of the slowest worker. After its last push,
  // a worker leaves, and its clock doesn't count any more.
  void computes(const RunId& run, const JobConfig& job, const Member& worker, std::uint64_t clock);
  void leaves(const RunId& run, const Member& worker) { clocks_[run].erase(worker); }
  // L2: a job doesn't restart endlessly. Each generation has a cause: a loss, a damaged checkpoint, a chief that died,
  // a task that was told to end, or a failed link. Links may fail any number of times. So each rollback that the chief
  // has recorded because of a link allows one more generation.
  void restarts(const JobConfig& job, const chiefd::GenerationRecord& record, Term term);
  // L4: each pause ends, and has a reason. `timeout` is the heartbeat timeout, from which all other timeouts are
  // derived. `crashes`: how many processes have crashed so far. A long pause waits for absent tasks, without a limit,
  // and the chief has reported it.
  void is_paused(Instant now, Duration timeout, std::uint64_t crashes, const JobConfig& job,
                 const chiefd::JobStatus& status);
  void isnt_paused();
  void reports_wait(Instant now) { wait_reported_ = now; }
  void counts_loss(Instant now) { loss_counted_ = now; }
  // I11: a finished job has visited each record once in each epoch.
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

  // For each word of a variable: the word of its parameter, followed by those of its slots.
  using ByWord = std::map<std::pair<std::uint32_t, std::uint64_t>, std::vector<float>>;
  const ByWord* begun_with(const RunId& run) const;
  // The element that begins at this word, in a run that began with `begun`, or with initial values if it is null.
  template <typename T>
  T begun_value(const ByWord* begun, const JobConfig& job, std::uint32_t variable, std::uint64_t word) const;
  template <typename T>
  void is_final(const JobConfig& job, const Layout& layout, const Bucket& bucket, const Slice& slice,
                const ByWord* begun, double sum, std::span<const float> flat);

  const Jobs& jobs_;
  std::string violation_;
  bool has_trained_ = false;
  std::uint64_t leavers_ = 0;
  std::uint64_t leaver_rollbacks_ = 0;
  std::uint64_t link_rollbacks_ = 0;
  std::uint64_t spared_rollbacks_ = 0;
  std::uint64_t spared_in_a_row_ = 0;
  std::uint64_t skipped_ = 0;
  std::set<std::string> accepted_;
  std::map<std::pair<RunId, ShardId>, const ShardTwin*> twins_;
  std::map<RunId, std::map<Member, std::uint64_t>> clocks_;
  std::map<RunId, std::set<Member>> lost_;      // lost processes; each may go on for a while
  std::map<RunId, std::set<TaskId>> lost_any_;  // tasks that were lost before the laws knew their process
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
  std::set<std::string> damaged_;                                                      // paths
  std::uint64_t damages_ = 0;                                                          // so far
  std::map<JobId, std::set<std::string>> evaluated_;                                   // paths
  std::map<JobId, std::set<Step>> evaluated_steps_;
  std::map<JobId, std::set<std::string>> committed_;  // paths
  std::map<JobId, std::set<std::string>> given_up_;   // paths
  std::map<std::string, ByWord> values_of_;           // by the path of the checkpoint
  // The batches that each worker has done of its own order. None: not known, because a chief died during the commit.
  using Batches = std::optional<std::map<TaskId, std::uint64_t>>;
  std::map<RunId, Batches> batches_;
  std::map<std::string, Batches> batches_of_;  // by the path of the checkpoint
  std::map<std::string, double> visited_of_;   // by path: sum of value_of() over the ledger's records
  std::optional<Instant> paused_since_;
  std::uint64_t crashes_before_ = 0;  // the number of crashes before this pause
  Instant counted_since_;             // the beginning of the pause, or the end of its last wait without a limit
  std::optional<Instant> wait_reported_;
  Instant loss_counted_;                      // the last one
  Duration longest_timeout_{};                // the longest heartbeat timeout during this pause
  std::map<RunId, std::uint64_t> abandoned_;  // the newest attempt that was given up
};

}  // namespace disttrain::sim
