// `auto` never fails for want of RDMA. A host without devices makes no rdma_cm channel at all, and a failed dial by
// RDMA becomes one by TCP. The minute without RDMA begins for the whole process if memory can't be registered. It
// begins for one host in two cases. In the first, a connection breaks because the network doesn't acknowledge packets,
// before it has moved a payload: some networks drop large packets only, so the next dial would succeed and fail again.
// In the second, the host answers a dial by TCP but not the one by RDMA before: it may have no device, and each dial
// would wait for half of its time. In this minute the process refuses RDMA connections of others, too.
#include "transport/rdma/avoidance.h"

namespace disttrain::transport {

void RdmaAvoidance::avoid(const std::string& host, const std::string& why, Instant now) {
  {
    const std::scoped_lock lock(mutex_);
    std::erase_if(failed_, [now](const auto& item) { return item.second.until <= now; });
    if (failed_.contains(host) || failed_.size() >= kMaxKnown) return;
    failed_[host] = {why, now + kAvoidFor};
  }
  if (warn_)
    warn_("new connections " + (host.empty() ? std::string() : "with " + host + " ") +
          "don't use RDMA in the next minute: " + why);
}

std::optional<std::string> RdmaAvoidance::why_not(const std::string& host, Instant now) const {
  const std::scoped_lock lock(mutex_);
  for (const std::string& key : {std::string(), host})
    if (const auto found = failed_.find(key); found != failed_.end() && now < found->second.until)
      return "it failed less than a minute ago: " + found->second.why;
  return std::nullopt;
}

void RdmaAvoidance::tell_once(const std::string& address, const std::string& sentence) {
  {
    const std::scoped_lock lock(mutex_);
    const auto found = told_.find(address);
    if (found == told_.end() && told_.size() >= kMaxKnown) return;
    if (found != told_.end() && found->second == sentence) return;
    told_[address] = sentence;
  }
  if (warn_) warn_(sentence);
}

}  // namespace disttrain::transport
