// The contract of every transport: frames go from one end to the other, whole, in order, once, or the connection
// closes. tests/transport/contract_test.cc runs on each of them. Transports know nothing of training.
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

// How long the payload given to send() stays as it is.
enum class Payload {
  // The caller doesn't change it before on_sent(cookie); with cookie 0, before the peer's answer shows that it has
  // come.
  kFrozenUntilSent,
  kCopied,  // free when send() returns: one write is tried straight from it, what the kernel didn't take is copied
};

struct OutgoingFrame {
  wire::FrameHeader header;  // control_bytes, payload_bytes and checksums are filled in by send()
  Bytes control;             // copied
  Bytes payload;             // see `lifetime`
  Payload lifetime = Payload::kFrozenUntilSent;
  std::uint64_t cookie = 0;  // comes back in on_sent; 0: no on_sent, which saves a turn of the loop
};

// What the owner of a connection does with what arrives. All calls are made on the connection's loop, never from within
// send() or close().
class ConnectionHandler {
 public:
  virtual ~ConnectionHandler() = default;

  // Where a payload goes: exactly header.payload_bytes long and valid until on_frame or on_closed. The header and the
  // control part are verified. An error closes the connection with it; nothing has been received then. Asked only for
  // frames with a payload and of a known type; the payload of an unknown one lands in the transport's own memory.
  virtual Result<MutableBytes> payload_landing(const wire::FrameHeader& header, Bytes control) = 0;

  // A whole frame, its payload verified where it landed. The spans die when the call returns (the landing doesn't), or
  // when it closes or drops the connection, which it may. A type that this version doesn't know is passed on as it
  // came: count it and drop it.
  virtual void on_frame(const wire::FrameHeader& header, Bytes control, Bytes payload) = 0;

  // The transport no longer reads the payload that was sent with this cookie. In order of sending. Not called for
  // kCopied frames, for cookie 0, nor after on_closed.
  virtual void on_sent(std::uint64_t cookie) = 0;

  // Closed by the peer, by an error or because bytes made no sense; exactly once, and the last call. Not called after
  // close().
  virtual void on_closed(const Error& why) = 0;
};

class Connection {
 public:
  // Closes.
  virtual ~Connection() = default;

  // Begins to receive. The handler outlives the connection or its close(). Call once.
  virtual void start(ConnectionHandler& handler) = 0;

  // Queues a frame; tries to write at once. Never blocks. Frames after a close are dropped. The bytes queued are
  // bounded by the callers' credits and by queued_bytes(), which control connections watch.
  virtual void send(const OutgoingFrame& frame) = 0;
  virtual std::size_t queued_bytes() const = 0;

  // While paused nothing more is taken from the peer than the frame under way, and no handler call is made for it.
  virtual void pause_receiving() = 0;
  virtual void resume_receiving() = 0;

  // After it returns no handler call is made and no payload is read. Frames queued with kCopied or no payload are still
  // sent where the kernel takes them at once.
  virtual void close() = 0;

  // For messages: "127.0.0.1:7110".
  virtual const std::string& peer() const = 0;
  virtual std::uint64_t bytes_received() const = 0;
  virtual std::uint64_t bytes_sent() const = 0;
};

// A connection that has said hello and nothing else: a value that may be handed to another loop. Dropping it closes it.
class Arrival {
 public:
  virtual ~Arrival() = default;
  // Of the hello. If header().version isn't kProtocolVersion, only version and type are known and hello() is empty:
  // such a peer is answered Refused, with a sentence that names both versions.
  virtual const wire::FrameHeader& header() const = 0;
  virtual Bytes hello() const = 0;  // its control part, verified
  virtual const std::string& peer() const = 0;
  // Turns into a connection that belongs to `loop`. Call once, from that loop's thread.
  virtual std::unique_ptr<Connection> adopt(asio::io_context& loop) = 0;
};

struct ListenerLimits {
  // That haven't been adopted and closed yet. For one more the oldest that hasn't said hello is closed, or else the new
  // one.
  std::uint32_t max_connections = 1024;
  Duration hello_timeout = std::chrono::seconds(2);  // a peer that hasn't said hello by then is closed
};

class Listener {
 public:
  // Stops listening. Adopted connections stay.
  virtual ~Listener() = default;
  virtual const std::string& address() const = 0;  // the real port where 0 was asked for
  virtual std::uint64_t refused() const = 0;       // connections closed for limits, timeouts or nonsense
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual const char* name() const = 0;

  // Each peer whose hello arrived is given to `on_arrival` on `loop`. Errors: kUnavailable when the port is in use,
  // kNoPermission, kConfig when the address can't be read or isn't this host's.
  virtual Result<std::unique_ptr<Listener>> listen(asio::io_context& loop, const std::string& address,
                                                   const ListenerLimits& limits,
                                                   std::function<void(std::unique_ptr<Arrival>)> on_arrival) = 0;

  // Connects and sends the hello; `done` is called once, on `loop`, within `deadline`: with a connection that is not
  // yet started (the answer to the hello is its first frame), or with an error that says whether the peer refused
  // (kUnavailable and "connection refused" prove that nobody listens) or didn't answer.
  virtual void dial(asio::io_context& loop, const std::string& address, const OutgoingFrame& hello, Duration deadline,
                    std::function<void(Result<std::unique_ptr<Connection>>)> done) = 0;

  // Any thread. Lives as long as the transport.
  virtual const Traffic& traffic() const = 0;
};

// Whether this address could be listened on now; nothing stays open. A socket that was passed ("fd:3") always could.
Status try_to_listen(asio::io_context& loop, Transport& transport, const std::string& address);

// Of a failed dial: no process listens at that address, on a host that answered. Anything else proves nothing.
bool proves_nobody_listens(const Error& error);

}  // namespace disttrain::transport
