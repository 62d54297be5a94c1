#include "chiefd/core/links.h"

#include <algorithm>

#include "common/format_duration.h"

namespace disttrain::chiefd {

void Links::accuse(Instant now, const Link& link, Duration lasts) {
  Outage& outage = broken_.try_emplace(link, Outage{now - lasts, now, false}).first->second;
  outage.since = std::min(outage.since, now - lasts);
  outage.told = now;
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
  const Duration lasts = now - broken_.at(link).since;
  return to_string(link.from) + " can't reach " + to_string(link.to) + " (no answer" +
         (lasts > Duration::zero() ? " for " + format_duration(lasts) : "") + ")";
}

}  // namespace disttrain::chiefd
