#include "shards/core/shard_core.h"

#include <algorithm>

#include "common/check.h"
#include "common/mutant.h"
#include "common/update/schedule.h"
#include "common/update/update_rule.h"

namespace disttrain::shards {

namespace {

std::uint32_t places(const ShardOptions& options) {
  return std::max(options.places, static_cast<std::uint32_t>(options.roster.members.size()));
}

double clip_norm(const TrainSection& train) {
  return train.clip.kind == ClipKind::kGlobalNorm ? train.clip.value : 0.0;
}

}  // namespace

ShardCore::ShardCore(const Layout& layout, const ShardOptions& options)
    : shard_(options.shard),
      shards_(layout.shards),
      train_(options.train),
      is_by_variable_(update::UpdateRule(options.train).is_by_variable()),
      credits_(options.credits),
      waits_for_lost_(options.waits_for_lost),
      tells_visits_(options.tells_visits && options.shard.value == 0),
      places_(places(options)),
      buckets_(layout, options.shard),
      version_(options.restored.global_step),
      members_(places(options)),
      values_(buckets_.size(), options.awaits_values),
      clocks_(options.train.staleness),
      staging_(places(options), 1 + options.train.pipeline, static_cast<std::uint32_t>(buckets_.size())),
      decider_(SyncRules{layout.shards, options.train.aggregate, clip_norm(options.train)}),
      pacer_(options.train.nonfinite, options.warmup_steps, options.train_records, options.restored) {
  DISTTRAIN_CHECK_LT(shard_.value, shards_);
  DISTTRAIN_CHECK_LT(0U, credits_);
  if (is_pacer() && options.own_orders && train_.mode != Mode::kSync)
    own_order_.emplace(options.train_records, train_.step_records(), *options.own_orders);
  MemberTable::Leavings none;
  DISTTRAIN_CHECK(members_.set_roster(options.roster, none));
}

void ShardCore::step(Instant now, const Event& event, Actions& actions) {
  // An update that fails after the order to fail the job replaces this order, which was dropped with the later actions.
  if (failed_ && !std::holds_alternative<UpdateFailed>(event)) return;
  std::visit([this, now, &actions](const auto& e) { on(now, e, actions); }, event);
  check_parts();
}

void ShardCore::step(Instant now, const PushArrived& event, Actions& actions) {
  if (failed_) return;
  on(now, event, actions);
  check_parts();
}

void ShardCore::check_parts() const {
  // Values that are missing can't be saved.
  DISTTRAIN_CHECK(!values_.are_missing() || attempts_.current() == 0);
  // After a cut that holds, nothing else is prepared.
  DISTTRAIN_CHECK(attempts_.held() == 0 || attempts_.current() == 0);
  DISTTRAIN_CHECK(!open_step_.is_judging() || train_.mode == Mode::kSync);
  // Only the pacer orders cuts, and only it counts the batches of the workers' own orders.
  DISTTRAIN_CHECK(is_pacer() || (!attempts_.cut_at() && attempts_.ordered() == 0 && !own_order_));
  // A report is about the open step or an earlier one.
  DISTTRAIN_CHECK(open_step_.reported().step <= version_.next());
}

// --- Checks of a frame

Status ShardCore::check(const MemberState& member, Sequence sequence, const Push& push,
                        std::uint64_t payload_bytes) const {
  // Composes the error text only when a rule is broken. check() must be cheap, because it runs twice for each frame.
  const auto refuse = [&member, sequence](const std::string& what) {
    return fail(ErrorCode::kData,
                to_string(member.member.task) + ": push frame " + std::to_string(sequence.value) + what);
  };
  const auto bucket = buckets_.number_of(push.bucket);
  if (!bucket)
    return refuse(" is for bucket " + std::to_string(push.bucket.value) + ", which doesn't belong to shard " +
                  std::to_string(shard_.value));
  if (payload_bytes != 0 && payload_bytes != buckets_[*bucket].bytes)
    return refuse(" has a payload of " + std::to_string(payload_bytes) + " bytes; its bucket has " +
                  std::to_string(buckets_[*bucket].bytes));
  if (sequence <= member.last) return {};  // a duplicate changes nothing, so the rules below don't apply to it
  if (sequence != member.last.next())
    return refuse(" came after frame " + std::to_string(member.last.value) + ": a gap, the frames between are missing");
  if (sequence.value > member.acknowledged.value + credits_)
    return refuse(" exceeds the worker's " + std::to_string(credits_) + " credits: only frames up to " +
                  std::to_string(member.acknowledged.value) + " are acknowledged");
  if (push.initial) return payload_bytes != 0 ? Status() : refuse(" has no values");
  if (values_.are_missing()) return refuse(" came before the shard has its first values");
  if (payload_bytes == 0 && !push.skipped && !(push.last && push.examples == 0)) return refuse(" has no gradients");
  if (attempts_.is_current(member.marked))
    return refuse(" came after the worker's mark for checkpoint attempt " + std::to_string(member.marked) +
                  " and before the cut");
  if (attempts_.is_held(member.marked))
    return refuse(" came after the worker's mark for checkpoint attempt " + std::to_string(member.marked) +
                  "; nothing is applied until this attempt ends");
  if (is_void(push)) return {};
  if (push.clock <= member.last_clock)
    return refuse(" is for step " + std::to_string(push.clock.value) + ", but the worker has already pushed step " +
                  std::to_string(member.last_clock.value));
  if (train_.mode == Mode::kSync && push.clock.value > version_.value + 1 + train_.pipeline)
    return refuse(" is for step " + std::to_string(push.clock.value) + ", too far ahead while step " +
                  std::to_string(version_.value + 1) + " is open");
  if (push.last && is_pacer() && push.lease.value != 0) return pacer_.ledger().check(push.epoch, push.visited);
  return {};
}

Result<Landing> ShardCore::landing(ChannelId channel, Sequence sequence, const Push& push,
                                   std::uint64_t payload_bytes) const {
  const MemberState* member = members_.find(channel);
  if (channel.value == 0 || member == nullptr)
    return fail(ErrorCode::kData, "a push frame came on a channel that isn't open");
  if (Status checked = check(*member, sequence, push, payload_bytes); !checked)
    return tl::unexpected(std::move(checked).error());
  if (train_.mode != Mode::kSync) return Landing{Landing::Kind::kFrame, member->place, 0};
  const bool staged =
      !push.initial && sequence > member->last && push.clock > version_ && !finished() && !is_void(push);
  if (!staged) return Landing{Landing::Kind::kSpare, member->place, 0};
  return staging_.landing(member->place, push.clock);
}

// --- Channels

void ShardCore::on(Instant, const ChannelOpened& event, Actions& actions) {
  MemberState* member = members_.find(event.worker);
  const std::string who = to_string(event.worker.task);
  if (member != nullptr && member->fenced) {
    actions.push_back(Refuse{event.channel, ErrorCode::kUnavailable, who + " was removed from the job"});
    return;
  }
  if (member == nullptr || !member->in_roster) {
    actions.push_back(Refuse{event.channel, ErrorCode::kTemporary, who + " isn't in the job's roster"});
    return;
  }
  if (member->channel.value != 0) close(*member, who + " opened another channel", actions);
  members_.open_channel(*member, event.channel);
  member->acknowledged = member->last;
  actions.push_back(Admit{event.channel, member->last});
}

void ShardCore::on(Instant, const ChannelClosed& event, [[maybe_unused]] Actions& actions) {
  MemberState* member = members_.find(event.channel);
  if (event.channel.value == 0 || member == nullptr) return;
  members_.close_channel(*member);
  if (DISTTRAIN_MUTANT(kLostConnectionFreesOthers)) {
    clocks_.leave(member->member);
    answer_within_bound(actions);
  }
}

void ShardCore::close(MemberState& member, std::string reason, Actions& actions) {
  actions.push_back(CloseChannel{member.channel, std::move(reason)});
  members_.close_channel(member);
}

void ShardCore::on(Instant now, const PushArrived& event, Actions& actions) {
  MemberState* member = members_.find(event.channel);
  if (event.channel.value == 0 || member == nullptr) return;  // closed a moment ago
  if (Status checked = check(*member, event.sequence, event.push, event.payload_bytes); !checked) {
    return close(*member, checked.error().message, actions);
  }
  bool is_known = event.sequence <= member->last && !DISTTRAIN_MUTANT(kNoDeduplication);
  if (DISTTRAIN_MUTANT(kShortDeduplicationKey))
    is_known = event.sequence.value % 256 <= member->last.value % 256 && member->last.value != 0;
  if (is_known) return duplicate(*member, event.push, actions);
  member->last = event.sequence;
  if (event.push.initial) return take_values(*member, event, actions);
  if (train_.mode == Mode::kSync) return push_sync(now, *member, event, actions);
  push_async(now, *member, event, actions);
}

// Answers a frame that the shard has taken before, and applies nothing. The shard answers again, because its first
// answer may be lost.
void ShardCore::duplicate(MemberState& member, const Push& push, Actions& actions) {
  if (push.want == Want::kNothing) return acknowledge(member, PushOutcome::kDuplicate, actions);
  if (train_.mode == Mode::kAsync) {
    if (push.want == Want::kAll) return answer_all(member, PushOutcome::kDuplicate, Pull{}, actions);
    return answer_bucket(member, push.bucket, PushOutcome::kDuplicate, push.last, Pull{}, actions);
  }
  if (!push.last) return acknowledge(member, PushOutcome::kDuplicate, actions);
  member.parked = ParkedReply{true, true, push.clock, PushOutcome::kDuplicate};
  if (train_.mode == Mode::kSsp) return answer_within_bound(actions);
  const StagedPush* staged = staging_.find(member.place, push.clock);
  const bool waits = push.clock > version_ && staged != nullptr && staged->complete && !finished();
  if (waits) return;
  // The shard no longer has this push, because the roster changed and so the push was void.
  if (push.clock > version_) member.parked.outcome = PushOutcome::kLate;
  answer_parked(member, actions);
}

void ShardCore::on(Instant, const PullArrived& event, Actions& actions) {
  MemberState* member = members_.find(event.channel);
  if (event.channel.value == 0 || member == nullptr) return;
  // sync: a worker that pulls while its push waits has given the push up, because the job stops. Its buffer may be
  // under evaluation when the push's answer would come.
  if (train_.mode == Mode::kSync) member->parked = {};
  if (values_.are_missing() && !DISTTRAIN_MUTANT(kValuesNotAwaited)) {
    member->pull = event.pull;
    return ask_for_values(actions);
  }
  answer_pull(*member, event.pull, actions);
}

void ShardCore::answer_pull(MemberState& member, Pull pull, Actions& actions) {
  const bool begins = pull.begins && train_.mode == Mode::kSsp;
  pull.clock = begins ? clocks_.enter(member.member, std::max(pull.clock, member.last_clock)) : Step();
  answer_all(member, PushOutcome::kNone, pull, actions);
  if (begins) answer_within_bound(actions);  // enter() may have raised the lowest clock, so others may go on
}

// --- Answers

void ShardCore::answer_bucket(MemberState& member, BucketId bucket, PushOutcome outcome, bool last, const Pull& pull,
                              Actions& actions) {
  if (member.channel.value == 0) return;
  member.acknowledged = member.last;
  actions.push_back(Reply{member.channel, Parameters{.bucket = bucket,
                                                     .version = version_,
                                                     .outcome = outcome,
                                                     .last = last,
                                                     .finished = finished(),
                                                     .roster = members_.roster().version,
                                                     .pull_id = pull.id,
                                                     .acknowledged = member.last,
                                                     .clock = pull.clock,
                                                     .averages = pull.averages}});
}

// Sends the buckets in reverse order. The layout has the first layer's buckets at its end, and the worker needs them
// first for its next step.
void ShardCore::answer_all(MemberState& member, PushOutcome outcome, const Pull& pull, Actions& actions) {
  for (std::size_t i = buckets_.size(); i-- > 0;) answer_bucket(member, buckets_[i].id, outcome, i == 0, pull, actions);
}

void ShardCore::acknowledge(MemberState& member, PushOutcome outcome, Actions& actions) {
  if (member.channel.value == 0) return;
  member.acknowledged = member.last;
  actions.push_back(SendAcknowledge{member.channel, Acknowledge{member.last, outcome, finished(), false}});
}

// Acknowledges the frames when half of the worker's credits are used up. The acknowledgement returns these credits. So
// there are few acknowledgements, and yet the worker never has to wait for a credit.
void ShardCore::acknowledge_some(MemberState& member, Actions& actions) {
  if (member.last.value - member.acknowledged.value >= std::max<std::uint64_t>(1, credits_ / 2))
    acknowledge(member, PushOutcome::kNone, actions);
}

void ShardCore::answer_parked(MemberState& member, Actions& actions) {
  const ParkedReply parked = member.parked;
  member.parked = {};
  if (!parked.waiting) return;
  if (parked.wants_parameters)
    answer_all(member, parked.outcome, Pull{}, actions);
  else
    acknowledge(member, parked.outcome, actions);
}

// --- Rosters and fences

bool ShardCore::take_roster(const Roster& roster, Actions& actions) {
  if (roster.version <= members_.roster().version) return false;
  MemberTable::Leavings leavings;
  if (!members_.set_roster(roster, leavings)) {
    fail_job(ErrorCode::kFailed,
             "the roster has " + std::to_string(roster.members.size()) + " workers; the shard has memory for fewer",
             actions);
    return false;
  }
  for (ChannelId channel : leavings.channels) actions.push_back(CloseChannel{channel, "the worker left the roster"});
  for (Place place : leavings.places) staging_.drop_all(place);
  if (train_.mode == Mode::kSync) begin_step_anew(actions);
  return true;
}

void ShardCore::on(Instant now, const RosterSet& event, Actions& actions) {
  ended_ = ended_ || event.ends;
  const bool changed = take_roster(event.roster, actions);
  if (failed_) return;
  if (changed) tell_news(actions);
  actions.push_back(RosterTaken{members_.roster().version, version_, report(),
                                own_order_ ? own_order_->all() : std::vector<OwnBatches>()});
  look_again(now, actions);
}

// Messages that were sent while the link was broken are lost, so each end repeats its last one. The pacer repeats the
// roster, because commits name members by their ranks in the roster. It also repeats its newest order to cut: until the
// other shard has reported a staged push on this link, the pacer commits no step, so both shards still cut at the same
// step. A shard that has cut already ignores the order. The other shard repeats its report about the open step.
void ShardCore::on(Instant, const PeerOpened&, Actions& actions) {
  if (!is_pacer()) return report_staged_again(actions);
  tell_news(actions);
  if (attempts_.ordered() != 0) actions.push_back(SendCut{Cut{attempts_.ordered()}});
}

void ShardCore::tell_news(Actions& actions) const {
  if (shards_ == 1) return;
  actions.push_back(SendNews{PacerNews{.roster = members_.roster(), .finished = finished()}});
}

void ShardCore::on(Instant now, const NewsArrived& event, Actions& actions) {
  pacer_finished_ = pacer_finished_ || event.news.finished;
  take_roster(event.news.roster, actions);
  if (!failed_) look_again(now, actions);
}

void ShardCore::on(Instant now, const Fence& event, Actions& actions) {
  if (MemberState* member = members_.find(event.worker);
      member != nullptr && member->channel.value != 0 && !DISTTRAIN_MUTANT(kNoFence))
    close(*member, to_string(event.worker.task) + " was removed from the job", actions);
  const MemberState& member = members_.fence(event.worker);
  actions.push_back(Fenced{member.member, member.last, member.last_clock});
  look_again(now, actions);
}

// Called after a change of the roster, a fence, or the job's end, because the shard may no longer have to wait for a
// member. If so, takes the cut, commits the step, or sends parked answers.
void ShardCore::look_again(Instant now, Actions& actions) {
  ask_for_values(actions);
  cut_if_all_marked(now, actions);
  if (train_.mode == Mode::kSync) return advance_sync(now, actions);
  std::vector<Member> gone;
  for (const Member& member : clocks_.members())
    if (const MemberState* state = members_.find(member); state == nullptr || !members_.is_active(*state))
      gone.push_back(member);
  for (const Member& member : gone) clocks_.leave(member);
  answer_within_bound(actions);
}

// --- Counting and the end

bool ShardCore::finished() const {
  if (train_.steps == 0) return false;
  if (is_pacer() || train_.mode == Mode::kSync) return version_.value >= train_.steps;
  return pacer_finished_;
}

std::size_t ShardCore::parked() const {
  const auto& active = members_.active();
  return static_cast<std::size_t>(
      std::count_if(active.begin(), active.end(), [](const MemberState* member) { return member->parked.waiting; }));
}

PacerReport ShardCore::report() const {
  PacerReport report = pacer_.report(finished());
  if (train_.mode == Mode::kSsp) report.slowest_clock = clocks_.start();
  report.learning_rate = update_at().learning_rate;
  return report;
}

UpdateAt ShardCore::update_at() const {
  const std::uint64_t workers = std::max<std::uint64_t>(1, members_.roster().members.size());
  return UpdateAt{.count = version_.value, .learning_rate = update::learning_rate(train_, version_.value, workers)};
}

// Only the pacer calls this, after it has counted a step. Reports to the chief at the end of an epoch or of the job,
// and fails the job if too many steps weren't finite.
void ShardCore::counted(Actions& actions, bool epoch_done) {
  if (epoch_done || finished()) actions.push_back(ReportNow{});
  if (auto verdict = pacer_.verdict()) fail_job(ErrorCode::kFailed, *verdict, actions);
}

void ShardCore::on(Instant, const UpdateFailed& event, Actions& actions) {
  const OwnBucket& bucket = buckets_[buckets_.number_of(event.bucket).value()];
  fail_job(
      ErrorCode::kFailed,
      "shard " + std::to_string(shard_.value) + ": after step " + std::to_string(version_.value) +
          " parameters or slots aren't finite, in the bucket " + std::to_string(event.bucket.value) +
          ", which begins with the variable \"" + bucket.first_variable +
          "\". The step can't be skipped any more, because a part of it is applied. A smaller learning rate or "
          "clipping may help; to go on from the newest checkpoint, submit the job again" +
          (event.was_lent ? ". If a script writes to its gradients while they are pushed, let it wait for the answer"
                          : ""),
      actions);
}

void ShardCore::fail_job(ErrorCode code, std::string reason, Actions& actions) {
  failed_ = true;
  actions.push_back(FailJob{code, std::move(reason)});
}

}  // namespace disttrain::shards
