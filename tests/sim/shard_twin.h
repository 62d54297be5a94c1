// A naive second implementation of a shard. It checks the real shard: after each event, the parameters and slots of
// both must have the same bits. Floats and doubles represent the sums of the gradients exactly; see jobs.h. The twin
// checks these laws:
//
//   async, ssp   each frame changes its bucket once, or not at all; each frame is applied by itself (I3, I5, I6)
//   sync         step k applies the mean over the set of workers that the pacer has recorded, in rank order (I7)
//   all          each record is visited once (I11); the shard's answers are true (I5, I9); a cut has the state of one
//                moment (I13); after the last cut before a rollback, the shard applies nothing more (I5)
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "common/interval_set.h"
#include "common/update/update_rule.h"
#include "shards/shard_job.h"
#include "shards/store/shard.h"
#include "tests/sim/laws.h"

namespace disttrain::sim {

class ShardTwin {
 public:
  // `shard` has its parameters, and hasn't handled any event yet. `laws`, `job` and `shard` must live longer than the
  // twin.
  ShardTwin(Laws& laws, const shards::ShardJob& job, shards::Shard& shard, ShardId id, const Member& owner,
            const Roster& roster, const PacerReport& restored, bool awaits_values);
  ~ShardTwin() { laws_.ends(run_, id_, *this); }
  ShardTwin(const ShardTwin&) = delete;

  // Call when a push frame has arrived, before the shard handles it.
  void arrives(shards::ChannelId channel, Sequence sequence);
  // Call right before and right after the shard handles an event. `payload`: the gradient of a push. `records`: the sum
  // of the values of its records.
  void before(const shards::Event& event);
  void before_push(const shards::PushArrived& event, std::span<const float> payload, double records);
  // is_open: if true, the push's channel is still open.
  void after(bool is_open = true);

  // Checks the shard's actions.
  void says(const shards::Admit& action);
  void says(const shards::Reply& action);
  void says(const shards::SendAcknowledge& action);
  void says(const shards::SendCommit& action);
  void says(const shards::Fenced& action);
  void says(const shards::CopyForCheckpoint& action);
  void says(const shards::FailJob&) { has_failed_ = true; }  // after this, nothing is checked

  // async, ssp: the frames that the shard has taken from each worker so far.
  TakenByWorker taken() const;

 private:
  struct Staged {
    Step clock;
    RosterVersion roster;
    std::map<BucketId, std::vector<float>> payloads;
    std::optional<Push> last;  // the last frame of the push, if it has arrived
    bool nonfinite = false;
  };
  struct Worker {
    Sequence last;  // the last frame that the shard has taken
    // The shard closed the channel while it handled this frame. It may have taken the frame or not.
    Sequence unsure;
    Step clock;  // of the last whole push
    // In ssp, the clock at which the worker began. It was at least slowest() at that time.
    Step floor;
    bool is_in_push = false;
    bool is_at_work = false;  // ssp: the worker has begun, and its final push hasn't arrived
    std::map<Step, Staged> staged;
    Taken taken;  // async, ssp
  };

  bool is_sync() const { return job_.config.train.mode == Mode::kSync; }
  std::string name() const;
  void take_roster(const Roster& roster);
  bool is_active(const Member& worker) const;
  void take(const Member& from, Worker& worker, const shards::PushArrived& event, std::span<const float> payload,
            double records);
  // The contiguous parts of a bucket in which all variables are of the same kind, as in ShardStore::Run. As there, `T`
  // below is the type of a bucket's elements, and arrays are arrays of words.
  struct Part {
    std::size_t begin = 0;  // within the bucket
    std::size_t words = 0;
    bool is_state = false;
  };
  // The gradient of one worker, with its weight in the mean.
  struct Pushed {
    std::span<const float> words;
    float weight = 1.0F;
  };
  std::vector<Part> kinds_in(BucketId bucket) const;
  // Applies a frame, unless this would give numbers that aren't finite.
  void apply(const Member& from, BucketId bucket, std::span<const float> payload);
  void update(BucketId bucket, std::size_t at, const update::UpdateStep& step, const std::vector<Pushed>& gradients,
              double state_weight);
  template <typename T>
  void update_part(const Part& part, std::size_t at, const update::UpdateStep& step,
                   const std::vector<Pushed>& gradients, T state_weight);
  void update_variables(const update::UpdateStep& step, const std::vector<const Staged*>& parts);
  template <typename T>
  void update_variable(const update::UpdateStep& step, const std::vector<std::size_t>& indices,
                       const std::vector<std::vector<float>>& pushed, const std::vector<float>& weights);
  template <typename T>
  static std::vector<update::WeightedGradientOf<T>> part_of(const std::vector<Pushed>& gradients, const Part& part);
  // Lets the averages of expected_ [at, at + words) follow the parameters, if the job has averages.
  template <typename T>
  void average(std::size_t at, std::size_t words, bool is_state);
  void take_values(const Member& from, const Push& push, std::span<const float> payload);
  std::span<float> expected_of(BucketId bucket);
  std::uint64_t batches_at(const Push& push) const;
  void is_gradient(const Push& push, std::span<const float> payload, double records);
  bool is_finite(BucketId bucket, std::span<const float> payload) const;
  // Whether the expected parameters and slots are finite.
  bool expects_finite() const;
  void stage(Worker& worker, const Push& push, std::span<const float> payload);
  // Of the workers that are at work, the clock of the slowest one. If none is at work, the highest clock so far.
  Step slowest() const;
  std::string visit(const Push& push);
  void expect_steps();
  std::vector<Member> whole_set(Step step) const;
  Decision own_decision(Step step);
  double norm2_of(const std::vector<const Staged*>& parts) const;
  std::vector<const Staged*> parts_of(Step step, const std::vector<Member>& members);
  double weigh(const std::vector<const Staged*>& parts, BucketId bucket, std::vector<Pushed>& gradients) const;
  void add_step(Step step, const Decision& decision);
  void apply_step(Step step, double scale, const std::vector<const Staged*>& parts);
  void acknowledged(const Member& worker, Sequence upto);
  std::vector<float> values() const;
  bool has_slots_expected() const;
  template <typename T>
  update::SlotSpansOf<T> slots_at(std::size_t at, std::size_t words);

  Laws& laws_;
  const shards::ShardJob& job_;
  shards::Shard& shard_;
  const update::UpdateRule rule_;
  const ShardId id_;
  const RunId run_;
  const Member owner_;
  const std::vector<BucketId> buckets_;
  Roster roster_;
  std::map<shards::ChannelId, Member> channels_;
  std::map<Member, Worker> workers_;
  std::set<Member> fenced_;
  std::vector<float> expected_;  // the words of all the shard's buckets, one after the other
  std::vector<std::vector<float>> expected_slots_;
  Member giver_;                // the worker that the shard has asked for the first values
  std::set<BucketId> lacking_;  // the buckets that have no first values yet
  Step version_;
  std::map<std::uint32_t, IntervalSet> visited_;  // pacer: for each incomplete epoch, the visited records
  std::uint32_t complete_epochs_ = 0;
  // The state before the push that the shard is handling. The twin has already applied the push. If the shard closes
  // the push's channel, the twin returns to this state.
  struct Before {
    Member member;
    Worker worker;
    std::vector<float> expected;
    std::vector<std::vector<float>> expected_slots;
    std::set<BucketId> lacking;
    std::map<std::uint32_t, IntervalSet> visited;
    std::uint32_t complete_epochs = 0;
  };
  std::optional<Before> before_;
  std::optional<std::pair<TaskId, std::uint64_t>> batch_;  // the batch of that push; see Laws::batch_applied
  bool has_failed_ = false;
  bool holds_ = false;  // the prepared attempt is the last of its generation
  // After some cuts, the shard must apply nothing more. This is the attempt and the step of such a cut.
  std::optional<std::pair<std::uint64_t, Step>> held_at_;
  std::string problem_;  // with the push under way
};

}  // namespace disttrain::sim
