#include "transport/rdma/fetch.h"

#include <cstring>

#include "common/check.h"

namespace disttrain::transport {

Status RdmaFetch::begin(RdmaLink& link, RdmaSharedMemory& shared, MutableBytes landing) {
  DISTTRAIN_CHECK(state_ == State::kIdle);
  DISTTRAIN_CHECK_EQ(landing.size(), lent_.bytes);
  landing_ = landing;
  const Result<const RdmaRegion*> region = shared.own(link, landing);
  if (!region) return tl::unexpected(region.error());
  is_copied_ = *region == nullptr;
  MutableBytes into = landing;
  if (is_copied_) {
    if (Status made = link.devices()->make_once(buffer_, link.domain(), wire::kMaxPayloadBytes); !made) return made;
    into = buffer_->bytes().first(landing.size());
  }
  if (Status posted = link.read(into, is_copied_ ? buffer_->key() : (*region)->local_key(), lent_); !posted)
    return posted;
  state_ = State::kReading;
  return {};
}

void RdmaFetch::finish() {
  if (is_copied_) std::memcpy(landing_.data(), buffer_->bytes().data(), landing_.size());
  state_ = State::kIdle;
}

}  // namespace disttrain::transport
