#include "shards/worker_channel.h"

#include <algorithm>
#include <utility>

namespace disttrain::shards {

using transport::Bytes;
using transport::MutableBytes;
using transport::OutgoingFrame;
using transport::Payload;
using wire::FrameHeader;
using wire::FrameType;

namespace {

// The cookie of a frame with an acknowledgement. When the transport has sent the frame, it calls on_sent(kRoom). So the
// socket then has room for another frame.
constexpr std::uint64_t kRoom = 1;

}  // namespace

WorkerChannel::WorkerChannel(ChannelOwner& owner, ShardJobPtr job, ShardId shard, ChannelId id, Member worker,
                             std::unique_ptr<transport::Connection> connection)
    : owner_(owner),
      job_(std::move(job)),
      id_(id),
      worker_(worker),
      buckets_(buckets_of(job_->layout, shard).size()),
      bytes_(shard_words(job_->layout, shard) * sizeof(float)),
      connection_(std::move(connection)) {}

FrameHeader WorkerChannel::header(FrameType type) const {
  FrameHeader header;
  header.type = type;
  header.job = job_->job;
  header.generation = job_->generation;
  return header;
}

bool WorkerChannel::belongs(const FrameHeader& header) const {
  return header.job == job_->job && header.generation == job_->generation;
}

void WorkerChannel::welcome(const Welcome& welcome) {
  const std::vector<std::byte> bytes = wire::encode(welcome);
  OutgoingFrame frame;
  frame.header = header(FrameType::kWelcome);
  frame.control = bytes;
  is_welcome_ = true;
  connection_->send(frame);
}

void WorkerChannel::refuse(const Refused& refused) {
  const std::vector<std::byte> bytes = wire::encode(refused);
  OutgoingFrame frame;
  frame.header = header(FrameType::kRefused);
  frame.control = bytes;
  connection_->send(frame);
}

// --- Answers

void WorkerChannel::answer(const Parameters& message) {
  if (full_ || !waiting_.empty())
    waiting_.push_back(message);
  else
    send_parameters(message);
}

void WorkerChannel::keep_alive() {
  if (!is_welcome_ || std::exchange(has_sent_, false) || connection_->queued_bytes() != 0) return;
  OutgoingFrame frame;
  frame.header = header(FrameType::kAlive);
  connection_->send(frame);
}

void WorkerChannel::send_parameters(const Parameters& message) {
  ShardTrace& trace = owner_.trace();
  const Instant begin = trace.begin();
  has_sent_ = true;
  OutgoingFrame frame;
  frame.header = header(FrameType::kParameters);
  frame.control = wire::encode(message, owner_.scratch());
  frame.payload = std::as_bytes(owner_.values(message));
  frame.lifetime = Payload::kCopied;
  frame.answer_at = job_->layout.buckets[message.bucket.value].flat_begin * sizeof(float);
  connection_->send(frame);
  if (begin != Instant())
    trace.add(begin, {.step = message.version.value,
                      .incarnation = worker_.incarnation,
                      .sequence = message.acknowledged,
                      .bytes = frame.payload.size(),
                      .bucket = message.bucket,
                      .worker = worker_.task.index,
                      .kind = TraceKind::kReply});
  if (full_ || connection_->queued_bytes() == 0) return;
  // The socket is full. The channel must learn when the socket has room again. So it queues one more frame, with a
  // cookie for on_sent(). This frame is an acknowledgement that only repeats what the worker was already told.
  full_ = true;
  send_acknowledge(Acknowledge{message.acknowledged, PushOutcome::kNone, message.finished}, Payload::kFrozenUntilSent);
}

void WorkerChannel::acknowledge(const Acknowledge& message) {
  send_acknowledge(message, Payload::kCopied);
}

void WorkerChannel::send_acknowledge(const Acknowledge& message, Payload lifetime) {
  has_sent_ = true;
  OutgoingFrame frame;
  frame.header = header(FrameType::kAcknowledge);
  frame.control = wire::encode(message, owner_.scratch());
  frame.lifetime = lifetime;
  frame.cookie = kRoom;
  connection_->send(frame);
}

void WorkerChannel::let_go(const MarkTaken& message) {
  OutgoingFrame frame;
  frame.header = header(FrameType::kMarkTaken);
  frame.control = wire::encode(message, owner_.scratch());
  connection_->send(frame);
}

void WorkerChannel::on_sent(std::uint64_t cookie) {
  if (cookie != kRoom) return;
  full_ = false;
  send_waiting();
}

void WorkerChannel::send_waiting() {
  while (!full_ && !waiting_.empty()) {
    const Parameters message = waiting_.front();
    waiting_.pop_front();
    send_parameters(message);
  }
}

void WorkerChannel::settle(BucketId bucket) {
  std::size_t leaving = waiting_.size();  // number of waiting answers up to the last one with this bucket
  while (leaving > 0 && waiting_[leaving - 1].bucket != bucket) --leaving;
  for (; leaving > 0; --leaving) {
    const Parameters message = waiting_.front();
    waiting_.pop_front();
    send_parameters(message);
  }
}

// --- Frames that arrive

// Reads the message of a frame with a payload into arriving_.
Status WorkerChannel::expect_push(const FrameHeader& header, Bytes control) {
  if (header.type != FrameType::kPush || !belongs(header))
    return fail(ErrorCode::kData, to_string(worker_.task) + " sent a payload that isn't a push of this job");
  return wire::decode_push(control, arriving_.push);
}

Result<MutableBytes> WorkerChannel::payload_landing(const FrameHeader& header, Bytes control) {
  if (Status expected = expect_push(header, control); !expected) return tl::unexpected(std::move(expected).error());
  Result<std::span<float>> landing = owner_.landing(id_, header.sequence, arriving_.push, header.payload_bytes);
  if (!landing) return tl::unexpected(std::move(landing).error());
  arriving_since_ = owner_.trace().begin();
  return std::as_writable_bytes(*landing);
}

// The shard uses the gradients where they are: a worker changes them only when the shard has answered its push.
Result<Bytes> WorkerChannel::payload_lent(const FrameHeader& header, Bytes control,
                                          const transport::LentPayload& lent) {
  if (Status expected = expect_push(header, control); !expected) return tl::unexpected(std::move(expected).error());
  const std::span<const float> words(reinterpret_cast<const float*>(lent.bytes.data()),
                                     lent.bytes.size() / sizeof(float));
  const Result<std::span<const float>> read = owner_.lend(id_, header.sequence, arriving_.push, words, lent.keeps);
  if (!read) return tl::unexpected(read.error());
  arriving_since_ = owner_.trace().begin();
  return std::as_bytes(*read);
}

void WorkerChannel::on_frame(const FrameHeader& header, Bytes control, Bytes payload) {
  if (!belongs(header)) return;  // drops a frame of another generation
  if (is_flooded()) return give_up("it sends more than it reads");
  if (header.type == FrameType::kPush) {
    if (payload.empty())
      if (Status read = wire::decode_push(control, arriving_.push); !read) return give_up(read.error().message);
    arriving_.channel = id_;
    arriving_.sequence = header.sequence;
    arriving_.payload_bytes = payload.size();
    if (const Instant now = owner_.trace().begin(); now != Instant()) {
      // A frame without a payload arrives in one moment.
      const bool has_payload = !payload.empty() && arriving_since_ != Instant();
      owner_.trace().add(has_payload ? arriving_since_ : now, {.step = arriving_.push.clock.value,
                                                               .incarnation = worker_.incarnation,
                                                               .sequence = header.sequence,
                                                               .bytes = payload.size(),
                                                               .bucket = arriving_.push.bucket,
                                                               .worker = worker_.task.index,
                                                               .kind = TraceKind::kReceive});
    }
    owner_.on_push(arriving_, {reinterpret_cast<const float*>(payload.data()), payload.size() / sizeof(float)});
  } else if (header.type == FrameType::kPull) {
    const Result<Pull> pull = wire::decode_pull(control);
    if (!pull) return give_up(pull.error().message);
    owner_.on_pull(PullArrived{id_, *pull});
  } else if (header.type == FrameType::kMark) {
    const Result<Mark> mark = wire::decode_mark(control);
    if (!mark) return give_up(mark.error().message);
    owner_.on_mark(MarkArrived{id_, *mark});
  }
  // Drops frames of other types: only a later version of workerd sends them.
}

// A worker that waits for its answers, as workerd does, never has so many: at most transport.credits pushes, and a pull
// for each bucket. Before an update settle() copies the waiting answers, so their number bounds its memory.
bool WorkerChannel::is_flooded() const {
  constexpr std::size_t kSome = 64;  // the most that transport.credits can be
  constexpr std::size_t kSomeBytes = std::size_t{16} << 20;
  return waiting_.size() > 4 * buckets_ + kSome || connection_->queued_bytes() > 4 * bytes_ + kSomeBytes;
}

void WorkerChannel::give_up(const std::string& why) {
  connection_->close();
  owner_.on_channel_lost(id_, why);
}

void WorkerChannel::on_closed(const Error& why) {
  owner_.on_channel_lost(id_, why.message);
}

}  // namespace disttrain::shards
