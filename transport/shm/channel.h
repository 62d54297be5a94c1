// One end of a shm connection as a ByteChannel. Bytes go through rings in shared memory. An eventfd wakes an end that
// waits. A Unix socket carries descriptors; when it closes, the peer has closed the connection or died.
#pragma once

#include <asio/io_context.hpp>
#include <memory>

#include "common/os/descriptor.h"
#include "common/result.h"
#include "transport/stream/byte_channel.h"

namespace disttrain::transport {

// The end that has dialled. `socket` is connected and doesn't block. Sends the descriptors to the peer with the first
// bytes that are written, so that a hello is complete when it arrives.
Result<std::unique_ptr<ByteChannel>> dialled_shm_channel(asio::io_context& loop, Descriptor socket);
// The end that has accepted. Until the peer's descriptors arrive, nothing can be read.
std::unique_ptr<ByteChannel> accepted_shm_channel(asio::io_context& loop, Descriptor socket);

}  // namespace disttrain::transport
