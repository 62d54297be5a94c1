// Puts answers into the memory that the peer has offered for them. A copy of each answer stays in registered memory
// until the device has sent it.
#pragma once

#include <memory>
#include <optional>

#include "transport/rdma/device.h"
#include "transport/rdma/link.h"
#include "transport/rdma/overtaking.h"
#include "transport/rdma/staging.h"

namespace disttrain::transport {

class RdmaAnswers {
 public:
  // The peer has offered this memory, and no other any more.
  void offered(const RemoteBytes& region) { region_ = region; }

  // Writes the payload to byte `at` of the offered memory. Returns false if the answer must travel in its frame: the
  // peer hasn't offered this memory, there is no room for a copy, or the answer would overtake an earlier one.
  // `is_all_sent`: all earlier frames are completely sent. The link's completions were just taken.
  Result<bool> put(RdmaLink& link, Bytes payload, std::uint64_t at, bool is_all_sent);
  // The oldest of these writes has completed.
  void written() { staging_.free_oldest(); }

  // After the fence.
  void clear() { buffer_.reset(); }

 private:
  static constexpr std::size_t kStagingBytes = 4 * wire::kMaxPayloadBytes;

  Result<bool> write(RdmaLink& link, Bytes payload, std::uint64_t at);

  RemoteBytes region_;
  RdmaOvertaking overtaking_;
  Staging staging_{kStagingBytes};
  std::unique_ptr<RdmaBuffer> buffer_;  // of staging_
};

}  // namespace disttrain::transport
