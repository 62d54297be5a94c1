// Hands out pieces of a buffer, and takes them back in the same order. Payloads stay in such a piece until the device
// has sent them.
#pragma once

#include <cstddef>
#include <optional>

#include "common/fifo.h"

namespace disttrain::transport {

class Staging {
 public:
  explicit Staging(std::size_t bytes) : size_(bytes) {}

  // The offset of a piece in the buffer. Empty: there is no room for it now.
  std::optional<std::size_t> take(std::size_t bytes);
  // Takes back the oldest piece. There must be one.
  void free_oldest();
  std::size_t pieces() const { return pieces_.size(); }

 private:
  struct Piece {
    std::size_t begin = 0;
    std::size_t end = 0;
  };
  const std::size_t size_;
  Fifo<Piece> pieces_;
};

}  // namespace disttrain::transport
