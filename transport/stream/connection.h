// A connection over a ByteChannel. It sends bytes straight from the caller's memory to the channel, in one call if they
// fit. It receives payloads straight into their landing. Only the few KiB that arrive together with a header are
// copied.
#pragma once

#include <asio/io_context.hpp>
#include <memory>

#include "transport/connection.h"
#include "transport/stream/byte_channel.h"
#include "transport/stream/stream_start.h"

namespace disttrain::transport {

class Stream;

class StreamConnection final : public Connection {
 public:
  // Call it from the thread of `loop`, to which the channel belongs.
  StreamConnection(asio::io_context& loop, std::unique_ptr<ByteChannel> channel, StreamStart start);
  ~StreamConnection() override;

  void start(ConnectionHandler& handler) override;
  void send(const OutgoingFrame& frame) override;
  std::size_t queued_bytes() const override;
  void share(const Arena& arena) override;
  void pause_receiving() override;
  void resume_receiving() override;
  void close() override;
  const char* wire() const override;
  const std::string& peer() const override;
  std::uint64_t bytes_received() const override;
  std::uint64_t bytes_sent() const override;

 private:
  // Operations on the loop share the stream. An operation that ends after the connection's end sees that the stream is
  // closed.
  std::shared_ptr<Stream> stream_;
};

}  // namespace disttrain::transport
