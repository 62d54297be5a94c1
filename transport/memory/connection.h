// A connection within the process: the same contract as tcp's, without a kernel between the ends, whose loops may be
// those of two threads. Both loops outlive the connection.
#pragma once

#include <asio/io_context.hpp>
#include <memory>
#include <string>

#include "transport/connection.h"
#include "transport/memory/link.h"

namespace disttrain::transport {

// The adversary of the tests: it reads what was sent late and piece by piece, as a slow wire would. Whoever changes
// frozen bytes too early is found out.
struct MemoryOptions {
  unsigned late_turns = 0;      // of the receiver's loop between a frame's arrival and the first look at its payload
  std::size_t piece_bytes = 0;  // copied per turn; 0 = all at once
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
  // Shared with the turns that are posted to the loop, which find it closed when they run after us.
  std::shared_ptr<MemoryStream> stream_;
};

}  // namespace disttrain::transport
