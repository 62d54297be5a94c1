// The contract of every transport: each frame arrives at the other end whole, in order and once, or the connection
// closes. tests/transport/contract_test.cc checks the contract for each transport. Transports know nothing of training.
//
// A connection belongs to one loop (an asio::io_context that one thread runs). Only that thread may call the
// connection, and the connection calls its handler on that thread.
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

#include "common/os/arena.h"
#include "common/result.h"
#include "common/time.h"
#include "transport/peer_limit.h"
#include "transport/traffic.h"
#include "transport/wire/frame.h"

namespace disttrain::transport {

using Bytes = std::span<const std::byte>;
using MutableBytes = std::span<std::byte>;

// How long the caller must keep the payload of send() unchanged.
enum class Payload {
  // Until on_sent(cookie). If the cookie is 0: until an answer of the peer shows that the payload has arrived.
  kFrozenUntilSent,
  // Until an answer of the peer shows that it doesn't use the payload any more. If both ends share memory, or are
  // joined by RDMA, the peer may read the payload in place. on_sent(cookie) comes when the transport itself doesn't
  // need it any more.
  kFrozenUntilAnswered,
  // Only until send() returns. send() tries one write straight from the payload, and copies the rest.
  kCopied,
};

struct OutgoingFrame {
  wire::FrameHeader header;  // send() fills in control_bytes, payload_bytes and the checksums
  Bytes control;             // copied
  Bytes payload;             // see `lifetime`
  Payload lifetime = Payload::kFrozenUntilSent;
  std::uint64_t cookie = 0;  // the argument of on_sent(); if it is 0, on_sent() isn't called, which saves a turn

  // If both ends share memory, or are joined by RDMA, the peer may write the payloads of its answers into the memory
  // that the newest frame has offered here, before it sends them. So the caller must not use this memory while an
  // answer is due. Empty: the offer of an earlier frame stays.
  MutableBytes answers = {};
  // For an answer: the byte of the peer's offered memory at which the payload belongs. The peer's payload_landing()
  // must return the same memory for it.
  std::optional<std::uint64_t> answer_at = std::nullopt;
};

// A payload in memory of the peer, which both ends have mapped.
struct LentPayload {
  Bytes bytes;
  std::shared_ptr<const void> keeps;  // the bytes stay mapped while it lives, also after the connection's end
};

// The owner of a connection, which handles the frames that arrive. The connection calls it on the connection's loop,
// and never during a call of send() or close().
class ConnectionHandler {
 public:
  virtual ~ConnectionHandler() = default;

  // Returns the memory for the payload of a frame whose header and control part have arrived and are verified. The
  // memory must be exactly header.payload_bytes long, and valid until on_frame or on_closed. If this returns an error,
  // the connection closes with that error before it receives any payload. It is called only for frames of a known type
  // that have a payload; the transport receives the payload of an unknown type into memory of its own.
  virtual Result<MutableBytes> payload_landing(const wire::FrameHeader& header, Bytes control) = 0;

  // Comes instead of payload_landing() for a payload that the sender keeps frozen until it is answered, and that this
  // process can read in place. Returns the payload for on_frame(). By default that is a copy, in payload_landing(). A
  // handler that returns lent.bytes must read them before it answers the frame. It may keep `lent.keeps`.
  virtual Result<Bytes> payload_lent(const wire::FrameHeader& header, Bytes control, const LentPayload& lent);

  // A whole frame has arrived, and its payload is verified. `control` and `payload` are valid until this call returns.
  // The call may close or destroy the connection; from then on `control` and `payload` are invalid. The memory from
  // payload_landing() belongs to the handler again. Frames of a type that this version doesn't know come here too:
  // count and drop them.
  virtual void on_frame(const wire::FrameHeader& header, Bytes control, Bytes payload) = 0;

  // The transport no longer reads the payload that was sent with this cookie. These calls come in the order of sending.
  // None comes for kCopied frames, for cookie 0, or after on_closed.
  virtual void on_sent(std::uint64_t cookie) = 0;

  // The connection is closed: by the peer, or because of an error or malformed bytes. This call comes exactly once, as
  // the last one. It doesn't come after close().
  virtual void on_closed(const Error& why) = 0;
};

class Connection {
 public:
  // Closes the connection.
  virtual ~Connection() = default;

  // Begins to receive. The handler must live until the connection is closed or destroyed. Call it once.
  virtual void start(ConnectionHandler& handler) = 0;

  // Queues a frame and tries to write it at once. Never blocks. Drops the frame if the connection is closed. The caller
  // must limit how much is queued. Channels limit it by credits; on a control connection the caller checks
  // queued_bytes() before it sends.
  virtual void send(const OutgoingFrame& frame) = 0;
  virtual std::size_t queued_bytes() const = 0;

  // Lets the peer read payloads and write answers in blocks of this arena. Between processes of one host the arena must
  // be shared. With RDMA any arena will do, and landings in it need no copy. The arena must outlive the connection.
  virtual void share(const Arena&) {}

  // While receiving is paused, the connection receives at most the rest of the current frame, and doesn't pass this
  // frame to the handler.
  virtual void pause_receiving() = 0;
  virtual void resume_receiving() = 0;

  // Closes the connection. After close() has returned, the connection calls no handler and reads no payload. Queued
  // frames that have no payload or are kCopied are still sent, as far as the kernel takes them at once. By RDMA they
  // may be lost, if this end has shared memory or reads the peer's: to end all access to memory comes first.
  virtual void close() = 0;

  // How the bytes travel: "tcp", "shm", "rdma" or "memory".
  virtual const char* wire() const = 0;
  // The peer's address for logs and errors: "127.0.0.1:7110".
  virtual const std::string& peer() const = 0;
  virtual std::uint64_t bytes_received() const = 0;
  virtual std::uint64_t bytes_sent() const = 0;
};

// An accepted connection on which only the hello has arrived. It belongs to no loop yet, so it may be handed to another
// thread. If it is destroyed before adopt(), the connection closes.
class Arrival {
 public:
  virtual ~Arrival() = default;
  // The hello's header. If header().version isn't kProtocolVersion, only version and type are valid, and hello() is
  // empty. Answer such a peer with Refused and a sentence that names both versions.
  virtual const wire::FrameHeader& header() const = 0;
  virtual Bytes hello() const = 0;       // the hello's control part, verified
  virtual const char* wire() const = 0;  // Connection::wire()
  virtual const std::string& peer() const = 0;
  // Turns the arrival into a connection that belongs to `loop`. Call it once, from that loop's thread.
  virtual std::unique_ptr<Connection> adopt(asio::io_context& loop) = 0;
};

struct ListenerLimits {
  // How many accepted connections may be open at once, adopted ones too. When one more arrives, the listener closes the
  // oldest connection whose peer hasn't said hello. If all peers have said hello, it closes the new one.
  std::uint32_t max_connections = 1024;
  Duration hello_timeout = std::chrono::seconds(2);  // the listener closes a peer that hasn't said hello in this time
  // Listeners that have the same count share the limit. Null: the listener counts its own connections.
  std::shared_ptr<PeerCount> count = nullptr;
};

class Listener {
 public:
  // Stops listening. Adopted connections stay open.
  virtual ~Listener() = default;
  virtual const std::string& address() const = 0;  // the address with the real port, also if port 0 was asked for
  virtual std::uint64_t refused() const = 0;       // number of connections closed for limits, timeouts, malformed bytes
};

class Transport {
 public:
  virtual ~Transport() = default;
  virtual const char* name() const = 0;

  // Listens at `address`. Passes each peer whose hello has arrived to `on_arrival`, on `loop`. Errors: kUnavailable if
  // the port is in use, kNoPermission if this process may not use the port, kConfig if the address can't be parsed or
  // isn't one of this host.
  virtual Result<std::unique_ptr<Listener>> listen(asio::io_context& loop, const std::string& address,
                                                   const ListenerLimits& limits,
                                                   std::function<void(std::unique_ptr<Arrival>)> on_arrival) = 0;

  // Connects and sends the hello. Calls `done` once, on `loop`, within `deadline`. On success `done` gets a connection
  // that isn't started yet; the first frame on it will be the answer to the hello. Otherwise `done` gets an error.
  // proves_nobody_listens() tells whether the error means that no process listens there.
  virtual void dial(asio::io_context& loop, const std::string& address, const OutgoingFrame& hello, Duration deadline,
                    std::function<void(Result<std::unique_ptr<Connection>>)> done) = 0;

  // The transport for connections for which a step waits. Between processes of one host it may be faster. A listener of
  // this transport also hears those who dial with the other one. It lives as long as this transport.
  virtual Transport& for_steps() { return *this; }

  // Any thread may call this. The result is valid as long as the transport.
  virtual const Traffic& traffic() const = 0;
};

// Checks whether a process could listen at this address now, and closes the listener again. For an inherited socket
// ("fd:3") the answer is always yes.
Status try_to_listen(asio::io_context& loop, Transport& transport, const std::string& address);

// Returns true if the error of a failed dial proves that no process listens at the address: the host answered and
// refused the connection. After any other error a process may still listen there.
bool proves_nobody_listens(const Error& error);

}  // namespace disttrain::transport
