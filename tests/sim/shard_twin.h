// A naive second implementation of a shard, which checks the real one. After each event the real shard's parameters and
// slots must equal the twin's, bit by bit. Gradients are small integers, so sums are exact.
//
//   async, ssp   each frame changes its bucket once, by itself, or not at all (I3, I5, I6)
//   sync         step k applies the mean over the set that the pacer has recorded, in rank order (I7)
//   all          records are visited once (I11); answers are true (I5, I9); a cut is of one moment (I13), and after a
//                cut that holds, nothing more is applied (I5)
#pragma once

#include <map>
#include <optional>
#include <set>
#include <vector>

#include "common/interval_set.h"
#include "common/update/update_rule.h"
#include "psd/shard_job.h"
#include "psd/store/shard.h"
#include "tests/sim/laws.h"

namespace disttrain::sim {

class ShardTwin {
 public:
  // `shard` is filled, and no event has reached it. `laws`, `job` and `shard` outlive the twin.
  ShardTwin(Laws& laws, const psd::ShardJob& job, psd::Shard& shard, ShardId id, const Member& owner,
            const Roster& roster, const PacerReport& restored);
  ~ShardTwin() { laws_.ends(run_, id_, *this); }
  ShardTwin(const ShardTwin&) = delete;

  // A push frame has arrived; the shard hasn't handled it yet.
  void arrives(psd::ChannelId channel, Sequence sequence);
  // Called right before and right after the shard handles an event. `payload`: a push's gradient; the values of its
  // records add up to `records`.
  void before(const psd::Event& event);
  void before_push(const psd::PushArrived& event, std::span<const float> payload, double records);
  // is_open: the push's channel is still open.
  void after(bool is_open = true);

  // Checks the shard's actions.
  void says(const psd::Admit& action);
  void says(const psd::Reply& action);
  void says(const psd::SendAcknowledge& action);
  void says(const psd::SendCommit& action);
  void says(const psd::Fenced& action);
  void says(const psd::CopyForCheckpoint& action);
  void says(const psd::FailJob&) { has_failed_ = true; }  // nothing that comes later changes it

  // async, ssp: what the shard has taken from each worker so far.
  TakenByWorker taken() const;

 private:
  struct Staged {
    Step clock;
    RosterVersion roster;
    std::map<BucketId, std::vector<float>> payloads;
    std::optional<Push> last;  // the push's last frame, once it has come
    bool nonfinite = false;
  };
  struct Worker {
    Sequence last;    // the last frame that was taken
    Sequence unsure;  // the frame over which the shard closed the channel; the shard may have taken it
    Step clock;       // of the last whole push
    Step floor;       // ssp: the clock at which the worker began, at least slowest() at that time
    bool is_in_push = false;
    bool is_at_work = false;  // ssp: the worker has begun, and hasn't sent its final push
    std::map<Step, Staged> staged;
    Taken taken;  // async, ssp
  };

  bool is_sync() const { return job_.config.train.mode == Mode::kSync; }
  std::string name() const;
  void take_roster(const Roster& roster);
  bool is_active(const Member& worker) const;
  void take(Worker& worker, const psd::PushArrived& event, std::span<const float> payload, double records);
  void apply(BucketId bucket, std::span<const float> payload);
  void is_gradient(const Push& push, std::span<const float> payload, double records);
  void stage(Worker& worker, const Push& push, std::span<const float> payload);
  Step slowest() const;  // clock of the slowest worker at work; if none is at work, the highest clock so far
  std::string visit(const Push& push);
  void expect_steps();
  std::vector<Member> whole_set(Step step) const;
  Decision own_decision(Step step);
  double norm2_of(const std::vector<const Staged*>& parts) const;
  std::vector<const Staged*> parts_of(Step step, const std::vector<Member>& members);
  double weigh(const std::vector<const Staged*>& parts, BucketId bucket,
               std::vector<update::WeightedGradient>& gradients) const;
  void add_step(Step step, const Decision& decision);
  void acknowledged(const Member& worker, Sequence upto);
  std::vector<float> values() const;
  bool has_slots_expected() const;
  update::SlotSpans slots_at(std::size_t at, std::size_t elements);

  Laws& laws_;
  const psd::ShardJob& job_;
  psd::Shard& shard_;
  const update::UpdateRule rule_;
  const ShardId id_;
  const RunId run_;
  const Member owner_;
  const std::vector<BucketId> buckets_;
  Roster roster_;
  std::map<psd::ChannelId, Member> channels_;
  std::map<Member, Worker> workers_;
  std::set<Member> fenced_;
  std::vector<float> expected_;  // parameters of all its buckets, one after the other
  std::vector<std::vector<float>> expected_slots_;
  Step version_;
  std::map<std::uint32_t, IntervalSet> visited_;  // pacer: by epoch, of those that aren't complete
  std::uint32_t complete_epochs_ = 0;
  // The state before the push under way, which the twin has already taken. If the shard closes the push's channel, this
  // state is put back.
  struct Before {
    Member member;
    Worker worker;
    std::vector<float> expected;
    std::vector<std::vector<float>> expected_slots;
    std::map<std::uint32_t, IntervalSet> visited;
    std::uint32_t complete_epochs = 0;
  };
  std::optional<Before> before_;
  bool has_failed_ = false;
  bool holds_ = false;                                     // the prepared attempt is the generation's last
  std::optional<std::pair<std::uint64_t, Step>> held_at_;  // attempt and step of a cut after which nothing is applied
  std::string problem_;                                    // with the push under way
};

}  // namespace disttrain::sim
