#include "chiefd/core/links.h"

#include <algorithm>

#include "common/format_duration.h"

namespace disttrain::chiefd {

void Links::accuse(Instant now, const Link& link, Duration lasts, const std::string& reason) {
  Outage& outage = broken_.try_emplace(link, Outage{now - lasts, now}).first->second;
  outage.since = std::min(outage.since, now - lasts);
  outage.told = now;
  if (!reason.empty()) outage.reason = reason;
}

void Links::forget(TaskId task) {
  std::erase_if(broken_, [task](const auto& entry) { return entry.first.from == task || entry.first.to == task; });
}

void Links::forget_peers() {
  std::erase_if(broken_, [](const auto& entry) { return entry.first.from.role == Role::kPs; });
}

void Links::set_told(const Link& link) {
  if (const auto found = broken_.find(link); found != broken_.end()) found->second.is_told = true;
}

std::string Links::text(Instant now, const Link& link) const {
  const Outage& outage = broken_.at(link);
  const Duration lasts = now - outage.since;
  return to_string(link.from) + " can't reach " + to_string(link.to) + " (no answer" +
         (lasts > Duration::zero() ? " for " + format_duration(lasts) : "") +
         (outage.reason.empty() ? "" : "; " + outage.reason) + ")";
}

}  // namespace disttrain::chiefd
