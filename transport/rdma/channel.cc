// Only the receiver of a push knows where its payload belongs, so it reads the gradients out of the worker's memory
// (RDMA READ) into the landing that it has chosen. A worker offers its array of parameters with each request, so the
// shard writes an answer to its place (RDMA WRITE) and sends the answer's frame behind it. A reliable queue pair keeps
// this order, so no WRITE with immediate is needed. Everything else goes by SEND, through 32 slots of 8 KiB in each
// direction.
//
// close() destroys the queue pair before it returns. After that the device neither writes a late READ into a landing
// nor accepts a WRITE of the peer, so both ends may use their memory again. The price: the last messages of such an end
// may be lost. An end that has shared no memory and reads none, such as a ps that refuses a channel, first waits up to
// a second until its last frames have arrived.
//
// A connection reads one payload, and then takes the next frame. With the default of 4 frames, a worker with several
// shards has several READs under way. Reading ahead would need several frames in the stream.
//
// A connection waits for its completion channel. A loop that asks a device all the time would need a core for each
// shard. Only messages (IBV_SEND_SOLICITED) and the payloads that it reads wake it; it sees that its own messages have
// been sent when it sends the next ones.
#include "transport/rdma/channel.h"

#include <algorithm>
#include <array>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <utility>

#include "transport/clock.h"
#include "transport/rdma/inbox.h"
#include "transport/rdma/memory.h"
#include "transport/stream/core_channel.h"
#include "transport/stream/handler_memory.h"

namespace disttrain::transport {

using wire::PayloadPlace;

namespace {

constexpr Duration kLinger = std::chrono::seconds(1);
constexpr Duration kAcknowledgedIn = std::chrono::seconds(1);

// The parts of a core that move from one loop to another.
struct RdmaMoved {
  std::unique_ptr<RdmaLink> link;
  RdmaInbox inbox = {};
  std::optional<Error> failure = std::nullopt;
  bool is_closed_by_peer = false;
  bool has_heard = false;
};

class RdmaCore : public std::enable_shared_from_this<RdmaCore> {
 public:
  static constexpr const char* kWire = "rdma";

  RdmaCore(asio::io_context& loop, RdmaMoved moved)
      : loop_(loop),
        events_(loop, moved.link->event_descriptor()),
        completions_(loop, moved.link->completion_descriptor()),
        linger_(loop),
        link_(std::move(moved.link)),
        inbox_(std::move(moved.inbox)),
        failure_(std::move(moved.failure)),
        is_closed_by_peer_(moved.is_closed_by_peer),
        has_heard_(moved.has_heard) {}
  ~RdmaCore() { let_go(); }

  void start() {
    watch_events();
    watch_completions();
  }

  Result<ByteChannel::Read> read_some(std::span<const iovec> buffers) {
    free_read_slots();
    if (inbox_.empty()) take_completions();
    // Looks for the close first: what the peer sent before it closed has then arrived.
    const bool was_closed = is_closed_by_peer_;
    if (inbox_.empty() && was_closed) take_completions();
    if (const std::size_t total = inbox_.read(buffers); total > 0) return ByteChannel::Read{total, false};
    if (failure_ && !was_closed) return tl::unexpected(*failure_);
    return ByteChannel::Read{0, was_closed};
  }

  Result<std::size_t> write_some(std::span<const iovec> buffers) {
    if (is_closed_by_peer_) return closed_by_peer();
    if (failure_) return tl::unexpected(*failure_);
    take_completions();
    if (failure_) return tl::unexpected(*failure_);
    std::size_t total = 0;
    std::size_t at = 0;  // the first byte of the first buffer that isn't sent yet
    while (!buffers.empty() && link_->may_send()) {
      std::array<Bytes, 8> parts;
      std::size_t count = 0, room = link_->max_body();
      while (!buffers.empty() && room > 0 && count < parts.size()) {
        const Bytes whole(static_cast<const std::byte*>(buffers[0].iov_base), buffers[0].iov_len);
        const Bytes part = whole.subspan(at, std::min(room, whole.size() - at));
        if (!part.empty()) parts[count++] = part;
        room -= part.size();
        total += part.size();
        at += part.size();
        if (at < whole.size()) break;
        buffers = buffers.subspan(1);
        at = 0;
      }
      if (count == 0) break;
      if (Status sent = link_->send(RdmaMessage::Kind::kBytes, std::span(parts).first(count)); !sent) {
        check(sent);
        return tl::unexpected(sent.error());
      }
    }
    return total;
  }

  void wait_readable(std::shared_ptr<ByteChannelUser> user) {
    reading_ = std::move(user);
    free_read_slots();
    if (can_read()) post_turn();
  }

  void wait_writable(std::shared_ptr<ByteChannelUser> user) {
    writing_ = std::move(user);
    wake_for_everything();
    if (can_write()) post_turn();
  }

  void close() {
    if (life_ != Life::kOpen) return;
    life_ = Life::kDraining;
    reading_.reset();
    writing_.reset();
    fetching_.reset();
    if (!is_over()) take_completions();
    // A peer that doesn't even acknowledge the first message is out of the device's reach.
    if (!is_over() && !has_heard_ && link_->sends_under_way() > 0 && monotonic_now() - opened_ > kAcknowledgedIn)
      avoid_peer("the peer didn't acknowledge a message");
    const bool may_linger =
        !memory_.is_exposed() && !memory_.is_fetching() && !is_over() && link_->sends_under_way() > 0;
    if (!may_linger) return fence();
    // The arena needn't outlive close(). Another one at its address would seem to have the same registrations.
    memory_.unshare();
    linger([](RdmaCore& self) { self.fence(); });
    wake_for_everything();
    if (link_->sends_under_way() == 0) fence();
  }

  // Takes the link out of the core. Only operations that end are left in it.
  std::unique_ptr<DetachedChannel> detach();

  void share(const Arena& arena) { memory_.share(arena); }

  std::optional<PayloadPlace> place(const OutgoingFrame& frame) {
    // They may show that earlier answers are written or read, or that a slot for a block is free.
    if (!is_over() && (frame.answer_at || !link_->may_send())) take_completions();
    if (is_over()) return std::nullopt;
    const auto place = memory_.place(*link_, frame, writing_ == nullptr);
    if (place.has_value()) return *place;
    check(tl::unexpected(place.error()));
    return std::nullopt;
  }

  Result<PeerMemory> take(const PayloadPlace& place, std::uint64_t payload_bytes) {
    return memory_.take(*link_, place, payload_bytes);
  }

  void fetch(MutableBytes landing, std::shared_ptr<ByteChannelUser> user) {
    fetching_ = std::move(user);
    if (is_over()) return post_turn();
    check(memory_.fetch(*link_, landing));
    wake_for_everything();
    if (memory_.has_fetched() || failure_) post_turn();
  }

 private:
  enum class Life {
    kOpen,
    kDraining,  // closed, and what was sent before is still on its way
    kFenced,    // the queue pair is destroyed, and the peer may not know yet that the connection has ended
    kGone,      // the link is destroyed, or another core has it
  };

  bool is_over() const { return is_closed_by_peer_ || failure_.has_value(); }
  bool can_read() const { return !inbox_.empty() || is_over(); }
  bool can_write() const { return link_->may_send() || is_over(); }
  static tl::unexpected<Error> closed_by_peer() {
    return fail(ErrorCode::kUnavailable, "the peer closed the connection");
  }

  // Keeps the first failure. Those who wait learn of it in a later turn.
  void check(const Status& status) {
    if (status || failure_) return;
    failure_ = status.error();
    post_turn();
  }

  // The reader has come back, so it doesn't need the slots any more that it has read.
  void free_read_slots() {
    std::optional<std::uint32_t> slot = inbox_.take_free();
    if (!slot || is_over()) return;
    for (; slot; slot = inbox_.take_free()) {
      link_->credits().emptied();
      check(link_->post_receive(*slot));
    }
    check(link_->return_credits());
    if (link_->credits().must_return()) wake_for_everything();  // all slots for such messages are under way
  }

  // ---- What happens on the device.

  // From now on also sent messages, written answers and read payloads wake this end, until it isn't waiting for them
  // any more. Usually nobody waits for the first two, so they needn't wake anybody.
  void wake_for_everything() {
    check(link_->arm(RdmaLink::WakeFor::kEverything));
    take_completions();
  }

  // This ends, because completions are bounded: a message needs a credit, or returns one that this end had used.
  void take_completions() {
    for (;;) {
      const auto completed = link_->poll();
      if (!completed) return check(tl::unexpected(completed.error()));
      if (completed->empty()) break;
      for (const RdmaLink::Completion& one : *completed) {
        if (one.status != IBV_WC_SUCCESS)
          completion_failed(one);
        else if (one.work == RdmaLink::Work::kReceive)
          check(message_arrived(one));
        else if (one.work == RdmaLink::Work::kSend)
          link_->send_completed(one.slot);
        else if (one.work == RdmaLink::Work::kWrite)
          memory_.written();
        else
          memory_.read();
      }
    }
    if (!is_over()) check(link_->return_credits());
  }

  void completion_failed(const RdmaLink::Completion& one) {
    take_events();  // if the peer has closed the connection, that is the reason
    const char* const what = one.work == RdmaLink::Work::kReceive ? "receive"
                             : one.work == RdmaLink::Work::kSend  ? "send"
                             : one.work == RdmaLink::Work::kWrite ? "write to memory of the peer"
                                                                  : "read from memory of the peer";
    const std::string why = std::string("the RDMA device can't ") + what + ": " + ::ibv_wc_status_str(one.status);
    // Perhaps the network drops large packets. Then the next connection would fail in the same way.
    if (one.status == IBV_WC_RETRY_EXC_ERR && !is_over() && !memory_.has_moved_payload()) avoid_peer(why);
    check(fail(ErrorCode::kUnavailable, why));
  }

  void avoid_peer(const std::string& why) {
    if (!link_->devices()->is_required()) link_->devices()->avoidance().avoid(link_->peer_host(), why, monotonic_now());
  }

  Status message_arrived(const RdmaLink::Completion& one) {
    const Bytes whole = link_->received(one);
    const Result<RdmaMessage> message = decode_message(whole);
    if (!message) return tl::unexpected(message.error());
    has_heard_ = true;
    if (Status returned = link_->credits().returned(message->credits); !returned) return returned;
    if (message->kind == RdmaMessage::Kind::kCredits) return link_->post_receive(one.slot);
    if (Status arrived = link_->credits().arrived(); !arrived) return arrived;
    const Bytes body = whole.subspan(kMessageBytes);
    const bool is_block = message->kind == RdmaMessage::Kind::kBlock;
    inbox_.push(one.slot, is_block ? Bytes() : body);
    if (!is_block) return {};
    const Result<RdmaBlock> block = decode_block(body);
    if (!block) return tl::unexpected(block.error());
    return link_->peer_blocks().add(*block);
  }

  void take_events() {
    rdma_cm_event* event = nullptr;
    while (::rdma_get_cm_event(link_->events(), &event) == 0) {
      const rdma_cm_event_type kind = event->event;
      ::rdma_ack_cm_event(event);
      if (kind == RDMA_CM_EVENT_DISCONNECTED)
        is_closed_by_peer_ = true;
      else if (kind == RDMA_CM_EVENT_DEVICE_REMOVAL)
        check(fail(ErrorCode::kUnavailable, "the RDMA device was removed"));
      else if (kind == RDMA_CM_EVENT_CONNECT_ERROR || kind == RDMA_CM_EVENT_UNREACHABLE ||
               kind == RDMA_CM_EVENT_REJECTED)
        check(fail(ErrorCode::kUnavailable, std::string("the connection wasn't made: ") + ::rdma_event_str(kind)));
    }
  }

  void watch_events() {
    events_.async_wait(asio::posix::stream_descriptor::wait_read,
                       PlacedHandler(event_memory_, [self = shared_from_this()](const asio::error_code& error) {
                         if (error || self->life_ == Life::kGone) return;
                         self->take_events();
                         self->watch_events();
                         self->turn();
                       }));
  }

  void watch_completions() {
    completions_.async_wait(
        asio::posix::stream_descriptor::wait_read,
        PlacedHandler(completion_memory_, [self = shared_from_this()](const asio::error_code& error) {
          if (error || !self->has_queue()) return;
          self->link_->take_signals();
          // What completes between these two calls signals again.
          const bool is_for_all = self->writing_ || self->memory_.is_fetching() || self->life_ == Life::kDraining;
          self->check(self->link_->arm(is_for_all ? RdmaLink::WakeFor::kEverything : RdmaLink::WakeFor::kMessages));
          self->take_completions();
          self->watch_completions();
          self->turn();
        }));
  }

  void post_turn() {
    if (life_ != Life::kOpen || std::exchange(is_turn_posted_, true)) return;
    asio::post(loop_, PlacedHandler(turn_memory_, [self = shared_from_this()] {
                 self->is_turn_posted_ = false;
                 self->turn();
               }));
  }

  // Calls those who wait, if they can go on.
  void turn() {
    if (life_ != Life::kOpen) return closing_turn();
    if (fetching_ && !memory_.has_fetched() && is_over())
      take_completions();  // the payload may have come before the end
    if (fetching_ && (memory_.has_fetched() || is_over())) {
      const Status fetched = memory_.has_fetched() ? Status()
                             : is_closed_by_peer_  ? Status(closed_by_peer())
                                                   : Status(tl::unexpected(*failure_));
      if (fetched) memory_.finish_fetch();
      std::exchange(fetching_, nullptr)->on_fetched(fetched);
    }
    if (writing_ && life_ == Life::kOpen && can_write()) std::exchange(writing_, nullptr)->on_writable();
    if (reading_ && life_ == Life::kOpen && can_read()) std::exchange(reading_, nullptr)->on_readable();
  }

  // ---- The end.

  bool has_queue() const { return life_ == Life::kOpen || life_ == Life::kDraining; }

  void linger(void (*at_the_end)(RdmaCore&)) {
    linger_.expires_after(kLinger);
    linger_.async_wait([self = shared_from_this(), at_the_end](const asio::error_code& error) {
      if (!error && self->life_ != Life::kGone) at_the_end(*self);
    });
  }

  void closing_turn() {
    if (life_ == Life::kDraining && (link_->sends_under_way() == 0 || is_over())) return fence();
    if (life_ == Life::kFenced && is_closed_by_peer_) let_go();
  }

  void fence() {
    life_ = Life::kFenced;
    linger_.cancel();
    completions_.release();  // the link closes the descriptor
    link_->end();
    memory_.clear();
    if (is_over()) return let_go();
    linger([](RdmaCore& self) { self.let_go(); });
  }

  void let_go() {
    if (life_ == Life::kGone) return;
    life_ = Life::kGone;
    linger_.cancel();
    events_.release();
    completions_.release();
    link_.reset();
  }

  asio::io_context& loop_;
  asio::posix::stream_descriptor events_;       // the link owns its descriptor
  asio::posix::stream_descriptor completions_;  // and this one
  asio::steady_timer linger_;
  const Instant opened_ = monotonic_now();
  std::unique_ptr<RdmaLink> link_;  // null once it has gone
  RdmaInbox inbox_;
  std::shared_ptr<ByteChannelUser> reading_;
  std::shared_ptr<ByteChannelUser> writing_;
  std::shared_ptr<ByteChannelUser> fetching_;
  std::optional<Error> failure_;
  Life life_ = Life::kOpen;
  bool is_closed_by_peer_ = false;
  bool has_heard_ = false;  // of the peer, after the greeting
  bool is_turn_posted_ = false;
  HandlerMemory event_memory_;
  HandlerMemory completion_memory_;
  HandlerMemory turn_memory_;

  RdmaMemory memory_;
};

class RdmaDetached final : public DetachedChannel {
 public:
  explicit RdmaDetached(RdmaMoved moved) : moved_(std::move(moved)) {}
  const char* wire() const override { return RdmaCore::kWire; }
  std::unique_ptr<ByteChannel> attach(asio::io_context& loop) override {
    auto core = std::make_shared<RdmaCore>(loop, std::move(moved_));
    core->start();
    return std::make_unique<CoreChannel<RdmaCore>>(std::move(core));
  }

 private:
  RdmaMoved moved_;
};

std::unique_ptr<DetachedChannel> RdmaCore::detach() {
  life_ = Life::kGone;
  events_.release();
  completions_.release();
  return std::make_unique<RdmaDetached>(
      RdmaMoved{std::move(link_), std::move(inbox_), std::move(failure_), is_closed_by_peer_, has_heard_});
}

}  // namespace

std::unique_ptr<ByteChannel> open_rdma_channel(asio::io_context& loop, std::unique_ptr<RdmaLink> link) {
  return RdmaDetached(RdmaMoved{.link = std::move(link)}).attach(loop);
}

}  // namespace disttrain::transport
