#include "tests/sim/shard_twin.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/update/schedule.h"

namespace disttrain::sim {

ShardTwin::ShardTwin(Laws& laws, const shards::ShardJob& job, shards::Shard& shard, ShardId id, const Member& owner,
                     const Roster& roster, const PacerReport& restored, bool awaits_values)
    : laws_(laws),
      job_(job),
      shard_(shard),
      rule_(job.config.train),
      id_(id),
      run_{job.job, job.generation},
      owner_(owner),
      buckets_(buckets_of(job.layout, id)),
      roster_(roster),
      version_(restored.global_step),
      complete_epochs_(restored.complete_epochs) {
  for (const EpochLedger& epoch : restored.ledger) visited_[epoch.epoch] = IntervalSet(epoch.visited);
  expected_ = values();
  if (awaits_values) lacking_.insert(buckets_.begin(), buckets_.end());
  for (std::size_t i = 0; i < shard_.store().slots(); ++i) {
    const auto slot = shard_.store().slot(i);
    expected_slots_.emplace_back(slot.begin(), slot.end());
  }
  laws_.serves(run_, id_, *this);
  laws_.owns(run_, id_, owner_);
  laws_.begins_at(run_, id_, version_);
  laws_.begins_with(run_, job.config, job.layout, id_, CutTaken{version_, expected_, expected_slots_, {}, {}});
}

std::string ShardTwin::name() const {
  return "shard " + std::to_string(id_.value) + " of generation " + std::to_string(run_.second.value);
}

std::vector<float> ShardTwin::values() const {
  std::vector<float> all;
  for (const BucketId bucket : buckets_) {
    const auto values = shard_.parameters(bucket);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

bool ShardTwin::has_slots_expected() const {
  for (std::size_t i = 0; i < expected_slots_.size(); ++i) {
    const auto slot = shard_.store().slot(i);
    if (!same_bits(slot, expected_slots_[i])) return false;
  }
  return true;
}

TakenByWorker ShardTwin::taken() const {
  TakenByWorker all;
  for (const auto& [member, worker] : workers_) {
    all[member] = worker.taken;
    for (const BucketId bucket : buckets_) all[member].sums.try_emplace(bucket, 0.0);
  }
  return all;
}

bool ShardTwin::is_active(const Member& worker) const {
  return fenced_.count(worker) == 0 &&
         std::find(roster_.members.begin(), roster_.members.end(), worker) != roster_.members.end();
}

void ShardTwin::take_roster(const Roster& roster) {
  if (roster.version <= roster_.version) return;
  roster_ = roster;
  for (auto& [member, worker] : workers_)
    if (!is_active(member)) worker.staged.clear();
}

void ShardTwin::before(const shards::Event& event) {
  if (const auto* opened = std::get_if<shards::ChannelOpened>(&event)) {
    channels_[opened->channel] = opened->worker;
  }
  if (const auto* pull = std::get_if<shards::PullArrived>(&event); pull != nullptr && pull->pull.begins) {
    Worker& worker = workers_[channels_.at(pull->channel)];
    worker.is_at_work = false;
    worker.floor = std::max({pull->pull.clock, worker.clock, slowest()});
    worker.is_at_work = true;
  }
  if (const auto* set = std::get_if<shards::RosterSet>(&event)) take_roster(set->roster);
  if (const auto* news = std::get_if<shards::NewsArrived>(&event)) take_roster(news->news.roster);
  if (const auto* fence = std::get_if<shards::Fence>(&event)) fenced_.insert(fence->worker);
  const auto* prepared = std::get_if<shards::AttemptPrepared>(&event);
  if (prepared != nullptr) holds_ = prepared->holds;
  if (prepared != nullptr || std::holds_alternative<shards::AttemptAbandoned>(event)) held_at_.reset();
}

// A connection keeps the order of its frames, and a worker that reconnects learns which frame was taken last. So if a
// frame is missing between two others, the worker has a bug. The shard would only close the channel, which would hide
// the bug.
void ShardTwin::arrives(shards::ChannelId channel, Sequence sequence) {
  const auto found = channels_.find(channel);
  if (found == channels_.end() || has_failed_) return;
  const Sequence last = workers_[found->second].last;
  if (sequence > last.next())
    laws_.violated("I6: " + to_string(found->second.task) + " sends frame " + std::to_string(sequence.value) + " to " +
                   name() + ", but the last frame that this shard has taken is " + std::to_string(last.value));
}

void ShardTwin::before_push(const shards::PushArrived& event, std::span<const float> payload, double records) {
  problem_.clear();
  if (has_failed_) return;
  const auto channel = channels_.find(event.channel);
  if (channel == channels_.end()) return;
  Worker& worker = workers_[channel->second];
  if (event.sequence != worker.last.next()) return;  // a duplicate or a refused frame: it changes nothing
  before_ = Before{channel->second, worker, expected_, expected_slots_, lacking_, visited_, complete_epochs_};
  if (!is_active(channel->second))
    problem_ = "I3: " + name() + " takes a frame of " + to_string(channel->second.task) +
               ", which is fenced or isn't in the roster";
  if (event.push.initial) {
    worker.last = event.sequence;
    return take_values(channel->second, event.push, payload);
  }
  take(channel->second, worker, event, payload, records);
}

void ShardTwin::after(bool is_open) {
  if (has_failed_) return before_.reset();
  // When the attempt is given up, the hold ends. The chief may tell the pacer first. Then the pacer's next commit may
  // reach this shard before the chief's AbandonCheckpoint does.
  if (held_at_ && laws_.is_abandoned(run_, held_at_->first)) held_at_.reset();
  if (held_at_ && shard_.core().version() != held_at_->second)
    laws_.violated("I5: " + name() + " applies step " + std::to_string(shard_.core().version().value) +
                   " after the checkpoint of step " + std::to_string(held_at_->second.value) +
                   ", although that checkpoint was the last of the generation");
  if (before_ && !is_open) {
    before_->worker.unsure = before_->worker.last.next();
    workers_[before_->member] = std::move(before_->worker);
    expected_ = std::move(before_->expected);
    expected_slots_ = std::move(before_->expected_slots);
    lacking_ = std::move(before_->lacking);
    visited_ = std::move(before_->visited);
    complete_epochs_ = before_->complete_epochs;
  } else if (before_ && !problem_.empty()) {
    laws_.violated(problem_);
  } else if (before_) {
    laws_.applies(run_, id_, owner_);
    if (batch_) laws_.batch_applied(run_, batch_->first, batch_->second);
  }
  before_.reset();
  batch_.reset();
  if (is_sync()) expect_steps();
  if (!expects_finite())
    laws_.violated("I34: parameters or slots of " + name() + " aren't finite at version " +
                   std::to_string(shard_.core().version().value));
  if (!same_bits(values(), expected_) || !has_slots_expected())
    laws_.violated(std::string(is_sync() ? "I7: " : "I3, I5: ") + name() + " at version " +
                   std::to_string(shard_.core().version().value) +
                   " has other parameters than the twin, which has applied the same frames");
  if (shard_.core().version() < version_) laws_.violated("I8: the version of " + name() + " goes back");
  version_ = shard_.core().version();
}

// I24: the payload has passed the worker's buffers and the network, and is still what the worker computed.
void ShardTwin::is_gradient(const Push& push, std::span<const float> payload, double records) {
  if (job_.config.train.clip.kind == ClipKind::kGlobalNorm) return;  // scaled at the worker
  const std::uint64_t begin = job_.layout.buckets[push.bucket.value].flat_begin;
  with_type(dtype_of(job_.layout, push.bucket), [&]<typename T>(T) {
    const std::span<const T> values = values_in<T>(payload);
    for (std::size_t i = 0; i < values.size(); ++i) {
      const T expected = coefficient<T>(begin + i * sizeof(T) / sizeof(float)) * static_cast<T>(records);
      const bool is_spoiled = !(std::abs(values[i]) < std::numeric_limits<T>::max());
      if (values[i] != expected && !is_spoiled)
        return laws_.violated("I24: a frame of bucket " + std::to_string(push.bucket.value) + " has " +
                              std::to_string(values[i]) + " instead of " + std::to_string(expected));
    }
  });
}

bool ShardTwin::is_finite(BucketId bucket, std::span<const float> payload) const {
  return with_type(dtype_of(job_.layout, bucket), [payload]<typename T>(T) {
    return std::ranges::all_of(values_in<T>(payload), [](T value) { return std::isfinite(value); });
  });
}

void ShardTwin::take(const Member& from, Worker& worker, const shards::PushArrived& event,
                     std::span<const float> payload, double records) {
  const Push& push = event.push;
  worker.last = event.sequence;
  is_gradient(push, payload, records);
  if (is_sync()) return stage(worker, push, payload);
  Taken& taken = worker.taken;
  if (!worker.is_in_push) {
    taken.newest.clear();
    taken.visited_last = 0.0;
  }
  worker.is_in_push = !push.last;
  // A worker skips a push if its loss isn't finite. Buckets that it had already sent have payloads, and the others have
  // none. The twin adds the push's records to the sums of both kinds of buckets.
  for (const BucketId bucket : buckets_) {
    const bool is_skipped_part = push.skipped && push.last && push.examples > 0 && taken.newest.count(bucket) == 0;
    if (!is_skipped_part && (bucket != push.bucket || payload.empty())) continue;
    taken.sums[bucket] += records;
    taken.newest[bucket] += records;
  }
  if (!push.skipped && !payload.empty() && is_finite(push.bucket, payload)) apply(from, push.bucket, payload);
  if (!push.last) return;
  worker.clock = push.clock;
  if (push.final) worker.is_at_work = false;
  if (push.examples == 0) return;
  if (id_.value == 0 && push.lease.value != 0) {
    taken.visited += records;
    taken.visited_last = records;
  }
  if (id_.value == 0 && job_.config.data.sharding == Sharding::kNone) batch_ = {from.task, batches_at(push)};
  if (problem_.empty()) problem_ = visit(push);
}

// How many batches of its own order the worker has done with this push.
std::uint64_t ShardTwin::batches_at(const Push& push) const {
  const std::uint64_t size = job_.config.train.step_records();
  const auto batches = [size](std::uint64_t records) { return (records + size - 1) / size; };
  return push.epoch * batches(job_.train_records) + batches(push.visited.begin()->begin + push.examples);
}

// The shard takes the first values of the worker that it has asked, until it has all of them.
void ShardTwin::take_values(const Member& from, const Push& push, std::span<const float> payload) {
  if (lacking_.empty() || from != giver_) return;
  const std::span<float> values = expected_of(push.bucket);
  std::ranges::copy(payload, values.begin());
  if (job_.config.evaluate.average > 0.0)
    std::ranges::copy(payload, expected_slots_.back().begin() + (values.data() - expected_.data()));
  lacking_.erase(push.bucket);
}

std::span<float> ShardTwin::expected_of(BucketId bucket) {
  std::size_t at = 0;
  for (const BucketId own : buckets_) {
    const std::size_t words = job_.layout.buckets[own.value].words;
    if (own == bucket) return std::span(expected_).subspan(at, words);
    at += words;
  }
  return {};
}

// ---- sync

void ShardTwin::stage(Worker& worker, const Push& push, std::span<const float> payload) {
  Staged& staged = worker.staged[push.clock];
  if (!worker.is_in_push) staged = Staged();
  worker.is_in_push = !push.last;
  staged.clock = push.clock;
  staged.roster = push.roster;
  if (!payload.empty()) staged.payloads[push.bucket] = std::vector<float>(payload.begin(), payload.end());
  staged.nonfinite = staged.nonfinite || push.skipped || (!payload.empty() && !is_finite(push.bucket, payload));
  if (!push.last) return;
  staged.last = push;
  worker.clock = push.clock;
}

// With a single shard, the pacer sends no Commit that names the workers of a step. So the twin computes this set: all
// active workers whose complete push is staged.
std::vector<Member> ShardTwin::whole_set(Step step) const {
  std::vector<Member> members;
  for (const Member& member : roster_.members) {
    const auto worker = workers_.find(member);
    if (!is_active(member) || worker == workers_.end()) continue;
    const auto staged = worker->second.staged.find(step);
    if (staged == worker->second.staged.end() || !staged->second.last) continue;
    if (staged->second.roster.value == 0 || staged->second.roster == roster_.version) members.push_back(member);
  }
  return members;
}

// With a single shard, the pacer sends no Commit, so the twin makes the decision by the same rules.
Decision ShardTwin::own_decision(Step step) {
  Decision decision{whole_set(step), 1.0, false};
  for (const Member& member : decision.members)
    decision.skip = decision.skip || workers_[member].staged[step].nonfinite;
  const ClipConfig& clip = job_.config.train.clip;
  if (decision.skip) return decision;
  const std::vector<const Staged*> parts = parts_of(step, decision.members);
  if (clip.kind == ClipKind::kGlobalNorm) {
    const double norm = std::sqrt(norm2_of(parts));
    if (!std::isfinite(norm)) decision.skip = true;
    if (!decision.skip && norm > clip.value) decision.scale = clip.value / norm;
    return decision;
  }
  // If the step would give numbers that aren't finite, it is skipped.
  const std::vector<float> before = expected_;
  const std::vector<std::vector<float>> slots_before = expected_slots_;
  apply_step(step, 1.0, parts);
  decision.skip = !expects_finite();
  expected_ = before;
  expected_slots_ = slots_before;
  return decision;
}

void ShardTwin::expect_steps() {
  for (Step step = version_.next(); step <= shard_.core().version(); step = step.next()) {
    if (job_.layout.shards == 1) laws_.decided(run_, step, own_decision(step));
    const Decision* decision = laws_.decision_of(run_, step);
    if (decision == nullptr)
      return laws_.violated("I7: " + name() + " applies step " + std::to_string(step.value) +
                            ", but the pacer hasn't decided on this step");
    add_step(step, *decision);
  }
}

// The staged pushes of these members for this step, without those that have no examples or aren't finite.
std::vector<const ShardTwin::Staged*> ShardTwin::parts_of(Step step, const std::vector<Member>& members) {
  std::vector<const Staged*> parts;
  for (const Member& member : members) {
    const Staged& staged = workers_[member].staged[step];
    if (staged.last && staged.last->examples > 0 && !staged.nonfinite) parts.push_back(&staged);
  }
  return parts;
}

// Appends the gradients of one bucket with their weights. Returns the sum of the weights.
double ShardTwin::weigh(const std::vector<const Staged*>& parts, BucketId bucket,
                        std::vector<Pushed>& gradients) const {
  const auto equal = [&parts](const Staged* part) { return part->last->examples == parts.front()->last->examples; };
  const bool is_plain = std::all_of(parts.begin(), parts.end(), equal);
  double total = 0.0;
  for (const Staged* part : parts) {
    const auto payload = part->payloads.find(bucket);
    if (payload == part->payloads.end()) {
      laws_.violated("I7: " + name() + " applies a step although a bucket is missing");
      return 0.0;
    }
    const float weight = is_plain ? 1.0F : static_cast<float>(part->last->examples);
    gradients.push_back({payload->second, weight});
    total += static_cast<double>(weight);
  }
  return total;
}

void ShardTwin::add_step(Step step, const Decision& decision) {
  for (const Member& member : decision.members) {
    const Staged& staged = workers_[member].staged[step];
    if (!staged.last)
      return laws_.violated("I7: " + name() + " applies step " + std::to_string(step.value) + " with " +
                            to_string(member.task) + ", but doesn't have the push of this worker");
    if (staged.roster.value != 0 && staged.roster != roster_.version)
      return laws_.violated("I11: " + name() + " applies step " + std::to_string(step.value) +
                            " with records that were lent to another roster");
    if (id_.value == 0 && staged.last->examples > 0)
      if (const std::string problem = visit(*staged.last); !problem.empty()) return laws_.violated(problem);
    if (staged.nonfinite && !decision.skip)
      return laws_.violated("I7: step " + std::to_string(step.value) + " is applied although the gradient of " +
                            to_string(member.task) + " at " + name() + " isn't finite");
  }
  if (decision.skip) laws_.skips();
  const std::vector<const Staged*> parts = parts_of(step, decision.members);
  const ClipConfig& clip = job_.config.train.clip;
  if (clip.kind == ClipKind::kGlobalNorm && !decision.skip)
    laws_.norm_is(run_, clip, job_.layout.shards, step, id_, norm2_of(parts));
  if (!decision.skip) apply_step(step, decision.scale, parts);
  for (auto& [member, worker] : workers_)
    std::erase_if(worker.staged, [step](const auto& staged) { return staged.first < step; });
}

void ShardTwin::apply_step(Step step, double scale, const std::vector<const Staged*>& parts) {
  const double rate = update::learning_rate(job_.config.train, step.value - 1, roster_.members.size());
  std::size_t at = 0;
  for (const BucketId bucket : buckets_) {
    std::vector<Pushed> gradients;
    const double total = weigh(parts, bucket, gradients);
    if (!gradients.empty() && total > 0.0) update(bucket, at, {rate, step.value - 1, scale / total}, gradients, 1.0);
    at += job_.layout.buckets[bucket.value].words;
  }
  if (rule_.is_by_variable()) update_variables({rate, step.value - 1, scale}, parts);
}

// ---- ssp

Step ShardTwin::slowest() const {
  std::optional<Step> least;
  Step furthest;
  for (const auto& [member, worker] : workers_) {
    const Step clock = std::max(worker.clock, worker.floor);
    furthest = std::max(furthest, clock);
    if (is_active(member) && worker.is_at_work) least = std::min(least.value_or(clock), clock);
  }
  return least.value_or(furthest);
}

// ---- data

std::string ShardTwin::visit(const Push& push) {
  if (id_.value != 0 || push.lease.value == 0) return "";
  IntervalSet& visited = visited_[push.epoch];
  for (const Interval& interval : push.visited) {
    const std::uint64_t added = visited.insert(interval);
    if (push.epoch >= complete_epochs_ && added == interval.end - interval.begin) continue;
    return "I11: records [" + std::to_string(interval.begin) + ", " + std::to_string(interval.end) + ") of epoch " +
           std::to_string(push.epoch) + " were visited twice";
  }
  while (visited_.count(complete_epochs_) != 0 && visited_[complete_epochs_].size() == job_.train_records)
    visited_.erase(complete_epochs_++);
  return "";
}

// ---- what the shard says

void ShardTwin::acknowledged(const Member& worker, Sequence upto) {
  laws_.owns(run_, id_, owner_);
  if (upto > workers_[worker].last)
    laws_.violated("I5: " + name() + " acknowledges frame " + std::to_string(upto.value) + " of " +
                   to_string(worker.task) + ", but hasn't taken this frame");
}

void ShardTwin::says(const shards::Admit& action) {
  const Member& worker = channels_.at(action.channel);
  if (action.last_sequence == workers_[worker].unsure) workers_[worker].last = action.last_sequence;
  if (action.last_sequence != workers_[worker].last)
    laws_.violated("I5: " + name() + " says that the last frame of " + to_string(worker.task) + " is " +
                   std::to_string(action.last_sequence.value) + ", but it is " +
                   std::to_string(workers_[worker].last.value));
  if (!is_active(worker))
    laws_.violated("I3: " + name() + " admits " + to_string(worker.task) + ", which is fenced or isn't in the roster");
}

void ShardTwin::says(const shards::Reply& action) {
  const Member& from = channels_.at(action.channel);
  const Parameters& message = action.message;
  acknowledged(from, message.acknowledged);
  if (!lacking_.empty())
    laws_.violated("I10: " + name() + " answers " + to_string(from.task) + " before it has all first values");
  const Step clock = workers_[from].clock;
  if (is_sync() && message.outcome == PushOutcome::kApplied && message.version < clock)
    laws_.violated("I5: " + name() + " says that step " + std::to_string(clock.value) +
                   " is applied, but it has version " + std::to_string(message.version.value));
  if (job_.config.train.mode != Mode::kSsp || message.pull_id != 0 || message.finished) return;
  for (const auto& [other, state] : workers_)
    if (other != from && is_active(other) && state.is_at_work &&
        clock.value > std::max(state.clock, state.floor).value + job_.config.train.staleness)
      laws_.violated("I9: " + name() + " lets " + to_string(from.task) + " go on at clock " +
                     std::to_string(clock.value) + " while " + to_string(other.task) + " has clock " +
                     std::to_string(state.clock.value) + ", staleness " + std::to_string(job_.config.train.staleness));
}

void ShardTwin::says(const shards::SendAcknowledge& action) {
  const Member& to = channels_.at(action.channel);
  acknowledged(to, action.message.acknowledged);
  if (!action.message.wants_values || giver_ == to) return;
  giver_ = to;
  lacking_.insert(buckets_.begin(), buckets_.end());
}

void ShardTwin::says(const shards::SendCommit& action) {
  std::vector<Member> members;
  action.message.members.each([&](Rank rank) { members.push_back(roster_.members.at(rank.value)); });
  laws_.decided(run_, action.message.step, Decision{std::move(members), action.message.scale, action.message.skip});
}

void ShardTwin::says(const shards::Fenced& action) {
  const Worker& worker = workers_[action.worker];
  if (action.last_sequence != worker.last && action.last_sequence != worker.unsure)
    laws_.violated("I6: " + name() + " says that the last frame of " + to_string(action.worker.task) + " is " +
                   std::to_string(action.last_sequence.value) + ", but it is " + std::to_string(worker.last.value));
  laws_.fenced(run_, id_, action.worker);
}

void ShardTwin::says(const shards::CopyForCheckpoint& action) {
  if (holds_) held_at_ = {action.attempt, action.entry.version};
  CutTaken cut;
  cut.version = action.entry.version;
  cut.values = values();
  for (std::size_t i = 0; i < expected_slots_.size(); ++i) {
    const auto slot = shard_.store().slot(i);
    cut.slots.emplace_back(slot.begin(), slot.end());
  }
  if (!is_sync()) cut.taken = taken();
  for (const WorkerEntry& entry : action.entry.workers)
    if (const auto worker = workers_.find(entry.worker); worker != workers_.end())
      cut.clocks[entry.worker] = worker->second.clock;
  laws_.cut(run_, action.attempt, id_, std::move(cut));
  if (id_.value != 0) return;
  // In sync, the twin's ledger doesn't have this step's records yet: after() enters them. So the ledgers can't be
  // compared here.
  if (is_sync()) return;
  std::vector<EpochLedger> open;
  for (const auto& [epoch, visited] : visited_)
    if (!visited.empty()) open.push_back(EpochLedger{epoch, visited.to_vector()});
  std::vector<EpochLedger> said = action.pacer->ledger;
  std::erase_if(said, [](const EpochLedger& epoch) { return epoch.visited.empty(); });
  const auto same = [](const EpochLedger& a, const EpochLedger& b) {
    return a.epoch == b.epoch && a.visited == b.visited;
  };
  if (action.pacer->global_step != action.entry.version || action.pacer->complete_epochs != complete_epochs_ ||
      !std::equal(open.begin(), open.end(), said.begin(), said.end(), same))
    laws_.violated("I13: the ledger in the cut of attempt " + std::to_string(action.attempt) +
                   " has other records than the cut's pushes");
}

}  // namespace disttrain::sim
