// Frames that wait because the channel is full. The queue first tries to write a frame straight from the caller's
// memory, and keeps only the rest. Of a frozen payload it keeps a reference; everything else it copies into a buffer
// that it reuses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/fifo.h"
#include "common/result.h"
#include "transport/connection.h"
#include "transport/stream/byte_channel.h"
#include "transport/wire/frame_header.h"

namespace disttrain::transport {

class SendQueue {
 public:
  // Writes the frame as far as the channel takes it, and queues the rest. `place` has the frame's PayloadPlace, or is
  // empty. `payload` is the frame's payload, or empty if it lies elsewhere. After an error the channel is unusable.
  Status send(ByteChannel& channel, const wire::HeaderBytes& header, Bytes place, const OutgoingFrame& frame,
              Bytes payload);

  // Writes until the queue is empty, the channel is full, or `at_most` bytes are written.
  Status flush(ByteChannel& channel, std::size_t at_most);

  bool empty() const { return queue_.empty(); }
  std::size_t queued_bytes() const { return queued_bytes_; }
  std::uint64_t bytes_sent() const { return bytes_sent_; }

  // The cookies of frozen payloads that are completely written, in the order of sending and without zeros. The caller
  // clears the list.
  std::vector<std::uint64_t>& sent() { return sent_; }

 private:
  struct Item {
    std::vector<std::byte> owned;  // the unsent rest of the header, of the control part and of a copied payload
    Bytes frozen;
    std::uint64_t cookie = 0;  // goes to sent_, unless 0
    std::size_t written = 0;
    std::size_t size() const { return owned.size() + frozen.size(); }
  };

  // The queue keeps the memory of sent items for reuse, but not more than these bounds allow.
  static constexpr std::size_t kMaxKept = 8;
  static constexpr std::size_t kMaxKeptBytes =
      wire::kMaxPayloadBytes + wire::kMaxControlBytes + wire::kPlaceBytes + wire::kHeaderBytes;

  void remember(const wire::HeaderBytes& header, Bytes place, const OutgoingFrame& frame, Bytes payload,
                std::size_t written);
  void advance(std::size_t written);

  Fifo<Item> queue_;
  std::size_t queued_bytes_ = 0;
  std::uint64_t bytes_sent_ = 0;
  std::vector<std::uint64_t> sent_;
};

}  // namespace disttrain::transport
