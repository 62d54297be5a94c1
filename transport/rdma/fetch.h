// Reads a payload from memory of the peer into its landing. If the landing isn't in an arena that this end has shared,
// the device reads into a buffer, and the payload is copied. At most one payload at a time.
#pragma once

#include <memory>

#include "transport/rdma/device.h"
#include "transport/rdma/link.h"
#include "transport/rdma/shared_memory.h"

namespace disttrain::transport {

class RdmaFetch {
 public:
  // The payload is there. fetch() reads it.
  void lent(const RemoteBytes& payload) { lent_ = payload; }
  // Begins to read. The landing must stay valid until has_arrived() or the fence.
  Status begin(RdmaLink& link, RdmaSharedMemory& shared, MutableBytes landing);
  // The read has completed.
  void completed() { state_ = State::kArrived; }

  bool is_under_way() const { return state_ == State::kReading; }
  bool has_arrived() const { return state_ == State::kArrived; }
  // Only if has_arrived(): now the payload is in its landing.
  void finish();

  // After the fence.
  void clear() { buffer_.reset(); }

 private:
  enum class State { kIdle, kReading, kArrived };

  State state_ = State::kIdle;
  RemoteBytes lent_;
  MutableBytes landing_;
  bool is_copied_ = false;  // from the buffer
  std::unique_ptr<RdmaBuffer> buffer_;
};

}  // namespace disttrain::transport
