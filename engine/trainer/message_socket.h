// MessageSocket: the worker's end of the socket between a worker and its trainer. A message is a JSON object, and may
// bring raw bytes (its payload). The worker's messages may bring descriptors of shared memory.
//
// On the wire a message is 8 bytes of header, which are the lengths of the JSON text and of the payload as 32-bit
// numbers, lowest byte first, and then the text and the payload. Descriptors travel with the header's first byte
// (SCM_RIGHTS, unix(7)).
//
// The trainer is a user's program and may send anything. Used by one thread.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/os/descriptor.h"
#include "common/result.h"
#include "common/time.h"

namespace disttrain::workerd {

// Enough for the names and shapes of tens of thousands of variables.
inline constexpr std::size_t kMaxTrainerTextBytes = 4 * 1024 * 1024;
// The outputs of a prediction.
inline constexpr std::size_t kMaxTrainerPayloadBytes = 256 * 1024 * 1024;
// The most descriptors of one message. Linux allows 253.
inline constexpr std::size_t kMaxTrainerDescriptors = 16;

struct RawMessage {
  std::string text;                // JSON, not checked yet
  std::vector<std::byte> payload;  // may be empty
};

class MessageSocket {
 public:
  struct Pair {
    Descriptor worker;
    Descriptor trainer;
  };
  // kUnavailable if the system has no more descriptors.
  static Result<Pair> make_pair();

  // `worker` is the worker's end.
  explicit MessageSocket(Descriptor worker) : fd_(std::move(worker)) {}

  int fd() const { return fd_.get(); }

  // Sends a message; the descriptors stay the caller's. Blocks while the trainer doesn't read, at most for `limit`.
  // kUnavailable: the trainer has closed its end. kTemporary: it doesn't read.
  Status send(const nlohmann::json& message, std::span<const int> descriptors, Duration limit);

  // The next message that has arrived, or none. Never blocks. kUnavailable: the trainer has closed its end. kConfig: it
  // has sent bytes that aren't a message. After an error the socket is unusable.
  Result<std::optional<RawMessage>> receive();

 private:
  // Reads once. Returns false if nothing is there to read.
  Result<bool> read_some();
  // Takes the first message out of received_; none if it isn't whole.
  Result<std::optional<RawMessage>> take();

  Descriptor fd_;
  std::vector<std::byte> received_;  // the beginning of the next message
  std::size_t used_ = 0;             // bytes at the front of received_ that are consumed already
  bool at_end_ = false;              // the trainer has closed its end
};

}  // namespace disttrain::workerd
