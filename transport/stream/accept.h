// Accepts the peers of a listening socket, and reads from each one until its hello is whole. Then passes the peer to
// the owner of the listener. Closes and counts a peer if there are too many peers, if it is too slow, or if it sends
// malformed bytes. tcp and Unix sockets share this.
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

// Makes the channel of a socket that was just accepted. Called on the listener's loop.
using OpenAccepted = std::function<AcceptedChannel(asio::io_context& loop, Descriptor socket)>;

// Takes over `socket`, which listens and doesn't block. `address` is the listener's address.
std::unique_ptr<Listener> accept_streams(asio::io_context& loop, Descriptor socket, std::string address,
                                         const ListenerLimits& limits, OpenAccepted open,
                                         std::function<void(std::unique_ptr<Arrival>)> on_arrival);

}  // namespace disttrain::transport
