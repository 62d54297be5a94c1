// A connection within one process. It keeps the same contract as a tcp connection, but no kernel is between its two
// ends. The loops of the two ends may run in different threads. Both loops must outlive the connection.
#pragma once

#include <asio/io_context.hpp>
#include <memory>
#include <string>

#include "transport/connection.h"
#include "transport/memory/link.h"

namespace disttrain::transport {

// Options with which tests make the connection slow: it reads sent bytes late and piece by piece. So a test notices if
// a sender changes frozen bytes too early.
struct MemoryOptions {
  unsigned late_turns = 0;      // turns of the receiver's loop between a frame's arrival and the reading of its payload
  std::size_t piece_bytes = 0;  // bytes that are copied per turn; 0 = all at once
};

class MemoryStream;

class MemoryConnection final : public Connection {
 public:
  // `end`: which of the link's two ends this is. Call it from the thread of `loop`.
  MemoryConnection(asio::io_context& loop, std::shared_ptr<MemoryLink> link, int end, std::string peer,
                   const MemoryOptions& options);
  ~MemoryConnection() override;

  void start(ConnectionHandler& handler) override;
  void send(const OutgoingFrame& frame) override;
  std::size_t queued_bytes() const override;
  void pause_receiving() override;
  void resume_receiving() override;
  void close() override;
  const char* wire() const override { return "memory"; }
  const std::string& peer() const override;
  std::uint64_t bytes_received() const override;
  std::uint64_t bytes_sent() const override;

 private:
  // Turns that were posted to the loop share the stream. A turn that runs after the connection's end sees that the
  // stream is closed.
  std::shared_ptr<MemoryStream> stream_;
};

}  // namespace disttrain::transport
