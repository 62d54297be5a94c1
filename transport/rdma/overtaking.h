// An answer that travels in its frame reaches its place when the peer reads the frame. A later answer for this place
// that was written there at once would then be overwritten by the earlier one. This class finds such answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace disttrain::transport {

class RdmaOvertaking {
 public:
  static constexpr std::size_t kMaxSlow = 64;

  // An answer for these bytes of the peer's memory travels in its frame.
  void note_slow(std::uint64_t at, std::uint64_t bytes);
  // All frames are completely sent. `sent` is the number of messages that were sent until now.
  void note_all_sent(std::uint64_t sent);
  // True if no answer that overlaps these bytes is on its way. `read` is the number of messages that the peer has read.
  bool may_overtake(std::uint64_t at, std::uint64_t bytes, std::uint64_t read);

 private:
  static constexpr std::uint64_t kNotSent = ~std::uint64_t{0};  // a part of the frame isn't sent yet
  struct Slow {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t read_with = kNotSent;  // the number of the message with whose reading the answer is there
  };
  std::vector<Slow> slow_;
};

}  // namespace disttrain::transport
