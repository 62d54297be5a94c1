// What waits for a socket that takes no more at the moment. A frame is tried straight from the caller's memory; only
// what the kernel leaves is remembered: the payload by reference if it is frozen, else by copy into a reused buffer.
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
  // Writes the frame or queues what is left of it. On an error the socket is of no more use.
  Status send(int fd, const wire::HeaderBytes& header, const OutgoingFrame& frame);

  // Writes until nothing is queued, the socket is full or so many bytes have gone.
  Status flush(int fd, std::size_t at_most);

  bool empty() const { return queue_.empty(); }
  std::size_t queued_bytes() const { return queued_bytes_; }
  std::uint64_t bytes_sent() const { return bytes_sent_; }

  // Cookies, but for 0, of frozen payloads that are no longer read, in order of sending; the caller clears them.
  std::vector<std::uint64_t>& sent() { return sent_; }

 private:
  struct Item {
    std::vector<std::byte> owned;  // rest of header and control part, and of a copied payload; kept for its memory
    Bytes frozen;
    std::uint64_t cookie = 0;  // goes to sent_; 0: nobody wants it
    std::size_t written = 0;
    std::size_t size() const { return owned.size() + frozen.size(); }
  };

  // What a frame has waited in is used for another one; beyond these bounds its memory goes back.
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
