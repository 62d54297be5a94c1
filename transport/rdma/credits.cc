#include "transport/rdma/credits.h"

#include <algorithm>
#include <string>

namespace disttrain::transport {

Status RdmaCredits::returned(std::uint32_t credits) {
  if (credits > peer_ - left_)
    return fail(ErrorCode::kData, "the peer says that it has emptied " + std::to_string(credits) +
                                      " receive slots; only " + std::to_string(peer_ - left_) + " were in use");
  left_ += credits;
  return {};
}

Status RdmaCredits::arrived() {
  if (used_ == own_) return fail(ErrorCode::kData, "the peer sends more messages than this end has receive slots");
  ++used_;
  return {};
}

std::uint16_t RdmaCredits::take_returned() {
  const auto credits = static_cast<std::uint16_t>(std::min<std::uint32_t>(emptied_, 0xffff));
  emptied_ -= credits;
  used_ -= credits;
  return credits;
}

}  // namespace disttrain::transport
