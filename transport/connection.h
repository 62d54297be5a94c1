// The contract of every transport: frames go from one end to the other whole, in order and once, or the connection
// closes. tests/transport/contract_test.cc runs on each transport. Transports know nothing of training.
//
// Threads: a connection belongs to one loop (an asio::io_context run by one thread). All calls come from that thread
// and all handler calls are made on it.
#pragma once

#include <asio/io_context.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/result.h"
#include "common/time.h"
#include "transport/traffic.h"
#include "transport/wire/frame.h"

namespace disttrain::transport {

using Bytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

// How long the caller keeps the payload given to send() unchanged.
enum class Payload {
  // Until on_sent(cookie); with cookie 0, until an answer of the peer shows that the payload has arrived.
  kFrozenUntilSent,
  kCopied,  // only until send() returns: one write is tried straight from it, and the rest is copied
};

struct OutgoingFrame {
  wire::FrameHeader header;  // send() fills in control_bytes, payload_bytes and the checksums
  Bytes control;             // copied
  Bytes payload;             // see `lifetime`
  Payload lifetime = Payload::kFrozenUntilSent;
  std::uint64_t cookie = 0;  // passed to on_sent(); 0: no on_sent(), which saves a turn of the loop
};

// What the owner of a connection does with frames that arrive. All calls are made on the connection's loop, never from
// within send() or close().
class ConnectionHandler {
 public:
  virtual ~ConnectionHandler() = default;

  // Returns where the payload goes: exactly header.payload_bytes long and valid until on_frame or on_closed. Header and
  // control part are verified. An error closes the connection with that error, before any payload is received. Called
  // only for known types with a payload; the payload of an unknown type goes to the transport's own memory.
  virtual Result<MutableBytes> payload_landing(const wire::FrameHeader& header, Bytes control) = 0;

  // A whole frame, its payload verified where it landed. The spans (not the landing) die when the call returns or when
  // it closes or drops the connection, which is allowed. A type that this version doesn't know is passed on too: count
  // it and drop it.
  virtual void on_frame(const wire::FrameHeader& header, Bytes control, Bytes payload) = 0;

  // The transport no longer reads the payload that was sent with this cookie. Called in order of sending. Not called
  // for kCopied frames, for cookie 0, or after on_closed.
  virtual void on_sent(std::uint64_t cookie) = 0;

  // Closed by the peer, by an error or by malformed bytes; exactly once, and the last call. Not called after close().
  virtual void on_closed(const Error& why) = 0;
};

class Connection {
 public:
  // Closes the connection.
  virtual ~Connection() = default;

  // Begins to receive. The handler outlives the connection or its close(). Call once.
  virtual void start(ConnectionHandler& handler) = 0;

  // Queues a frame and tries to write it at once. Never blocks. Frames after a close are dropped. Callers bound the
  // queue: by their credits, or on control connections by watching queued_bytes().
  virtual void send(const OutgoingFrame& frame) = 0;
  virtual std::size_t queued_bytes() const = 0;

  // While paused, the connection receives no more than the current frame, and makes no handler call for it.
  virtual void pause_receiving() = 0;
  virtual void resume_receiving() = 0;

  // After it returns no handler is called and no payload is read. Queued frames without a payload or with kCopied are
  // still sent if the kernel takes them at once.
  virtual void close() = 0;

  // The peer's address for messages: "127.0.0.1:7110".
  virtual const std::string& peer() const = 0;
  virtual std::uint64_t bytes_received() const = 0;
  virtual std::uint64_t bytes_sent() const = 0;
};

// A connection on which only the hello has arrived: a value that may be handed to another loop. Dropping it closes it.
class Arrival {
 public:
  virtual ~Arrival() = default;
  // The hello's header. If header().version isn't kProtocolVersion, only version and type are known and hello() is
  // empty: answer such a peer with Refused and a sentence that names both versions.
  virtual const wire::FrameHeader& header() const = 0;
  virtual Bytes hello() const = 0;  // the hello's control part, verified
  virtual const std::string& peer() const = 0;
  // Turns into a connection that belongs to `loop`. Call once, from that loop's thread.
  virtual std::unique_ptr<Connection> adopt(asio::io_context& loop) = 0;
};

struct ListenerLimits {
  // Accepted connections that are still open, adopted ones too. One more closes the oldest that hasn't said hello, or,
  // if all have, the new one.
  std::uint32_t max_connections = 1024;
  Duration hello_timeout = std::chrono::seconds(2);  // a peer that hasn't said hello by then is closed
};

class Listener {
 public:
  // Stops listening. Adopted connections stay.
  virtual ~Listener() = default;
  virtual const std::string& address() const = 0;  // with the real port if 0 was asked for
  virtual std::uint64_t refused() const = 0;       // connections closed for limits, timeouts or malformed bytes
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual const char* name() const = 0;

  // Gives each peer whose hello arrived to `on_arrival` on `loop`. Errors: kUnavailable when the port is in use,
  // kNoPermission, kConfig when the address can't be parsed or isn't one of this host.
  virtual Result<std::unique_ptr<Listener>> listen(asio::io_context& loop, const std::string& address,
                                                   const ListenerLimits& limits,
                                                   std::function<void(std::unique_ptr<Arrival>)> on_arrival) = 0;

  // Connects and sends the hello; calls `done` once, on `loop`, within `deadline`: with a connection that isn't started
  // yet (the answer to the hello is its first frame), or with an error that tells a refusal from silence (kUnavailable
  // with "connection refused" proves that nobody listens).
  virtual void dial(asio::io_context& loop, const std::string& address, const OutgoingFrame& hello, Duration deadline,
                    std::function<void(Result<std::unique_ptr<Connection>>)> done) = 0;

  // Any thread. Lives as long as the transport.
  virtual const Traffic& traffic() const = 0;
};

// Whether this address could be listened on now; leaves nothing open. An inherited socket ("fd:3") always could.
Status try_to_listen(asio::io_context& loop, Transport& transport, const std::string& address);

// For the error of a failed dial: the host answered, and no process listens at the address. Other errors prove nothing.
bool proves_nobody_listens(const Error& error);

}  // namespace disttrain::transport
