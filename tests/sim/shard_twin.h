// What a shard must do, worked out anew and plainly beside the real one: after each event its parameters must be what
// the frames that it took make of them, bit by bit. Gradients are small integers, so sums are exact.
//
//   async, ssp   each frame changes its bucket once, by itself, or not at all (I3, I5, I6)
//   sync         step k is the mean over the set that the pacer has recorded, in rank order (I7)
//   all          records are visited once (I11); answers say what is so (I5, I9); a cut is of one moment (I13), and if
//                it holds the last one
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
  // `shard` as it begins, at the end of its making. All outlive the twin.
  ShardTwin(Laws& laws, const psd::ShardJob& job, psd::Shard& shard, ShardId id, const Member& owner,
            const Roster& roster, const PacerReport& restored);
  ~ShardTwin() { laws_.ends(run_, id_, *this); }
  ShardTwin(const ShardTwin&) = delete;

  // A push's frame, before the shard has looked at it.
  void arrives(psd::ChannelId channel, Sequence sequence);
  // Around each event. `payload`: of a push, a gradient of records whose values add up to `records`.
  void before(const psd::Event& event);
  void before_push(const psd::PushArrived& event, std::span<const float> payload, double records);
  // is_open: the push's channel still is.
  void after(bool is_open = true);

  // What the shard says.
  void says(const psd::Admit& action);
  void says(const psd::Reply& action);
  void says(const psd::SendAcknowledge& action);
  void says(const psd::SendCommit& action);
  void says(const psd::Fenced& action);
  void says(const psd::CopyForCheckpoint& action);
  void says(const psd::FailJob&) { has_failed_ = true; }  // nothing that comes later changes it

  // async, ssp: of each worker, as of now.
  TakenByWorker taken() const;

 private:
  struct Staged {
    Step clock;
    RosterVersion roster;
    std::map<BucketId, std::vector<float>> payloads;
    std::optional<Push> last;  // its last frame, once it is there
    bool nonfinite = false;
  };
  struct Worker {
    Sequence last;    // frame taken
    Sequence unsure;  // taken, or not, by a channel that was closed for it
    Step clock;       // of the last whole push
    Step floor;       // ssp: where it began, not behind slowest()
    bool is_in_push = false;
    bool is_at_work = false;  // ssp: it began, and hasn't said that nothing follows
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
  Step slowest() const;  // of those at work; while nobody is, the furthest ever
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
  std::map<std::uint32_t, IntervalSet> visited_;  // pacer: of epochs that aren't complete
  std::uint32_t complete_epochs_ = 0;
  // The push under way is taken already; if its channel is closed for it, it wasn't.
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
  bool holds_ = false;  // the attempt that is prepared is the last that is seen of the generation
  std::optional<std::pair<std::uint64_t, Step>> held_at_;  // attempt, where it was cut: nothing is applied any more
  std::string problem_;                                    // with it
};

}  // namespace disttrain::sim
