#include "transport/rdma/channel.h"

#include <algorithm>
#include <array>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "common/fifo.h"
#include "transport/clock.h"
#include "transport/rdma/shared_memory.h"
#include "transport/rdma/staging.h"
#include "transport/stream/handler_memory.h"

namespace disttrain::transport {

using wire::PayloadPlace;

namespace {

constexpr std::size_t kStagingBytes = 4 * wire::kMaxPayloadBytes;  // for answers that are on their way
constexpr Duration kLinger = std::chrono::seconds(1);

struct Received {
  std::uint32_t slot = 0;
  Bytes left;  // the bytes of the message that aren't read yet
};

}  // namespace

// The parts of a core that move from one loop to another.
struct RdmaChannel::Moved {
  std::unique_ptr<RdmaLink> link;
  Fifo<Received> received = {};
  std::optional<Error> failure = std::nullopt;
  bool is_closed_by_peer = false;
};

class RdmaChannel::Core : public std::enable_shared_from_this<Core> {
 public:
  Core(asio::io_context& loop, Moved moved)
      : loop_(loop),
        events_(loop, moved.link->event_descriptor()),
        completions_(loop, moved.link->completion_descriptor()),
        linger_(loop),
        link_(std::move(moved.link)),
        received_(std::move(moved.received)),
        failure_(std::move(moved.failure)),
        is_closed_by_peer_(moved.is_closed_by_peer) {}
  ~Core() { let_go(); }

  void start() {
    watch_events();
    watch_completions();
  }

  Result<Read> read_some(std::span<const iovec> buffers) {
    if (received_.empty()) take_completions();
    // Looks for the close first: what the peer sent before it closed has then arrived.
    const bool was_closed = is_closed_by_peer_;
    if (received_.empty() && was_closed) take_completions();
    std::size_t total = 0;
    for (const iovec& buffer : buffers) {
      std::size_t filled = 0;
      while (filled < buffer.iov_len && !received_.empty()) {
        Received& oldest = received_.front();
        const std::size_t n = std::min(oldest.left.size(), buffer.iov_len - filled);
        std::memcpy(static_cast<std::byte*>(buffer.iov_base) + filled, oldest.left.data(), n);
        oldest.left = oldest.left.subspan(n);
        filled += n;
        if (oldest.left.empty()) {
          empty_slot(oldest.slot);
          received_.pop_front();
        }
      }
      total += filled;
    }
    if (total > 0) {
      check(link_->return_credits());
      if (link_->credits().must_return()) wake_for_everything();  // all slots for such messages are under way
      return Read{total, false};
    }
    if (failure_ && !was_closed) return tl::unexpected(*failure_);
    return Read{0, was_closed};
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
    if (can_read()) post_turn();
  }

  void wait_writable(std::shared_ptr<ByteChannelUser> user) {
    writing_ = std::move(user);
    wake_for_everything();
    if (can_write()) post_turn();
  }

  void close() {
    if (std::exchange(is_closed_, true)) return;
    reading_.reset();
    writing_.reset();
    fetching_.reset();
    if (!is_over()) take_completions();
    // A peer that hasn't acknowledged the first message is out of the device's reach.
    if (!is_over() && !has_heard_ && link_->sends_under_way() > 0) avoid_peer("the peer didn't acknowledge a message");
    const bool may_linger = !shared_.is_exposed() && reads_ == 0 && !is_over() && link_->sends_under_way() > 0;
    if (!may_linger) return end();
    // The arena needn't outlive close(). Another one at its address would seem to have the same registrations.
    shared_.clear();
    linger([](Core& self) { self.end(); });
    wake_for_everything();
    if (link_->sends_under_way() == 0) end();
  }

  // Takes the link out of the core. Only operations that end are left in it.
  Moved release() {
    is_closed_ = true;
    events_.release();
    completions_.release();
    return {std::move(link_), std::move(received_), std::move(failure_), is_closed_by_peer_};
  }

  void share(const Arena& arena) { shared_.set(arena); }

  std::optional<PayloadPlace> place(const OutgoingFrame& frame) {
    if (is_over()) return std::nullopt;
    PayloadPlace place;
    bool is_used = false;
    const bool is_new_offer = frame.answers.data() != offered_.data() || frame.answers.size() != offered_.size();
    if (!frame.answers.empty() && is_new_offer) {
      if (!link_->may_send()) take_completions();
      if (const auto at = known(frame.answers, RdmaBlock::Use::kWrite)) {
        place.offered_block = at->block;
        place.offered_offset = at->offset;
        place.offered_bytes = frame.answers.size();
        offered_ = frame.answers;
        is_used = true;
      } else if (!offered_.empty()) {
        // The peer would go on writing to the memory of the earlier offer, which may be in use now.
        check(fail(ErrorCode::kUnavailable, "can't offer other memory to the peer for its answers"));
        return std::nullopt;
      }
    }
    if (frame.payload.empty() || frame.payload.size() > wire::kMaxPayloadBytes) {
    } else if (frame.lifetime == Payload::kFrozenUntilAnswered) {
      if (const auto at = known(frame.payload, RdmaBlock::Use::kRead)) {
        place.kind = PayloadPlace::Kind::kLent;
        place.block = at->block;
        place.offset = at->offset;
        is_used = true;
      }
    } else if (frame.answer_at) {
      if (may_overtake(*frame.answer_at, frame.payload.size()) && write_answer(frame.payload, *frame.answer_at)) {
        place.kind = PayloadPlace::Kind::kPlaced;
        place.offset = *frame.answer_at;
        is_used = true;
      } else {
        note_slow(*frame.answer_at, frame.payload.size());
      }
    }
    return is_used ? std::optional(place) : std::nullopt;
  }

  Result<PeerMemory> take(const PayloadPlace& place, std::uint64_t payload_bytes) {
    if (place.offered_bytes > 0) {
      const Result<RemoteBytes> region = link_->peer_blocks().find(place.offered_block, RdmaBlock::Use::kWrite,
                                                                   place.offered_offset, place.offered_bytes);
      if (!region) return tl::unexpected(region.error());
      region_ = *region;
    }
    if (place.kind == PayloadPlace::Kind::kInFrame) return PeerMemory();
    if (place.kind == PayloadPlace::Kind::kLent) {
      const Result<RemoteBytes> lent =
          link_->peer_blocks().find(place.block, RdmaBlock::Use::kRead, place.offset, payload_bytes);
      if (!lent) return tl::unexpected(lent.error());
      if (payload_bytes == 0 || payload_bytes > wire::kMaxPayloadBytes)
        return fail(ErrorCode::kData, "the peer lends a payload of " + std::to_string(payload_bytes) + " bytes");
      lent_ = *lent;
      return PeerMemory{.bytes = {}, .keeps = nullptr, .is_remote = true};
    }
    if (place.offset <= offered_.size() && payload_bytes <= offered_.size() - place.offset) {
      has_moved_payload_ = true;
      return PeerMemory{.bytes = offered_.subspan(place.offset, payload_bytes)};
    }
    return fail(ErrorCode::kData, "the peer has put " + std::to_string(payload_bytes) + " bytes at byte " +
                                      std::to_string(place.offset) + " of memory that wasn't offered to it");
  }

  void fetch(MutableBytes landing, std::shared_ptr<ByteChannelUser> user) {
    fetching_ = std::move(user);
    landing_ = landing;
    fetched_by_copy_ = is_fetched_ = false;
    if (is_over()) return post_turn();
    MutableBytes into = landing;
    const Result<const RdmaRegion*> region = shared_.own(*link_, landing);
    if (!region) return check(tl::unexpected(region.error()));
    std::uint32_t key = 0;
    if (*region != nullptr) {
      key = (*region)->local_key();
    } else {
      if (!have(fetch_buffer_, wire::kMaxPayloadBytes)) return post_turn();
      fetched_by_copy_ = true;
      into = fetch_buffer_->bytes().first(landing.size());
      key = fetch_buffer_->key();
    }
    ++reads_;
    check(link_->read(into, key, lent_));
    wake_for_everything();
    if (is_fetched_ || failure_) post_turn();
  }

 private:
  bool is_over() const { return is_closed_by_peer_ || failure_.has_value(); }
  bool can_read() const { return !received_.empty() || is_over(); }
  bool can_write() const { return link_->may_send() || is_over(); }
  static tl::unexpected<Error> closed_by_peer() {
    return fail(ErrorCode::kUnavailable, "the peer closed the connection");
  }

  // An answer that travels in its frame: the bytes of the peer's memory at which it belongs, and the number of the
  // message with whose reading it is there.
  struct SlowAnswer {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t read_with = 0;
  };
  static constexpr std::uint64_t kNotSent = ~std::uint64_t{0};  // the stream still has a part of the frame
  static constexpr std::size_t kMaxSlow = 64;

  // Keeps the first failure. Those who wait learn of it in a later turn.
  void check(const Status& status) {
    if (status || failure_) return;
    failure_ = status.error();
    post_turn();
  }

  void empty_slot(std::uint32_t slot) {
    link_->credits().emptied();
    check(link_->post_receive(slot));
  }

  // ---- Memory.

  // The place of these bytes in a block that the peer knows. Empty: the peer can't know it now.
  std::optional<Arena::Place> known(Bytes bytes, RdmaBlock::Use use) {
    const auto place = shared_.known(*link_, bytes, use);
    if (place.has_value()) return *place;
    check(tl::unexpected(place.error()));
    return std::nullopt;
  }

  bool have(std::unique_ptr<RdmaBuffer>& buffer, std::size_t bytes) {
    const Status made = link_->devices()->make_once(buffer, link_->domain(), bytes);
    check(made);
    return made.has_value();
  }

  // An answer that travels in its frame reaches its place when the peer reads the frame. A later answer for this place
  // that was written there at once would then be overwritten by the earlier one. Returns false if that could happen.
  bool may_overtake(std::uint64_t at, std::uint64_t bytes) {
    take_completions();  // they may show that the peer has read the frames
    for (SlowAnswer& one : slow_)
      if (one.read_with == kNotSent && !writing_) one.read_with = link_->credits().all_sent();
    std::erase_if(slow_, [&](const SlowAnswer& one) { return one.read_with <= link_->credits().all_read(); });
    return std::ranges::none_of(slow_, [&](const SlowAnswer& one) { return at < one.end && one.begin < at + bytes; });
  }

  void note_slow(std::uint64_t at, std::uint64_t bytes) {
    if (slow_.size() < kMaxSlow) return slow_.push_back({at, at + bytes, kNotSent});
    SlowAnswer& last = slow_.back();  // stands for more than one answer from now on
    last = {std::min(last.begin, at), std::max(last.end, at + bytes), kNotSent};
  }

  // Writes a copy of the payload into the memory that the peer has offered. Returns false if there is no room for the
  // copy now, or the peer hasn't offered this memory.
  bool write_answer(Bytes payload, std::uint64_t at) {
    if (!region_.holds(at, payload.size())) return false;
    take_completions();  // of earlier writes
    if (is_over() || staging_.pieces() == kRdmaMaxWrites) return false;
    if (!have(staged_, kStagingBytes)) return false;
    const std::optional<std::size_t> piece = staging_.take(payload.size());
    if (!piece) return false;
    const MutableBytes copy = staged_->bytes().subspan(*piece, payload.size());
    std::memcpy(copy.data(), payload.data(), payload.size());
    const Status written = link_->write(copy, staged_->key(), {region_.address + at, payload.size(), region_.key});
    check(written);
    return written.has_value();
  }

  // ---- What happens on the device.

  // From now on also sent messages, written answers and read payloads wake this end, until it isn't waiting for them
  // any more. Usually nobody waits for the first two, so they needn't wake anybody.
  void wake_for_everything() {
    check(link_->arm(RdmaLink::WakeFor::kEverything));
    take_completions();
  }

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
          staging_.free_oldest(), has_moved_payload_ = true;
        else
          --reads_, is_fetched_ = has_moved_payload_ = true;
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
    if (one.status == IBV_WC_RETRY_EXC_ERR && !is_over() && !has_moved_payload_) avoid_peer(why);
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
    if (message->kind == RdmaMessage::Kind::kBytes) {
      received_.push_back({one.slot, body});
      return {};
    }
    const Result<RdmaBlock> block = decode_block(body);
    if (!block) return tl::unexpected(block.error());
    empty_slot(one.slot);
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
                         if (error || self->is_over_and_out()) return;
                         self->take_events();
                         self->watch_events();
                         self->turn();
                       }));
  }

  void watch_completions() {
    completions_.async_wait(
        asio::posix::stream_descriptor::wait_read,
        PlacedHandler(completion_memory_, [self = shared_from_this()](const asio::error_code& error) {
          if (error || self->is_over_and_out() || self->is_ended_) return;
          self->link_->take_signals();
          // What completes between these two calls signals again.
          const bool is_for_all = self->writing_ || self->reads_ > 0 || self->is_closed_;
          self->check(self->link_->arm(is_for_all ? RdmaLink::WakeFor::kEverything : RdmaLink::WakeFor::kMessages));
          self->take_completions();
          self->watch_completions();
          self->turn();
        }));
  }

  void post_turn() {
    if (is_closed_ || std::exchange(is_turn_posted_, true)) return;
    asio::post(loop_, PlacedHandler(turn_memory_, [self = shared_from_this()] {
                 self->is_turn_posted_ = false;
                 self->turn();
               }));
  }

  // Calls those who wait, if they can go on.
  void turn() {
    if (is_closed_) return closing_turn();
    if (fetching_ && !is_fetched_ && is_over()) take_completions();  // the payload may have arrived before the end
    if (fetching_ && (is_fetched_ || is_over())) {
      if (is_fetched_ && fetched_by_copy_) std::memcpy(landing_.data(), fetch_buffer_->bytes().data(), landing_.size());
      const Status fetched = is_fetched_          ? Status()
                             : is_closed_by_peer_ ? Status(closed_by_peer())
                                                  : Status(tl::unexpected(*failure_));
      std::exchange(fetching_, nullptr)->on_fetched(fetched);
    }
    if (writing_ && !is_closed_ && can_write()) std::exchange(writing_, nullptr)->on_writable();
    if (reading_ && !is_closed_ && can_read()) std::exchange(reading_, nullptr)->on_readable();
  }

  // ---- The end.

  bool is_over_and_out() const { return link_ == nullptr; }

  void linger(void (*at_the_end)(Core&)) {
    linger_.expires_after(kLinger);
    linger_.async_wait([self = shared_from_this(), at_the_end](const asio::error_code& error) {
      if (!error && self->link_ != nullptr) at_the_end(*self);
    });
  }

  // Waits until what was sent has arrived, and then until the peer knows that the connection has ended.
  void closing_turn() {
    if (link_ == nullptr) return;
    if (!is_ended_ && (link_->sends_under_way() == 0 || is_over())) return end();
    if (is_ended_ && is_closed_by_peer_) let_go();
  }

  void end() {
    linger_.cancel();
    is_ended_ = true;
    link_->end();
    shared_.clear();
    staged_.reset();
    fetch_buffer_.reset();
    received_.clear();
    asio::error_code ignored;
    completions_.cancel(ignored);
    if (is_over()) return let_go();
    linger([](Core& self) { self.let_go(); });
  }

  void let_go() {
    if (link_ == nullptr) return;
    linger_.cancel();
    events_.release();
    completions_.release();
    link_->end();
    link_.reset();
  }

  asio::io_context& loop_;
  asio::posix::stream_descriptor events_;       // the link owns its descriptor
  asio::posix::stream_descriptor completions_;  // and this one
  asio::steady_timer linger_;
  std::unique_ptr<RdmaLink> link_;  // null once the link has gone
  Fifo<Received> received_;
  std::shared_ptr<ByteChannelUser> reading_;
  std::shared_ptr<ByteChannelUser> writing_;
  std::shared_ptr<ByteChannelUser> fetching_;
  std::optional<Error> failure_;
  bool is_closed_ = false;  // by this end
  bool is_ended_ = false;   // the queue pair is destroyed
  bool is_closed_by_peer_ = false;
  bool has_heard_ = false;          // of the peer, after the greeting
  bool has_moved_payload_ = false;  // by RDMA, in either direction
  bool is_turn_posted_ = false;
  HandlerMemory event_memory_;
  HandlerMemory completion_memory_;
  HandlerMemory turn_memory_;

  RdmaSharedMemory shared_;
  MutableBytes offered_;  // the memory of this process that the peer may write to
  RemoteBytes region_;    // the memory that the peer has offered

  RemoteBytes lent_;      // the payload to fetch
  MutableBytes landing_;  // where it is to land
  bool fetched_by_copy_ = false;
  bool is_fetched_ = false;                   // it has arrived
  std::uint32_t reads_ = 0;                   // under way
  std::unique_ptr<RdmaBuffer> fetch_buffer_;  // for a landing that can't be registered
  std::vector<SlowAnswer> slow_;
  Staging staging_{kStagingBytes};
  std::unique_ptr<RdmaBuffer> staged_;  // the buffer of staging_
};

class RdmaChannel::Detached final : public DetachedChannel {
 public:
  explicit Detached(Moved moved) : moved_(std::move(moved)) {}
  std::unique_ptr<ByteChannel> attach(asio::io_context& loop) override {
    auto core = std::make_shared<Core>(loop, std::move(moved_));
    core->start();
    return std::make_unique<RdmaChannel>(std::move(core));
  }

 private:
  Moved moved_;
};

RdmaChannel::RdmaChannel(std::shared_ptr<Core> core) : core_(std::move(core)) {}
RdmaChannel::~RdmaChannel() {
  core_->close();
}

std::unique_ptr<RdmaChannel> RdmaChannel::open(asio::io_context& loop, std::unique_ptr<RdmaLink> link) {
  auto core = std::make_shared<Core>(loop, Moved{.link = std::move(link)});
  core->start();
  return std::make_unique<RdmaChannel>(std::move(core));
}

Result<ByteChannel::Read> RdmaChannel::read_some(std::span<const iovec> buffers) {
  return core_->read_some(buffers);
}
Result<std::size_t> RdmaChannel::write_some(std::span<const iovec> buffers) {
  return core_->write_some(buffers);
}
void RdmaChannel::wait_readable(std::shared_ptr<ByteChannelUser> user) {
  core_->wait_readable(std::move(user));
}
void RdmaChannel::wait_writable(std::shared_ptr<ByteChannelUser> user) {
  core_->wait_writable(std::move(user));
}
void RdmaChannel::close() {
  core_->close();
}
std::unique_ptr<DetachedChannel> RdmaChannel::detach() {
  return std::make_unique<Detached>(core_->release());
}
void RdmaChannel::share(const Arena& arena) {
  core_->share(arena);
}
std::optional<PayloadPlace> RdmaChannel::place(const OutgoingFrame& frame) {
  return core_->place(frame);
}
Result<PeerMemory> RdmaChannel::take(const PayloadPlace& place, std::uint64_t payload_bytes) {
  return core_->take(place, payload_bytes);
}
void RdmaChannel::fetch(MutableBytes landing, std::shared_ptr<ByteChannelUser> user) {
  core_->fetch(landing, std::move(user));
}

}  // namespace disttrain::transport
