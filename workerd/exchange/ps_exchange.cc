#include "workerd/exchange/ps_exchange.h"

#include <algorithm>
#include <asio/post.hpp>
#include <string_view>
#include <utility>

#include "common/check.h"
#include "common/fifo.h"
#include "transport/clock.h"

namespace disttrain::workerd {

using transport::Bytes;
using transport::monotonic_now;
using transport::MutableBytes;
using wire::FrameHeader;
using wire::FrameType;

// One channel. A link dials the ps, sends a hello and receives frames. If the channel is lost, the link dials again.
// After each failed attempt it waits longer before the next one.
//
// The attempts to dial are numbered. A callback contains the number of its attempt, and callbacks of earlier attempts
// are ignored.
class PsExchange::Link final : public transport::ConnectionHandler {
 public:
  Link(PsExchange& exchange, ShardId shard)
      : exchange_(exchange),
        shard_(shard),
        owner_(exchange.options_.owners.at(shard.value)),
        ps_(exchange.ps_[owner_.ps.task]),
        timer_(exchange.loop_),
        alive_(std::make_shared<bool>(true)) {}
  ~Link() override { *alive_ = false; }

  void open() {
    ps_.heard = Clock::now();
    patience_.emplace(ps_.heard + exchange_.options_.timeouts.silent_ps);
    pause_ = exchange_.options_.timeouts.reconnect_first;
    dial();
  }

  // Treats the channel as lost if the shard was silent for too long. `was_away` is true if the loop didn't run for a
  // while. Then bytes may have arrived that were not read yet, so this call doesn't treat the channel as lost.
  void watch(Clock::time_point now, bool was_away);

  Wires wire() const {
    if (!open_) return 0;
    const std::string_view wire = connection_->wire();
    return wire == "tcp" ? kTcpWire : wire == "shm" ? kShmWire : wire == "rdma" ? kRdmaWire : Wires{0};
  }

  void send(const transport::OutgoingFrame& frame) {
    if (open_) connection_->send(frame);
  }
  // Sends a push frame, and records when its sending begins and when the socket has taken it.
  void send_traced(transport::OutgoingFrame& frame, TraceEvent event);

  Result<MutableBytes> payload_landing(const FrameHeader& header, Bytes control) override;
  void on_frame(const FrameHeader& header, Bytes control, Bytes payload) override;
  void on_sent(std::uint64_t cookie) override;
  void on_closed(const Error& why) override { lost(why.message, Answer::kNone); }

 private:
  std::string name() const {
    return "shard " + std::to_string(shard_.value) + " (" + to_string(owner_.ps.task) + " at " + owner_.address + ")";
  }

  // kSome: the ps has sent an answer in this attempt.
  enum class Answer { kNone, kSome };

  const Arena* options_arena() const { return exchange_.options_.arena; }
  void dial();
  void wait_for_hello_answer();
  void on_hello_answer(const FrameHeader& header, Bytes control);
  void reached();
  void lost(const std::string& reason, Answer answer = Answer::kSome);
  void dial_later();
  void drop_connection();
  Status check_bucket(const Parameters& parameters, std::uint64_t payload_bytes) const;

  PsExchange& exchange_;
  const ShardId shard_;
  const Owner& owner_;
  Ps& ps_;
  asio::steady_timer timer_;     // limits the wait for the answer to the hello; also ends the pause before a dial
  std::shared_ptr<bool> alive_;  // shared with callbacks that may outlive the link
  std::uint64_t attempt_ = 0;
  bool open_ = false;
  Duration pause_{};
  std::uint64_t bytes_ = 0;  // number of bytes that the connection had received at heard_
  Clock::time_point heard_;  // time at which watch() last saw new bytes
  // If the ps answers but hasn't accepted the channel by this time, the link gives up. Empty once the channel has been
  // open.
  std::optional<Clock::time_point> patience_;
  std::unique_ptr<transport::Connection> connection_;
  // Only while a trace is recorded: the push frames that the socket hasn't taken yet, and their cookies.
  struct Sending {
    std::uint64_t cookie = 0;
    TraceEvent event;
  };
  Fifo<Sending> sending_;
  std::uint64_t cookie_ = 0;  // of the newest of them
  Instant answering_since_;   // when the payload that arrives began to arrive; Instant() if it isn't recorded
};

void PsExchange::Link::send_traced(transport::OutgoingFrame& frame, TraceEvent event) {
  if (!open_) return;
  frame.cookie = ++cookie_;
  connection_->send(frame);
  event.end = monotonic_now();
  // If nothing is left in the queue, the socket has taken the frame already.
  if (connection_->queued_bytes() == 0)
    exchange_.options_.trace->add(event);
  else
    sending_.push_back({cookie_, event});
}

void PsExchange::Link::on_sent(std::uint64_t cookie) {
  while (!sending_.empty() && sending_.front().cookie <= cookie) {
    TraceEvent event = sending_.front().event;
    sending_.pop_front();
    event.end = monotonic_now();
    if (exchange_.is_traced()) exchange_.options_.trace->add(event);
  }
}

void PsExchange::Link::dial() {
  const PsExchangeOptions& options = exchange_.options_;
  Hello hello;
  hello.cluster = options.cluster;
  hello.cluster_hash = options.cluster_hash;
  hello.who = ChannelHello{options.job, options.generation, shard_, options.self, options.token};
  const std::vector<std::byte> bytes = wire::encode(hello);
  transport::OutgoingFrame frame;
  frame.header = exchange_.header(FrameType::kHello, Sequence());
  frame.control = bytes;
  const std::uint64_t attempt = ++attempt_;
  exchange_.transport_.for_steps().dial(
      exchange_.loop_, owner_.address, frame, options.timeouts.dial,
      [this, alive = alive_, attempt](Result<std::unique_ptr<transport::Connection>> connection) {
        if (!*alive || attempt != attempt_) return;
        if (!connection) return lost(connection.error().message, Answer::kNone);
        connection_ = std::move(*connection);
        if (options_arena() != nullptr) connection_->share(*options_arena());
        connection_->start(*this);
        wait_for_hello_answer();
      });
}

void PsExchange::Link::wait_for_hello_answer() {
  timer_.expires_after(exchange_.options_.timeouts.dial);
  timer_.async_wait([this, alive = alive_, attempt = attempt_](asio::error_code cancelled) {
    if (cancelled || !*alive || attempt != attempt_ || open_) return;
    lost("it accepted the connection but didn't answer the hello", Answer::kNone);
  });
}

void PsExchange::Link::on_hello_answer(const FrameHeader& header, Bytes control) {
  timer_.cancel();
  Result<wire::HelloAnswer> answer = wire::decode_hello_answer(header.type, control);
  if (!answer) return lost(answer.error().message);
  if (const auto* refused = std::get_if<Refused>(&*answer)) {
    // Another process may answer at the address of the ps. The chief has to find out which of them has its place.
    const bool is_other = refused->by.incarnation.value != 0 && refused->by != owner_.ps;
    if (refused->code == ErrorCode::kTemporary && is_other)
      return lost("another process answers at its address", Answer::kNone);
    if (refused->code == ErrorCode::kTemporary) return lost(refused->reason);
    drop_connection();
    exchange_.handler_.on_refused(Error{refused->code, name() + " refuses the channel: " + refused->reason});
    return;
  }
  open_ = true;
  patience_.reset();
  pause_ = exchange_.options_.timeouts.reconnect_first;
  bytes_ = connection_->bytes_received();
  heard_ = Clock::now();
  reached();
  exchange_.handler_.on_channel_opened(shard_, std::get<Welcome>(*answer).last_sequence);
}

void PsExchange::Link::reached() {
  ps_.heard = Clock::now();
  if (std::exchange(ps_.has_complained, false)) exchange_.handler_.on_reached(shard_);
}

void PsExchange::Link::watch(Clock::time_point now, bool was_away) {
  if (!open_) return;
  if (was_away || connection_->bytes_received() != bytes_) {
    bytes_ = connection_->bytes_received();
    heard_ = ps_.heard = now;
  }
  if (now - heard_ > exchange_.options_.timeouts.silent) lost("no answer", Answer::kNone);
}

void PsExchange::Link::lost(const std::string& reason, Answer answer) {
  const bool was_open = open_;
  const Clock::time_point now = Clock::now();
  drop_connection();
  if (answer == Answer::kSome && !was_open) reached();
  if (patience_ && now >= *patience_ && answer == Answer::kSome) {
    exchange_.handler_.on_refused(Error{ErrorCode::kUnavailable, "can't open a channel to " + name() + ": " + reason});
    return;
  }
  dial_later();
  const Duration lasts = now - ps_.heard;
  const bool is_complaint = was_open || (answer == Answer::kNone && lasts > exchange_.options_.timeouts.silent);
  if (!is_complaint) return;
  ps_.has_complained = true;
  if (was_open) return exchange_.handler_.on_channel_lost(shard_, "channel to " + name() + " lost: " + reason, lasts);
  exchange_.handler_.on_unreachable(shard_, "can't reach " + name() + ": " + reason, lasts);
}

void PsExchange::Link::dial_later() {
  timer_.expires_after(pause_);
  pause_ = std::min(pause_ * 2, exchange_.options_.timeouts.reconnect_longest);
  timer_.async_wait([this, alive = alive_, attempt = attempt_](asio::error_code cancelled) {
    if (!cancelled && *alive && attempt == attempt_) dial();
  });
}

void PsExchange::Link::drop_connection() {
  open_ = false;
  while (!sending_.empty()) sending_.pop_front();
  ++attempt_;
  timer_.cancel();
  if (!connection_) return;
  connection_->close();
  // The caller of this function may be the connection itself. So the connection is destroyed later, on the loop.
  asio::post(exchange_.loop_, [dead = std::shared_ptr<transport::Connection>(std::move(connection_))] {});
}

Status PsExchange::Link::check_bucket(const Parameters& parameters, std::uint64_t payload_bytes) const {
  const auto& buckets = exchange_.layout_.buckets;
  const std::uint32_t bucket = parameters.bucket.value;
  if (bucket < buckets.size() && buckets[bucket].shard == shard_ &&
      payload_bytes == buckets[bucket].words * sizeof(float))
    return {};
  return fail(ErrorCode::kData, name() + " sends " + std::to_string(payload_bytes) + " bytes for bucket " +
                                    std::to_string(bucket) + "; its shard has no bucket with that number and size");
}

Result<MutableBytes> PsExchange::Link::payload_landing(const FrameHeader& header, Bytes control) {
  if (!open_ || header.type != FrameType::kParameters)
    return fail(ErrorCode::kData, name() + " sends a payload in a frame that isn't Parameters");
  Result<Parameters> parameters = wire::decode_parameters(control);
  if (!parameters) return tl::unexpected(parameters.error());
  if (Status ok = check_bucket(*parameters, header.payload_bytes); !ok) return tl::unexpected(ok.error());
  const Bucket& bucket = exchange_.layout_.buckets[parameters->bucket.value];
  answering_since_ = exchange_.is_traced() ? monotonic_now() : Instant();
  return std::as_writable_bytes(exchange_.handler_.landing().subspan(bucket.flat_begin, bucket.words));
}

void PsExchange::Link::on_frame(const FrameHeader& header, Bytes control, Bytes) {
  if (!open_) return on_hello_answer(header, control);
  if (header.job != exchange_.options_.job || header.generation != exchange_.options_.generation) return;
  if (header.type == FrameType::kParameters) {
    Result<Parameters> parameters = wire::decode_parameters(control);
    if (!parameters) return lost(parameters.error().message);
    if (Status ok = check_bucket(*parameters, header.payload_bytes); !ok) return lost(ok.error().message);
    if (exchange_.is_traced() && answering_since_ != Instant())
      exchange_.options_.trace->add({.begin = answering_since_,
                                     .end = monotonic_now(),
                                     .step = parameters->version.value,
                                     .incarnation = exchange_.options_.self.incarnation,
                                     .sequence = parameters->acknowledged,
                                     .bytes = header.payload_bytes,
                                     .shard = shard_,
                                     .bucket = parameters->bucket,
                                     .worker = exchange_.options_.self.task.index,
                                     .kind = TraceKind::kAnswer});
    exchange_.handler_.on_parameters(shard_, *parameters);
  } else if (header.type == FrameType::kAcknowledge) {
    Result<Acknowledge> acknowledge = wire::decode_acknowledge(control);
    if (!acknowledge) return lost(acknowledge.error().message);
    exchange_.handler_.on_acknowledge(shard_, *acknowledge);
  } else if (header.type == FrameType::kMarkTaken) {
    Result<MarkTaken> taken = wire::decode_mark_taken(control);
    if (!taken) return lost(taken.error().message);
    exchange_.handler_.on_mark_taken(shard_, *taken);
  }
  // Other frame types come from a later version and are ignored.
}

PsExchange::PsExchange(asio::io_context& loop, transport::Transport& transport, const Layout& layout,
                       PsExchangeOptions options, ExchangeHandler& handler)
    : loop_(loop),
      transport_(transport),
      layout_(layout),
      options_(std::move(options)),
      handler_(handler),
      watch_timer_(loop) {
  DISTTRAIN_CHECK_EQ(options_.owners.size(), layout_.shards);
}

PsExchange::~PsExchange() {
  *alive_ = false;
  close();
}

Wires PsExchange::wires() const {
  Wires all = 0;
  for (const auto& link : links_) all |= link->wire();
  return all;
}

// The channels don't depend on the roster, because each worker talks only to shards.
void PsExchange::open(const Roster&) {
  for (std::uint32_t shard = 0; shard < layout_.shards; ++shard)
    links_.push_back(std::make_unique<Link>(*this, ShardId(shard)));
  for (const auto& link : links_) link->open();
  watched_ = Clock::now();
  watch();
}

// Checks all links regularly. The loop doesn't run during a computation. So the first check after a computation doesn't
// treat a channel as lost: the loop must first read the bytes that have arrived.
void PsExchange::watch() {
  const Duration pause = options_.timeouts.silent / 4;
  watch_timer_.expires_after(pause);
  watch_timer_.async_wait([this, pause, alive = alive_](asio::error_code cancelled) {
    if (cancelled || !*alive) return;
    const Clock::time_point now = Clock::now();
    const bool was_away = now - std::exchange(watched_, now) > 2 * pause;
    for (const auto& link : links_) link->watch(now, was_away);
    if (*alive) watch();
  });
}

void PsExchange::abort() {
  close();
}

void PsExchange::close() {
  watch_timer_.cancel();
  links_.clear();
  ps_.clear();
}

FrameHeader PsExchange::header(FrameType type, Sequence sequence) const {
  FrameHeader header;
  header.type = type;
  header.job = options_.job;
  header.generation = options_.generation;
  header.sequence = sequence;
  return header;
}

void PsExchange::push(const SendPush& send, std::span<const float> gradients) {
  const bool is_traced = this->is_traced();
  const Instant begin = is_traced ? monotonic_now() : Instant();
  transport::OutgoingFrame frame;
  frame.header = header(FrameType::kPush, send.sequence);
  frame.control = wire::encode(send.push, scratch_);
  if (send.push.want != Want::kNothing) frame.answers = std::as_writable_bytes(handler_.landing());
  if (send.payload) {
    const Bucket& bucket = layout_.buckets[send.push.bucket.value];
    frame.payload = std::as_bytes(gradients.subspan(bucket.flat_begin, bucket.words));
    frame.lifetime = transport::Payload::kFrozenUntilAnswered;
  }
  if (is_traced)
    return links_[send.shard.value]->send_traced(frame, {.begin = begin,
                                                         .step = send.push.clock.value,
                                                         .incarnation = options_.self.incarnation,
                                                         .sequence = send.sequence,
                                                         .bytes = frame.payload.size(),
                                                         .shard = send.shard,
                                                         .bucket = send.push.bucket,
                                                         .worker = options_.self.task.index,
                                                         .kind = TraceKind::kSend});
  links_[send.shard.value]->send(frame);
}

void PsExchange::pull(const SendPull& send) {
  transport::OutgoingFrame frame;
  frame.header = header(FrameType::kPull, Sequence());
  frame.control = wire::encode(send.pull, scratch_);
  frame.answers = std::as_writable_bytes(handler_.landing());
  links_[send.shard.value]->send(frame);
}

void PsExchange::mark(const SendMark& send) {
  transport::OutgoingFrame frame;
  frame.header = header(FrameType::kMark, Sequence());
  frame.control = wire::encode(send.mark, scratch_);
  links_[send.shard.value]->send(frame);
}

}  // namespace disttrain::workerd
