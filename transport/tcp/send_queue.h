// Frames that wait for a full socket. A frame is first written straight from the caller's memory. Only the rest is
// kept: the payload by reference if it is frozen, else by copy into a reused buffer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/fifo.h"
#include "common/result.h"
#include "transport/connection.h"
#include "transport/wire/frame_header.h"

namespace disttrain::transport {

class SendQueue {
 public:
  // Writes the frame or queues the rest of it. After an error the socket is unusable.
  Status send(int fd, const wire::HeaderBytes& header, const OutgoingFrame& frame);

  // Writes until the queue is empty, the socket is full or `at_most` bytes have gone.
  Status flush(int fd, std::size_t at_most);

  bool empty() const { return queue_.empty(); }
  std::size_t queued_bytes() const { return queued_bytes_; }
  std::uint64_t bytes_sent() const { return bytes_sent_; }

  // Cookies of frozen payloads that are no longer read, without cookies 0, in order of sending. The caller clears the
  // list.
  std::vector<std::uint64_t>& sent() { return sent_; }

 private:
  struct Item {
    std::vector<std::byte> owned;  // rest of header and control part, and of a copied payload; memory is reused
    Bytes frozen;
    std::uint64_t cookie = 0;  // goes to sent_, unless 0
    std::size_t written = 0;
    std::size_t size() const { return owned.size() + frozen.size(); }
  };

  // Sent items are reused; memory beyond these bounds is freed.
  static constexpr std::size_t kMaxKept = 8;
  static constexpr std::size_t kMaxKeptBytes = wire::kMaxPayloadBytes + wire::kMaxControlBytes + wire::kHeaderBytes;

  void remember(const wire::HeaderBytes& header, const OutgoingFrame& frame, std::size_t written);
  void advance(std::size_t written);

  Fifo<Item> queue_;
  std::size_t queued_bytes_ = 0;
  std::uint64_t bytes_sent_ = 0;
  std::vector<std::uint64_t> sent_;
};

}  // namespace disttrain::transport
