// A push names the place of its gradients in memory that the worker shares, and the shard sums or applies them from
// there. Parameters go the other way: the shard copies each bucket into the worker's array while the bucket is in its
// cache. So of the four copies of a step over TCP one is left, and sync needs no memory for staged pushes.
//
// The other plan was that workers copy buckets out of the shard's memory, under a lock with a sequence number for each
// bucket. In sync a late worker would find another step's values there, so the shard would have to keep copies. And a
// worker would read from another core's cache, while the shard has the bucket in its own.
//
// For models above 8 MiB, the shard writes answers past the caches (common/stream_copy.h), because the worker reads
// them much later.
#include "transport/shm/channel.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>
#include <cerrno>
#include <cstring>
#include <utility>

#include "common/stream_copy.h"
#include "transport/shm/blocks.h"
#include "transport/shm/message.h"
#include "transport/shm/ring.h"
#include "transport/spin.h"
#include "transport/stream/core_channel.h"
#include "transport/stream/handler_memory.h"
#include "transport/stream/offered_memory.h"
#include "transport/tcp/socket.h"

namespace disttrain::transport {

using wire::PayloadPlace;

namespace {

// If a worker offers more memory than this, its answers don't stay in the caches until it reads them.
constexpr std::size_t kCached = 8 * 1024 * 1024;

// An open link between the two ends.
struct ShmLink {
  ShmLink(RingFile file, bool dialled, Descriptor this_end, Descriptor other_end)
      : rings(std::move(file)),
        wakes_this(std::move(this_end)),
        wakes_peer(std::move(other_end)),
        writer(rings.state(dialled ? 0 : 1), rings.bytes(dialled ? 0 : 1)),
        reader(rings.state(dialled ? 1 : 0), rings.bytes(dialled ? 1 : 0)) {}

  RingFile rings;
  Descriptor wakes_this;  // the eventfd on which this end waits; empty while the loop has it
  Descriptor wakes_peer;
  RingWriter writer;
  RingReader reader;
  PeerBlocks peer_blocks;
};

class ShmCore : public std::enable_shared_from_this<ShmCore> {
 public:
  static constexpr const char* kWire = "shm";

  ShmCore(asio::io_context& loop, Descriptor socket) : loop_(loop), socket_(loop, socket.release()), wake_(loop) {}

  // Begins to wait for the peer. Call it once. The link is empty if the peer will send it.
  Status start(std::optional<ShmLink> link, bool must_open) {
    must_open_ = must_open;
    watch_socket();
    return link ? use(std::move(*link)) : Status();
  }

  Result<ByteChannel::Read> read_some(std::span<const iovec> buffers) {
    if (!link_) take_messages();
    if (failure_) return tl::unexpected(*failure_);
    if (!link_) return ByteChannel::Read{0, is_closed_by_peer_};
    // Looks for the close first: what the peer wrote before it closed is then in the ring.
    const bool was_closed = is_closed_by_peer_;
    const Result<std::size_t> read = link_->reader.read(buffers);
    if (!read) return tl::unexpected(read.error());
    if (*read > 0 && link_->reader.must_wake_writer()) wake_peer();
    return ByteChannel::Read{*read, was_closed && *read == 0};
  }

  Result<std::size_t> write_some(std::span<const iovec> buffers) {
    if (failure_) return tl::unexpected(*failure_);
    if (is_closed_by_peer_) return fail(ErrorCode::kUnavailable, "the peer closed the connection");
    if (!link_) return std::size_t{0};
    const Result<std::size_t> written = link_->writer.write(buffers);
    if (!written) return written;
    if (std::exchange(must_open_, false)) {
      const std::array<int, 3> descriptors = {link_->rings.fd(), wake_.native_handle(), link_->wakes_peer.get()};
      const Result<bool> sent = send_message(socket_.native_handle(), ShmMessage(), descriptors);
      if (!sent.has_value()) return tl::unexpected(sent.error());
      if (!*sent) return fail(ErrorCode::kUnavailable, "too many descriptors are on their way between processes");
    }
    if (*written > 0 && link_->writer.must_wake_reader()) wake_peer();
    return written;
  }

  void wait_readable(std::shared_ptr<ByteChannelUser> user) {
    reading_ = std::move(user);
    if (link_ ? !link_->reader.sleep() || is_closed_by_peer_ || failure_ : is_closed_by_peer_ || failure_.has_value())
      post_turn();
  }

  void wait_writable(std::shared_ptr<ByteChannelUser> user) {
    writing_ = std::move(user);
    if (is_closed_by_peer_ || failure_ || (link_ && !link_->writer.sleep())) post_turn();
  }

  void close() {
    is_closed_ = true;
    reading_.reset();
    writing_.reset();
    asio::error_code ignored;
    socket_.close(ignored);
    wake_.close(ignored);
    link_.reset();
    region_ = {};
    spin_.reset();
  }

  // Takes the socket and the link out of the core. Only operations that end are left in it.
  std::unique_ptr<DetachedChannel> detach();

  void share(const Arena& arena) { arena_ = &arena; }

  std::optional<PayloadPlace> place(const OutgoingFrame& frame) {
    if (!link_ || is_closed_by_peer_) return std::nullopt;
    PayloadPlace place;
    bool is_used = false;
    if (offered_.must_offer(frame)) {
      std::optional<Arena::Place> at = arena_ != nullptr ? arena_->find(frame.answers) : std::nullopt;
      if (at && !blocks_.share(socket_.native_handle(), *at)) at.reset();
      if (Status offered = offered_.offer(frame.answers, at, place); !offered) {
        failure_ = offered.error();
        return std::nullopt;
      }
      is_used = at.has_value();
    }
    if (!frame.payload.empty() && arena_ != nullptr && frame.lifetime == Payload::kFrozenUntilAnswered) {
      const std::optional<Arena::Place> at = arena_->find(frame.payload);
      if (at && blocks_.share(socket_.native_handle(), *at)) {
        place.kind = PayloadPlace::Kind::kLent;
        place.block = at->block;
        place.offset = at->offset;
        is_used = true;
      }
    } else if (!frame.payload.empty() && frame.answer_at &&
               fits(region_.bytes, *frame.answer_at, frame.payload.size())) {
      const MutableBytes to = region_.bytes.subspan(*frame.answer_at, frame.payload.size());
      if (region_.bytes.size() > kCached)
        stream_copy(frame.payload, to);
      else
        std::memcpy(to.data(), frame.payload.data(), to.size());
      place.kind = PayloadPlace::Kind::kPlaced;
      place.offset = *frame.answer_at;
      is_used = true;
    }
    return is_used ? std::optional(place) : std::nullopt;
  }

  Result<PeerMemory> take(const PayloadPlace& place, std::uint64_t payload_bytes) {
    if (place.offered_bytes > 0) {
      Result<PeerMemory> region = bytes_of_peer(place.offered_block, place.offered_offset, place.offered_bytes, true);
      if (!region) return region;
      region_ = std::move(*region);
    }
    if (place.kind == PayloadPlace::Kind::kInFrame) return PeerMemory();
    if (place.kind == PayloadPlace::Kind::kLent && payload_bytes == 0)
      return fail(ErrorCode::kData, "the peer lends a payload of 0 bytes");
    if (place.kind == PayloadPlace::Kind::kLent) return bytes_of_peer(place.block, place.offset, payload_bytes, false);
    return offered_.placed(place, payload_bytes);
  }

  // take() never returns remote memory.
  void fetch(MutableBytes, std::shared_ptr<ByteChannelUser>) {}

 private:
  static bool fits(MutableBytes memory, std::uint64_t offset, std::uint64_t bytes) {
    return offset <= memory.size() && bytes <= memory.size() - offset;
  }

  Status use(ShmLink link) {
    for (const Descriptor* one : {&link.wakes_this, &link.wakes_peer})  // the peer has made them
      ::fcntl(one->get(), F_SETFL, ::fcntl(one->get(), F_GETFL) | O_NONBLOCK);
    asio::error_code error;
    wake_.assign(link.wakes_this.get(), error);
    if (error) return fail(ErrorCode::kData, "can't wait for the peer's descriptor: " + error.message());
    link.wakes_this.release();
    link_.emplace(std::move(link));
    watch_wake();
    return {};
  }

  Result<PeerMemory> bytes_of_peer(std::uint64_t block, std::uint64_t offset, std::uint64_t bytes, bool writable) {
    if (!link_) return fail(ErrorCode::kData, "the connection isn't open");
    if (!link_->peer_blocks.has(block)) take_messages();  // the peer has sent the block before it named it
    if (failure_) return tl::unexpected(*failure_);
    return link_->peer_blocks.bytes(block, offset, bytes, writable);
  }

  // Takes what has arrived on the socket.
  void take_messages() {
    while (!is_closed_by_peer_ && !failure_) {
      Result<std::optional<ReceivedMessage>> received = receive_message(socket_.native_handle());
      if (!received.has_value()) {
        if (received.error().code == ErrorCode::kUnavailable)
          is_closed_by_peer_ = true;
        else
          failure_ = received.error();
        return;
      }
      if (!*received) return;
      if (Status taken = take_message(std::move(**received)); !taken) failure_ = taken.error();
    }
  }

  Status take_message(ReceivedMessage received) {
    const bool opens = received.message.kind == ShmMessage::Kind::kOpen;
    if (opens == link_.has_value())
      return fail(ErrorCode::kData, "messages came over a Unix socket in the wrong order");
    if (!opens) return link_->peer_blocks.add(received.message.block, std::move(received.descriptors[0]));
    Result<RingFile> rings = RingFile::open(std::move(received.descriptors[0]));
    if (!rings) return tl::unexpected(rings.error());
    if (!may_be_eventfd(received.descriptors[1]) || !may_be_eventfd(received.descriptors[2]))
      return fail(ErrorCode::kData, "the peer's descriptor for wake-ups isn't an eventfd");
    return use(
        ShmLink(std::move(*rings), false, std::move(received.descriptors[2]), std::move(received.descriptors[1])));
  }

  // Whether it belongs to no file, socket or pipe. To write to a closed socket ends a program that keeps SIGPIPE.
  static bool may_be_eventfd(const Descriptor& one) {
    struct stat status {};
    return ::fstat(one.get(), &status) == 0 && (status.st_mode & S_IFMT) == 0;
  }

  void wake_peer() {
    const std::uint64_t one = 1;
    // It fails only if the peer has sent another kind of descriptor. A hostile peer could also let this call block,
    // because both processes share the descriptor's flags. SECURITY.md names this: such a peer has this process's user.
    static_cast<void>(!::write(link_->wakes_peer.get(), &one, sizeof one));
  }

  void watch_socket() {
    socket_.async_wait(asio::posix::stream_descriptor::wait_read,
                       PlacedHandler(socket_memory_, [self = shared_from_this()](const asio::error_code& error) {
                         if (error || self->is_closed_) return;
                         self->take_messages();
                         if (!self->is_closed_by_peer_ && !self->failure_) self->watch_socket();
                         self->turn();
                       }));
  }

  void watch_wake() {
    wake_.async_wait(
        asio::posix::stream_descriptor::wait_read,
        PlacedHandler(wake_memory_, [self = shared_from_this()](const asio::error_code& error) {
          if (error || self->is_closed_) return;
          std::uint64_t count = 0;
          const ssize_t got = ::read(self->wake_.native_handle(), &count, sizeof count);
          // Otherwise it would be readable again and again, as a socket is at its end.
          if (got != sizeof count && (got >= 0 || (errno != EAGAIN && errno != EINTR)))
            self->failure_ = Error{ErrorCode::kData, "the peer's descriptor for wake-ups isn't an eventfd"};
          else
            self->watch_wake();
          self->turn();
        }));
  }

  void post_turn() {
    if (std::exchange(is_turn_posted_, true)) return;
    asio::post(loop_, PlacedHandler(turn_memory_, [self = shared_from_this()] {
                 self->is_turn_posted_ = false;
                 if (!self->is_closed_) self->turn();
               }));
  }

  // Calls those who wait, if they can go on. Otherwise they sleep again: the peer may have woken this end for bytes
  // that were read already, and then nobody would wake it a second time.
  void turn() {
    const bool is_over = is_closed_by_peer_ || failure_;
    if (writing_ && (is_over || (link_ && !link_->writer.sleep()))) std::exchange(writing_, nullptr)->on_writable();
    if (reading_ && !is_closed_ && (is_over || (link_ && !link_->reader.sleep())))
      std::exchange(reading_, nullptr)->on_readable();
  }

  asio::io_context& loop_;
  std::optional<SpinReason> spin_{std::in_place};
  asio::posix::stream_descriptor socket_;
  asio::posix::stream_descriptor wake_;
  std::optional<ShmLink> link_;
  std::shared_ptr<ByteChannelUser> reading_;
  std::shared_ptr<ByteChannelUser> writing_;
  std::optional<Error> failure_;
  bool is_closed_ = false;
  bool is_closed_by_peer_ = false;
  bool must_open_ = false;  // the descriptors must be sent to the peer
  bool is_turn_posted_ = false;
  HandlerMemory socket_memory_;
  HandlerMemory wake_memory_;
  HandlerMemory turn_memory_;

  const Arena* arena_ = nullptr;  // of this process; null: nothing is shared
  SharedBlocks blocks_;
  OfferedMemory offered_;
  PeerMemory region_;  // the memory that the peer has offered
};

class ShmDetached final : public DetachedChannel {
 public:
  ShmDetached(Descriptor socket, std::optional<ShmLink> link) : socket_(std::move(socket)), link_(std::move(link)) {}
  const char* wire() const override { return ShmCore::kWire; }
  std::unique_ptr<ByteChannel> attach(asio::io_context& loop) override {
    auto core = std::make_shared<ShmCore>(loop, std::move(socket_));
    // An error of the loop shows at the first read.
    static_cast<void>(core->start(std::move(link_), false));
    return std::make_unique<CoreChannel<ShmCore>>(std::move(core));
  }

 private:
  Descriptor socket_;
  std::optional<ShmLink> link_;
};

std::unique_ptr<DetachedChannel> ShmCore::detach() {
  Descriptor socket(socket_.release());
  if (link_) link_->wakes_this = Descriptor(wake_.release());
  std::optional<ShmLink> link = std::move(link_);
  close();
  return std::make_unique<ShmDetached>(std::move(socket), std::move(link));
}

Descriptor make_eventfd() {
  return Descriptor(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
}

}  // namespace

Result<std::unique_ptr<ByteChannel>> dialled_shm_channel(asio::io_context& loop, Descriptor socket) {
  Result<RingFile> rings = RingFile::make();
  if (!rings) return tl::unexpected(rings.error());
  Descriptor wakes_this = make_eventfd();
  Descriptor wakes_peer = make_eventfd();
  if (!wakes_this || !wakes_peer) return fail(ErrorCode::kUnavailable, "can't make an eventfd: " + system_words(errno));
  auto core = std::make_shared<ShmCore>(loop, std::move(socket));
  ShmLink link(std::move(*rings), true, std::move(wakes_this), std::move(wakes_peer));
  if (Status started = core->start(std::move(link), true); !started) return tl::unexpected(started.error());
  return std::make_unique<CoreChannel<ShmCore>>(std::move(core));
}

std::unique_ptr<ByteChannel> accepted_shm_channel(asio::io_context& loop, Descriptor socket) {
  return ShmDetached(std::move(socket), std::nullopt).attach(loop);
}

}  // namespace disttrain::transport
