// Accepts the peers of a listener, and reads from each one until its hello is whole. Then passes the peer to the owner
// of the listener. Closes and counts a peer if there are too many peers, if it is too slow, or if it sends malformed
// bytes. tcp, Unix sockets and RDMA share this.
#pragma once

#include <asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "common/os/descriptor.h"
#include "transport/connection.h"
#include "transport/stream/byte_channel.h"
#include "transport/stream/connection.h"

namespace disttrain::transport {

// An accepted peer.
struct AcceptedChannel {
  std::unique_ptr<ByteChannel> channel;  // belongs to the listener's loop; null: the peer isn't wanted
  StreamStart start;                     // without the slot
};

// Where the peers of a listener come from. All calls are made on the listener's loop.
class AcceptSource {
 public:
  enum class Taken { kPeer, kNothing, kTryAgain, kNoDescriptors, kFailed };

  virtual ~AcceptSource() = default;
  // The descriptor that becomes readable when a peer waits. It stays the source's.
  virtual int descriptor() const = 0;
  // Takes the next peer that waits. Doesn't block. kTryAgain: something else was there. kNoDescriptors: the process or
  // the system has no descriptor left.
  virtual Taken take() = 0;
  // Only after kPeer: opens the peer's channel, or turns the peer away.
  virtual AcceptedChannel open(asio::io_context& loop) = 0;
  virtual void turn_away() = 0;
  // Takes the next peer and turns it away, with a descriptor that was put aside for this.
  virtual void turn_away_next() = 0;
};

// The listener's address is `address`.
std::unique_ptr<Listener> accept_streams(asio::io_context& loop, std::unique_ptr<AcceptSource> source,
                                         std::string address, const ListenerLimits& limits,
                                         std::function<void(std::unique_ptr<Arrival>)> on_arrival);

// Makes the channel of a socket that was just accepted. Called on the listener's loop.
using OpenAccepted = std::function<AcceptedChannel(asio::io_context& loop, Descriptor socket)>;

// The same for the peers of `socket`, which listens and doesn't block.
std::unique_ptr<Listener> accept_streams(asio::io_context& loop, Descriptor socket, std::string address,
                                         const ListenerLimits& limits, OpenAccepted open,
                                         std::function<void(std::unique_ptr<Arrival>)> on_arrival);

}  // namespace disttrain::transport
