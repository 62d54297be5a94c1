// sync: the shard stages the frames of each worker. It applies nothing before the pacer has decided which workers'
// pushes make the step. If the job has only one shard, that shard is the pacer and decides without a message.
#include <algorithm>

#include "shards/core/shard_core.h"

#include "common/mutant.h"

namespace disttrain::shards {

void ShardCore::push_sync(Instant now, MemberState& member, const PushArrived& event, Actions& actions) {
  const Push& push = event.push;
  member.push_wants = member.push_wants || push.want != Want::kNothing;
  if (finished()) return dropped_sync(member, push, PushOutcome::kFinished, actions);
  if (is_void(push)) {  // the answer names the new roster, and the worker does the step again with new records
    if (!push.last) return acknowledge_some(member, actions);
    member.parked = ParkedReply{true, member.push_wants, push.clock, PushOutcome::kLate};
    member.push_wants = false;
    return answer_parked(member, actions);
  }
  if (push.clock <= version_) return dropped_sync(member, push, PushOutcome::kLate, actions);

  const std::uint32_t bucket = *buckets_.number_of(push.bucket);
  const bool has_payload = event.payload_bytes > 0;
  if (Status added = staging_.add(member.place, push, bucket, has_payload, event.nonfinite, event.largest); !added) {
    close(member, to_string(member.member.task) + ": " + added.error().message, actions);
    staging_.drop(member.place, push.clock);
    return;
  }
  if (!push.last) return acknowledge_some(member, actions);
  member.last_clock = push.clock;
  member.parked = ParkedReply{true, member.push_wants, push.clock, PushOutcome::kApplied};
  member.push_wants = false;
  if (DISTTRAIN_MUTANT(kEarlyAcknowledgement)) answer_parked(member, actions);
  advance_sync(now, actions);
}

// Handles a push that changes nothing, because its step was committed without it or the job has done all its steps.
void ShardCore::dropped_sync(MemberState& member, const Push& push, PushOutcome outcome, Actions& actions) {
  if (!push.last) return acknowledge_some(member, actions);
  member.last_clock = push.clock;
  if (is_pacer() && outcome == PushOutcome::kLate) pacer_.late();
  if (DISTTRAIN_MUTANT(kLatePushVisits) && is_pacer()) pacer_.ledger().visit(push.epoch, push.visited);
  member.parked = ParkedReply{true, member.push_wants, push.clock, outcome};
  member.push_wants = false;
  answer_parked(member, actions);
}

// Reports to the pacer which pushes are staged for the open step (the next step to be committed). At the pacer it also
// commits the step if enough pushes are staged. It loops, because with train.pipeline = 1 the pushes of the following
// step may already be staged too.
void ShardCore::advance_sync(Instant now, Actions& actions) {
  do {
    if (open_step_.is_judging() || finished() || failed_) return;
    // With job.on_worker_loss = "wait" no step is committed without the lost worker. Its replacement does this step, so
    // the job's result has the same bits as without the loss.
    if (waits_for_lost_ && members_.active().size() < members_.roster().members.size()) return;
    if (auto staged = staged_set()) report_staged(*staged, actions);
    if (open_step_.is_judging()) return;  // the event StepJudged calls this function again
    if (DISTTRAIN_MUTANT(kParticipantsPerShard) && !is_pacer() && open_step_.reported().step == version_.next()) {
      const Staged& reported = open_step_.reported();
      const Commit own{reported.step, members_.roster().version, reported.members, 1.0, false};
      commit_sync(now, own, actions);
    }
  } while (is_pacer() && decide_sync(now, actions));
}

// Returns the members whose pushes for the open step are staged here. Returns nullopt if they are too few for a step,
// or if the last report named the same members.
std::optional<Staged> ShardCore::staged_set() const {
  // This test makes a step linear in the number of workers: each push calls this function, which scans all members.
  if (staging_.complete(version_.next()) < fewest_members(members_.active().size(), train_.aggregate))
    return std::nullopt;
  Staged staged;
  std::size_t count = 0;
  std::size_t empty = 0;
  staged.shard = shard_;
  staged.step = version_.next();
  staged.roster = members_.roster().version;
  for (const MemberState* member : members_.active()) {
    const StagedPush* push = staging_.find(member->place, staged.step);
    if (push == nullptr || !push->complete) continue;
    if (push->roster.value != 0 && push->roster != members_.roster().version && !DISTTRAIN_MUTANT(kVoidPushesCount))
      continue;  // the push names a newer roster, which this shard will get later
    staged.members.insert(member->rank);
    ++count;
    staged.nonfinite = staged.nonfinite || push->nonfinite;
    empty += push->is_empty() ? 1 : 0;
  }
  if (!enough_members(count, empty, members_.active().size(), train_.aggregate)) return std::nullopt;
  if (open_step_.is_reported(staged)) return std::nullopt;
  return staged;
}

void ShardCore::report_staged(const Staged& staged, Actions& actions) {
  open_step_.report(staged);
  if (!staged.nonfinite) {
    if (const std::shared_ptr<SumPlan> plan = plan_sum(staged.members, staged.step)) {
      open_step_.judge(plan);
      actions.push_back(JudgeStep{plan, clips()});
      return;
    }
  }
  if (is_pacer())
    decider_.staged(staged, version_.next(), members_.roster().version);
  else
    actions.push_back(SendStaged{staged});
}

void ShardCore::on(Instant now, const StepJudged& event, Actions& actions) {
  if (!open_step_.is_judging()) return;
  open_step_.end_judging(event.norm2, event.finite);
  if (is_pacer())
    decider_.staged(open_step_.reported(), version_.next(), members_.roster().version);
  else
    actions.push_back(SendStaged{open_step_.reported()});
  advance_sync(now, actions);
}

// Repeats the shard's last report. If the link was broken when the shard sent it, the pacer never got it and would wait
// for ever.
void ShardCore::report_staged_again(Actions& actions) const {
  const Staged& reported = open_step_.reported();
  if (reported.step == version_.next() && !open_step_.is_judging()) actions.push_back(SendStaged{reported});
}

void ShardCore::on(Instant now, const StagedArrived& event, Actions& actions) {
  if (!is_pacer()) return;
  decider_.staged(event.staged, version_.next(), members_.roster().version);
  advance_sync(now, actions);
}

// Only the pacer calls this. Commits the open step if enough members have staged their pushes on all shards. Returns
// true if it has committed the step and the job goes on. In that case the next step may be ready too.
bool ShardCore::decide_sync(Instant now, Actions& actions) {
  if (attempts_.held() != 0 || ended_ || !decider_.has_all_reports()) return false;
  RankSet empty;
  for (const MemberState* member : members_.active()) {
    const StagedPush* push = staging_.find(member->place, version_.next());
    if (push != nullptr && push->is_empty()) empty.insert(member->rank);
  }
  const RosterVersion roster = members_.roster().version;
  std::optional<Commit> commit = decider_.decide(version_.next(), roster, members_.active_ranks(), empty);
  if (!commit) return false;
  decider_.forget();
  if (shards_ > 1) actions.push_back(SendCommit{*commit});
  if (DISTTRAIN_MUTANT(kCutBeforeCommitCounts) && attempts_.cut_at() && version_.next() >= *attempts_.cut_at()) {
    attempts_.set_cut_at(version_);
    cut_if_ordered(now, actions);
  }
  if (!commit_sync(now, *commit, actions)) return false;
  cut_if_ordered(now, actions);
  return true;
}

void ShardCore::on(Instant now, const CommitArrived& event, Actions& actions) {
  const Commit& commit = event.commit;
  if (DISTTRAIN_MUTANT(kParticipantsPerShard) && commit.step <= version_) return;
  if (commit.step != version_.next())
    return fail_job(ErrorCode::kSoftware,
                    "shard " + std::to_string(shard_.value) + " at step " + std::to_string(version_.value) +
                        " was told to commit step " + std::to_string(commit.step.value),
                    actions);
  // A commit names members by their ranks in a roster. The pacer sent that roster on this connection before the commit,
  // so this shard must have it.
  if (commit.roster != members_.roster().version && !DISTTRAIN_MUTANT(kParticipantsPerShard))
    return fail_job(ErrorCode::kSoftware,
                    "shard " + std::to_string(shard_.value) + " has roster " +
                        std::to_string(members_.roster().version.value) + " and was told to commit step " +
                        std::to_string(commit.step.value) + " with members of roster " +
                        std::to_string(commit.roster.value),
                    actions);
  if (commit_sync(now, commit, actions)) advance_sync(now, actions);
}

// The roster has changed: drops the staged pushes that name an older roster. Records are lent to a roster, so a push
// for records of an older roster is void. The workers that sent such a push get the answer kLate, and do the step again
// with records that are lent to the new roster. A push that names no roster stays staged, because its records weren't
// leased.
//
// Example: step 11 is open, and roster 3 consists of A, B and C.
// 1. The pushes of A and B for step 11 are staged. C dies, and roster 4 consists of A and B.
// 2. Both staged pushes name roster 3, so the shard drops them and answers them with kLate.
// 3. A and B lease records under roster 4 and push step 11 again.
void ShardCore::begin_step_anew(Actions& actions) {
  open_step_.begin_anew();
  if (is_pacer()) decider_.forget();
  const RosterVersion roster = members_.roster().version;
  for (MemberState* member : members_.active()) {
    if (DISTTRAIN_MUTANT(kVoidPushesCount) || !staging_.drop_older(member->place, roster)) continue;
    member->last_clock = std::min(member->last_clock, version_);
    if (!member->parked.waiting || member->parked.clock <= version_) continue;
    member->parked.outcome = PushOutcome::kLate;
    answer_parked(*member, actions);
  }
}

// Applies the step and answers every worker that waits for it. Returns false if the job failed.
bool ShardCore::commit_sync(Instant now, const Commit& commit, Actions& actions) {
  std::optional<Rank> lacking;
  commit.members.each([&](Rank rank) {
    const StagedPush* push = staged_push(rank, commit.step);
    if ((push == nullptr || !push->complete) && !lacking) lacking = rank;
  });
  if (lacking) {
    const MemberState* member = members_.at(*lacking);
    const std::string who =
        member != nullptr ? to_string(member->member.task) : "rank " + std::to_string(lacking->value);
    fail_job(ErrorCode::kSoftware,
             "the pacer committed step " + std::to_string(commit.step.value) + " with " + who +
                 ", whose gradient isn't staged at shard " + std::to_string(shard_.value),
             actions);
    return false;
  }
  const std::shared_ptr<const SumPlan> plan = plan_commit(commit);
  version_ = commit.step;
  open_step_.close();
  settle_outcomes(commit);
  if (tells_visits_) tell_visits(commit, actions);
  apply_and_answer(commit.skip && !DISTTRAIN_MUTANT(kVetoPerShard) ? nullptr : plan, actions);
  if (is_pacer()) count_sync(now, commit, actions);
  for (std::uint32_t place = 0; place < places_; ++place) staging_.drop(Place(place), commit.step);
  return !failed_;
}

const StagedPush* ShardCore::staged_push(Rank rank, Step step) const {
  const MemberState* state = members_.at(rank);
  return state == nullptr ? nullptr : staging_.find(state->place, step);
}

// Plans the mean over those of `members` that contribute a gradient; nullptr if none does.
std::shared_ptr<SumPlan> ShardCore::plan_sum(const RankSet& members, Step step) {
  std::shared_ptr<SumPlan> plan = open_step_.new_plan();
  plan->at = update_at();
  members.each([&](Rank rank) {
    const StagedPush* push = staged_push(rank, step);
    if (push == nullptr || !push->contributes()) return;
    plan->terms.push_back(
        SumTerm{staging_.landing(members_.at(rank)->place, step), push->last.examples, push->largest});
  });
  if (plan->terms.empty()) return nullptr;
  return plan;
}

// Plans the sum for a commit. If the pacer chose the set that this shard has reported, its plan is there. With clipping
// the plan then uses the sum from the measurement of the norm, so that the store reads the gradients only once.
std::shared_ptr<const SumPlan> ShardCore::plan_commit(const Commit& commit) {
  const std::shared_ptr<SumPlan> judged = open_step_.judged_for(commit);
  const std::shared_ptr<SumPlan> plan = judged != nullptr ? judged : plan_sum(commit.members, commit.step);
  if (plan == nullptr) return nullptr;
  plan->at = update_at();
  plan->scale = commit.scale;
  plan->is_measured = judged != nullptr && clips();
  return plan;
}

// Sets the PushOutcome in the answer to each worker that has pushed this step.
void ShardCore::settle_outcomes(const Commit& commit) {
  for (MemberState* member : members_.active()) {
    if (!member->parked.waiting || member->parked.clock != commit.step) continue;
    if (member->parked.outcome != PushOutcome::kApplied) continue;  // a duplicate
    const bool taken = commit.members.contains(member->rank);
    if (!taken && is_pacer()) pacer_.late();
    const StagedPush* push = staging_.find(member->place, commit.step);
    const PushOutcome skipped = push != nullptr && push->nonfinite ? PushOutcome::kSkipped : PushOutcome::kVetoed;
    member->parked.outcome = !taken ? PushOutcome::kLate : commit.skip ? skipped : PushOutcome::kApplied;
  }
}

// Updates one bucket and sends it before it updates the next one, so that each bucket is sent while it is still in the
// cache. It begins with the first layer's buckets, because the workers need them first.
//
// If there are many workers, only the first ones get their answers in this order. Sending to them takes longer than
// updating all buckets. Each later worker gets all its buckets at once. If all workers got the first bucket before any
// of them got the second one, they all would begin the next step at about the same time, when the shard has sent
// everything. So the shard's network card would first only send and then only receive.
void ShardCore::apply_and_answer(const std::shared_ptr<const SumPlan>& plan, Actions& actions) {
  constexpr std::size_t kBucketByBucket = 8;  // number of workers
  std::vector<MemberState*>& waiting = waiting_;
  waiting.clear();
  for (MemberState* member : members_.active())
    if (member->parked.waiting && member->parked.clock <= version_) waiting.push_back(member);
  const auto answer = [&](MemberState& member, std::size_t bucket) {
    if (member.parked.wants_parameters)
      answer_bucket(member, buckets_[bucket].id, member.parked.outcome, bucket == 0, Pull{}, actions);
  };
  const std::size_t first = std::min(kBucketByBucket, waiting.size());
  if (plan != nullptr && is_by_variable_) actions.push_back(PrepareUpdate{plan});
  for (std::size_t b = buckets_.size(); b-- > 0;) {
    if (plan != nullptr) actions.push_back(SumAndApply{buckets_[b].id, plan});
    for (std::size_t w = 0; w < first; ++w) answer(*waiting[w], b);
  }
  for (std::size_t w = first; w < waiting.size(); ++w)
    for (std::size_t b = buckets_.size(); b-- > 0;) answer(*waiting[w], b);
  for (MemberState* member : waiting) {
    if (!member->parked.wants_parameters) acknowledge(*member, member->parked.outcome, actions);
    member->parked = {};
  }
}

void ShardCore::tell_visits(const Commit& commit, Actions& actions) const {
  StepCounted counted{commit.step, {}};
  commit.members.each([&](Rank rank) {
    const Push& last = staged_push(rank, commit.step)->last;
    counted.visits.push_back(Visit{members_.at(rank)->member.task, last.epoch, last.visited});
  });
  actions.push_back(std::move(counted));
}

// Counts the step. The step's pushes must still be staged.
void ShardCore::count_sync(Instant now, const Commit& commit, Actions& actions) {
  StepDone done;
  done.skipped = commit.skip;
  double behind = 0.0;
  bool epoch_done = false;
  std::size_t count = 0;
  commit.members.each([&](Rank rank) {
    const Push& last = staged_push(rank, commit.step)->last;
    ++count;
    done.examples += last.examples;
    if (last.examples > 0) done.loss += static_cast<double>(last.examples) * static_cast<double>(last.loss);
    behind += static_cast<double>(commit.step.value - 1) - static_cast<double>(last.pull_version.value);
    pacer_.note_staleness(commit.step.value - 1 - std::min(commit.step.value - 1, last.pull_version.value));
    if (last.lease.value != 0) epoch_done = pacer_.ledger().visit(last.epoch, last.visited) || epoch_done;
  });
  done.loss /= static_cast<double>(done.examples);  // the loss is NaN if no member had examples
  done.staleness = std::max(0.0, behind / static_cast<double>(count));
  pacer_.step_done(now, done);
  counted(actions, epoch_done);
}

}  // namespace disttrain::shards
