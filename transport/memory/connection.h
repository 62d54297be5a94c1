// A connection within the process: tcp's contract without a kernel between the two ends. Their loops may run in two
// threads. Both loops outlive the connection.
#pragma once

#include <asio/io_context.hpp>
#include <memory>
#include <string>

#include "transport/connection.h"
#include "transport/memory/link.h"

namespace disttrain::transport {

// The tests' adversary: it reads sent bytes late and piece by piece, as a slow wire would. So it exposes a sender that
// changes frozen bytes too early.
struct MemoryOptions {
  unsigned late_turns = 0;      // turns of the receiver's loop from a frame's arrival until its payload is first read
  std::size_t piece_bytes = 0;  // bytes copied per turn; 0 = all at once
};

class MemoryStream;

class MemoryConnection final : public Connection {
 public:
  // `end`: which of the link's ends this is. From the loop's thread.
  MemoryConnection(asio::io_context& loop, std::shared_ptr<MemoryLink> link, int end, std::string peer,
                   const MemoryOptions& options);
  ~MemoryConnection() override;

  void start(ConnectionHandler& handler) override;
  void send(const OutgoingFrame& frame) override;
  std::size_t queued_bytes() const override;
  void pause_receiving() override;
  void resume_receiving() override;
  void close() override;
  const std::string& peer() const override;
  std::uint64_t bytes_received() const override;
  std::uint64_t bytes_sent() const override;

 private:
  // shared with turns posted to the loop: one that runs after the connection's end finds the stream closed
  std::shared_ptr<MemoryStream> stream_;
};

}  // namespace disttrain::transport
