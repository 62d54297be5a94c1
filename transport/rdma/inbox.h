// The messages that have arrived and aren't read yet, in order, each with the receive slot that it is in.
//
// A slot isn't free at once when its bytes are read: the reader may keep a part of them in its own memory, and bring it
// to its place later. The reader has done so when it comes back for more. Only then the peer may learn that the message
// is read, because it may then write another answer to the same place (answers.h).
#pragma once

#include <sys/uio.h>

#include <cstdint>
#include <optional>
#include <span>

#include "common/fifo.h"
#include "transport/connection.h"

namespace disttrain::transport {

class RdmaInbox {
 public:
  // `body` stays valid until the slot is free. A message without bytes for the reader is read when those before it are.
  void push(std::uint32_t slot, Bytes body);
  // True if there are no bytes to read.
  bool empty() const { return bytes_ == 0; }
  // Reads into the buffers, in order. Returns the number of bytes.
  std::size_t read(std::span<const iovec> buffers);
  // A slot that earlier calls of read() have emptied; each is returned once. Call it when the reader has come back.
  std::optional<std::uint32_t> take_free();

 private:
  struct Message {
    std::uint32_t slot = 0;
    Bytes left;
  };
  Fifo<Message> messages_;
  std::size_t bytes_ = 0;  // of all of them
  std::size_t read_ = 0;   // so many of the oldest messages are read
};

}  // namespace disttrain::transport
