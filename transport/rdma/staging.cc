#include "transport/rdma/staging.h"

namespace disttrain::transport {

std::optional<std::size_t> Staging::take(std::size_t bytes) {
  std::size_t begin = 0;
  if (!pieces_.empty()) {
    const std::size_t oldest = pieces_.front().begin;
    begin = pieces_.back().end;
    if (pieces_.back().begin < oldest) {  // the pieces go around the end of the buffer
      if (bytes > oldest - begin) return std::nullopt;
    } else if (bytes > size_ - begin) {
      // A piece that ended at `oldest` would look as if the buffer were empty, and one that begins there as if it were
      // the oldest: so it must end before.
      if (bytes >= oldest) return std::nullopt;
      begin = 0;
    }
  } else if (bytes > size_) {
    return std::nullopt;
  }
  pieces_.push_back({begin, begin + bytes});
  return begin;
}

void Staging::free_oldest() {
  pieces_.pop_front();
}

}  // namespace disttrain::transport
