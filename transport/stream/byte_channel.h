// ByteChannel: a stream of bytes in both directions, such as a tcp socket. A Stream (stream.h) sends and receives
// frames through it. Make all calls on one loop.
#pragma once

#include <sys/uio.h>

#include <asio/io_context.hpp>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>

#include "common/result.h"
#include "transport/connection.h"

namespace disttrain::transport {

// Who waits for a channel. The channel keeps it alive while it waits.
class ByteChannelUser {
 public:
  virtual ~ByteChannelUser() = default;
  virtual void on_readable() = 0;
  virtual void on_writable() = 0;
  // A payload that ByteChannel::fetch() fetches has arrived, or can't arrive any more.
  virtual void on_fetched(const Status&) {}
};

// Memory of the peer, which this process has mapped.
struct PeerMemory {
  MutableBytes bytes;
  std::shared_ptr<const void> keeps = nullptr;  // the bytes stay mapped while it lives, also after the peer has died
  // The payload is in memory of the peer that this process can't map. `bytes` is empty; fetch() fetches the payload.
  bool is_remote = false;
};

class ByteChannel;

// A channel that belongs to no loop. If it is destroyed before attach(), the channel closes.
class DetachedChannel {
 public:
  virtual ~DetachedChannel() = default;
  virtual const char* wire() const = 0;  // Connection::wire()
  // Call it once, from the thread of `loop`.
  virtual std::unique_ptr<ByteChannel> attach(asio::io_context& loop) = 0;
};

class ByteChannel {
 public:
  struct Read {
    std::size_t bytes = 0;   // 0: nothing has arrived
    bool is_closed = false;  // the peer has closed the channel, and all its bytes are read
  };

  virtual ~ByteChannel() = default;

  virtual const char* wire() const = 0;  // Connection::wire()

  // Reads what has arrived into one or two buffers, in order. After an error the channel is unusable.
  virtual Result<Read> read_some(std::span<const iovec> buffers) = 0;
  // Writes the buffers in order, as far as there is room now, and returns the number of bytes.
  virtual Result<std::size_t> write_some(std::span<const iovec> buffers) = 0;

  // Calls the user once, on a later turn of the loop, when there may be bytes to read, or room to write. At most one
  // wait of each kind at a time. No call comes after close().
  virtual void wait_readable(std::shared_ptr<ByteChannelUser> user) = 0;
  virtual void wait_writable(std::shared_ptr<ByteChannelUser> user) = 0;

  virtual void close() = 0;

  // Takes the channel from its loop: from then on only the returned object may be used. No wait may be under way.
  virtual std::unique_ptr<DetachedChannel> detach() = 0;

  // ---- Memory of one end that the other end uses. A channel that carries nothing but bytes keeps the defaults.

  // From now on place() may lend and offer blocks of this arena.
  virtual void share(const Arena&) {}
  // Describes to the peer where the frame's payload lies, or where this call has put it, and which memory the frame
  // offers for answers (OutgoingFrame::answers). Empty: the payload must be written as bytes.
  virtual std::optional<wire::PayloadPlace> place(const OutgoingFrame&) { return std::nullopt; }
  // Takes what the peer's place() has described. Returns the payload of a frame; empty if the frame has none. kData:
  // the peer describes memory that it hasn't shared. kUnavailable: the memory can't be mapped.
  virtual Result<PeerMemory> take(const wire::PayloadPlace&, std::uint64_t) {
    return fail(ErrorCode::kData, "the peer describes memory that it doesn't share");
  }
  // Only after take() has returned is_remote: fetches the payload into `landing`, which must stay valid until close()
  // or user->on_fetched(). That call comes once, on a later turn of the loop, but not after close(). While it is under
  // way, the user must not wait for bytes to read.
  virtual void fetch(MutableBytes, std::shared_ptr<ByteChannelUser>) {}
};

}  // namespace disttrain::transport
