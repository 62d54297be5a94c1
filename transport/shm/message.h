// Messages on the Unix socket of a shm connection. They carry file descriptors. The socket has the type SOCK_SEQPACKET,
// so it keeps messages apart. It carries no frames: a frame is in a ring.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/os/descriptor.h"
#include "common/result.h"

namespace disttrain::transport {

struct ShmMessage {
  // kOpen: the first message, from the end that has dialled: the rings' file, the eventfd that wakes this end, and the
  // one that wakes the other end. kBlock: the file of a block of the sender's arena.
  enum class Kind : std::uint64_t { kOpen = 1, kBlock = 2 };
  std::uint64_t magic = 0x314d485354544944;  // "DITTSHM1" in memory
  Kind kind = Kind::kOpen;
  std::uint64_t block = 0;  // kBlock: its number
};

// Sends a message with at most 3 descriptors. Returns false if the socket is full. kUnavailable: the connection is
// closed or broken.
Result<bool> send_message(int socket, const ShmMessage& message, std::span<const int> descriptors);

struct ReceivedMessage {
  ShmMessage message;
  std::vector<Descriptor> descriptors;
};
// The next message, if one is there. kUnavailable: the peer has closed the socket. kData: it isn't a message.
Result<std::optional<ReceivedMessage>> receive_message(int socket);

}  // namespace disttrain::transport
