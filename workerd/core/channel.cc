#include "workerd/core/channel.h"

#include <algorithm>

#include "common/check.h"
#include "common/mutant.h"

namespace disttrain::workerd {

namespace {

std::string to_string(ShardId shard) {
  return "shard " + std::to_string(shard.value);
}

bool is_sent_later(const RankedBucket& a, const RankedBucket& b) {
  return a.rank > b.rank;
}

}  // namespace

Status Channel::connect(Sequence last, Actions& out) {
  if (last.value > base_.value + sent_ || last.value < base_.value + acknowledged_)
    return fail(ErrorCode::kUnavailable, to_string(shard_) + " says that the last frame it took is " +
                                             std::to_string(last.value) + "; expected " +
                                             std::to_string(base_.value + acknowledged_) + " to " +
                                             std::to_string(base_.value + sent_));
  connected_ = true;
  const bool complete = push_complete();
  acknowledged_ = last.value - base_.value;
  if (DISTTRAIN_MUTANT(kArrivalAssumed)) acknowledged_ = sent_;
  sent_ = acknowledged_;
  buckets_due_ = 0;
  all_due_ = false;
  if (!complete && !frames_.empty()) {
    // Some answers may be lost, and the worker doesn't know which. So the last frame must ask for all buckets. If that
    // frame was already sent, the worker sends it again; the shard recognises the duplicate and only answers it.
    ask_for_all_ = true;
    forget_answers();
    if (frames_.back().push.last) {
      if (frames_.back().push.want != Want::kNothing) {
        frames_.back().push.want = Want::kAll;
        sent_ = std::min(sent_, frames_.size() - 1);
        acknowledged_ = std::min(acknowledged_, sent_);
      }
    }
  }
  if (mark_) mark_->sent = false;
  flush(out);
  if (!pull_complete()) out.push_back(SendPull{shard_, pull_});
  return {};
}

void Channel::begin_push() {
  DISTTRAIN_CHECK(push_complete());
  base_ = Sequence(base_.value + frames_.size());
  frames_.clear();
  waiting_.clear();
  sent_ = 0;
  chosen_ = 0;
  acknowledged_ = 0;
  ask_for_all_ = false;
  forget_answers();
}

void Channel::add_frame(Push push, std::uint32_t gradients, bool payload, Actions& out) {
  if (push.last && ask_for_all_ && push.want != Want::kNothing) push.want = Want::kAll;
  if (push.want == Want::kAll) {
    forget_answers();
    // The frames that still wait, for a credit or for a mark's release, needn't ask for their buckets: this frame does.
    // Otherwise these buckets would come twice, and the next computation, which begins early, would read a bucket that
    // the second answer changes.
    for (std::size_t i = sent_; i < frames_.size(); ++i) frames_[i].push.want = Want::kNothing;
  }
  waiting_.push_back(buckets_.at(frames_.size()));
  std::push_heap(waiting_.begin(), waiting_.end(), is_sent_later);
  frames_.push_back(Frame{std::move(push), gradients, payload});
  flush(out);
}

void Channel::flush(Actions& out) {
  while (connected_ && (sent_ < frames_.size() || mark_)) {
    if (mark_ && base_.value + sent_ >= mark_->after.value) {
      if (!mark_->sent) out.push_back(SendMark{shard_, Mark{mark_->attempt}});
      mark_->sent = true;
      return;
    }
    if (sent_ - acknowledged_ >= credits_) return;
    if (sent_ == chosen_) {
      std::pop_heap(waiting_.begin(), waiting_.end(), is_sent_later);
      frames_[chosen_++].push.bucket = waiting_.back().bucket;
      waiting_.pop_back();
    }
    const Frame& frame = frames_[sent_++];
    if (frame.push.want == Want::kBucket && !ask_for_all_) ++buckets_due_;
    if (frame.push.want == Want::kAll) all_due_ = true;
    SendPush& send = std::get<SendPush>(out.emplace_back(std::in_place_type<SendPush>));
    send.shard = shard_;
    send.sequence = Sequence(base_.value + sent_);
    send.push = frame.push;
    if (ask_for_all_ && send.push.want == Want::kBucket) send.push.want = Want::kNothing;
    send.gradients = frame.gradients;
    send.payload = frame.payload;
  }
}

void Channel::begin_pull(Pull pull, Actions& out) {
  DISTTRAIN_CHECK(pull_complete());
  pull_ = pull;
  if (connected_) out.push_back(SendPull{shard_, pull});
}

void Channel::mark(std::uint64_t attempt, Actions& out) {
  mark_ = PendingMark{attempt, Sequence(base_.value + frames_.size()), false};
  flush(out);
}

void Channel::release(std::uint64_t attempt, Actions& out) {
  if (!mark_ || mark_->attempt != attempt) return;
  mark_.reset();
  flush(out);
}

Status Channel::acknowledge(Sequence upto) {
  if (upto.value > base_.value + sent_)
    return fail(ErrorCode::kUnavailable, to_string(shard_) + " acknowledged frame " + std::to_string(upto.value) +
                                             ", but only " + std::to_string(base_.value + sent_) + " were sent");
  if (upto.value > base_.value) acknowledged_ = std::max<std::size_t>(acknowledged_, upto.value - base_.value);
  return {};
}

Status Channel::take(const Parameters& parameters, Actions& out) {
  if (Status ok = acknowledge(parameters.acknowledged); !ok) return ok;
  if (parameters.pull_id != 0) {
    if (parameters.pull_id != pull_.id)
      return fail(ErrorCode::kUnavailable, to_string(shard_) + " answered pull " + std::to_string(parameters.pull_id) +
                                               ", but no such pull is under way");
    if (parameters.last) pull_ = Pull{};
  } else if (buckets_due_ > 0) {
    --buckets_due_;
    // If the last frame asks for all buckets, this one comes again.
    if (frames_.back().push.want != Want::kAll)
      if (Status ok = note_answer(parameters.bucket); !ok) return ok;
  } else if (all_due_) {
    if (Status ok = note_answer(parameters.bucket); !ok) return ok;
    if (parameters.last) {
      all_due_ = false;
      if (std::find(answered_.begin(), answered_.end(), false) != answered_.end())
        return fail(ErrorCode::kUnavailable, to_string(shard_) + " left a bucket out of its answer to a push");
    }
  } else {
    return fail(ErrorCode::kUnavailable, to_string(shard_) + " sent parameters that the worker didn't request");
  }
  version_ = std::max(version_, parameters.version);
  flush(out);
  return {};
}

Status Channel::take(const Acknowledge& acknowledge_frame, Actions& out) {
  if (Status ok = acknowledge(acknowledge_frame.acknowledged); !ok) return ok;
  if (acknowledge_frame.outcome == PushOutcome::kFinished) {
    // After the job's last step the shard applies no push and sends no parameters.
    buckets_due_ = 0;
    all_due_ = false;
  }
  flush(out);
  return {};
}

bool Channel::answers_once() const {
  const bool asks_again = !frames_.empty() && frames_.back().push.want == Want::kAll && buckets_due_ > 0;
  return push_complete() || (connected_ && !asks_again);
}

void Channel::add_awaited(std::vector<BucketId>& awaited) const {
  if (push_complete()) return;
  for (std::size_t i = 0; i < buckets_.size(); ++i)
    if (!answered_[i]) awaited.push_back(buckets_[i].bucket);
}

// A computation may wait for a bucket until it comes. So a bucket that comes in the place of another is an error.
Status Channel::note_answer(BucketId bucket) {
  const auto found = std::lower_bound(buckets_.begin(), buckets_.end(), bucket,
                                      [](const RankedBucket& a, BucketId b) { return a.bucket < b; });
  const auto i = static_cast<std::size_t>(found - buckets_.begin());
  if (i == buckets_.size() || buckets_[i].bucket != bucket || answered_[i])
    return fail(ErrorCode::kUnavailable, to_string(shard_) + " sent bucket " + std::to_string(bucket.value) +
                                             " twice in answer to a push, or without being asked");
  answered_[i] = true;
  return {};
}

bool Channel::push_complete() const {
  return acknowledged_ == frames_.size() && buckets_due_ == 0 && !all_due_;
}

}  // namespace disttrain::workerd
