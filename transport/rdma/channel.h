// One end of an RDMA connection as a ByteChannel. Bytes go by SEND, through slots of registered memory. Payloads that
// the peer lends are fetched by RDMA READ, and answers go by RDMA WRITE into the memory that the peer has offered.
#pragma once

#include <asio/io_context.hpp>
#include <memory>

#include "transport/rdma/link.h"
#include "transport/stream/byte_channel.h"

namespace disttrain::transport {

// `link` has connected, or has accepted a connection. What the channel has sent before close() still arrives, if this
// end has shared no memory and reads none of the peer.
std::unique_ptr<ByteChannel> open_rdma_channel(asio::io_context& loop, std::unique_ptr<RdmaLink> link);

}  // namespace disttrain::transport
