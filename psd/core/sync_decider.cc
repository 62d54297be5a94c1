#include "psd/core/sync_decider.h"

#include <algorithm>
#include <cmath>

#include "common/mutant.h"

namespace disttrain::psd {

bool enough_members(std::size_t staged, std::size_t empty, std::size_t roster, std::uint32_t aggregate) {
  if (staged == 0) return false;
  return staged == roster || (aggregate > 0 && staged - empty >= std::min<std::size_t>(aggregate, roster));
}

namespace {

bool contains(const std::vector<Member>& members, const Member& member) {
  return std::find(members.begin(), members.end(), member) != members.end();
}

}  // namespace

void SyncDecider::staged(const Staged& report, Step open, RosterVersion roster) {
  const bool is_old = report.step != open || report.roster != roster;
  if ((is_old && !DISTTRAIN_MUTANT(kStaleStagedAccepted)) || report.shard.value >= reports_.size()) return;
  reports_[report.shard.value].push_back(report);
}

std::optional<Commit> SyncDecider::decide(Step open, const std::vector<Member>& active,
                                          const std::vector<Member>& empty) const {
  for (const auto& of_shard : reports_)
    if (of_shard.empty()) return std::nullopt;
  if (rules_.clip_norm > 0.0) return decide_with_norm(open, active, empty);
  Commit commit;
  commit.step = open;
  for (const Member& member : active)
    if (std::all_of(reports_.begin(), reports_.end(),
                    [&member](const auto& of_shard) { return contains(of_shard.back().members, member); }))
      commit.members.push_back(member);
  if (!enough(commit.members, active, empty)) return std::nullopt;
  // A shard's flag is about its whole set; a member outside S that wasn't finite vetoes too. It is rare and safe.
  for (const auto& of_shard : reports_) commit.skip = commit.skip || of_shard.back().nonfinite;
  return commit;
}

std::optional<Commit> SyncDecider::decide_with_norm(Step open, const std::vector<Member>& active,
                                                    const std::vector<Member>& empty) const {
  for (const Staged& candidate : reports_.front()) {
    const auto& members = candidate.members;
    if (!enough(members, active, empty)) continue;
    if (!std::all_of(members.begin(), members.end(), [&active](const Member& m) { return contains(active, m); }))
      continue;
    Commit commit;
    commit.step = open;
    commit.members = members;
    double norm2 = 0.0;
    bool everywhere = true;
    for (const auto& of_shard : reports_) {
      const auto same = std::find_if(of_shard.begin(), of_shard.end(),
                                     [&members](const Staged& report) { return report.members == members; });
      everywhere = everywhere && same != of_shard.end();
      if (!everywhere) break;
      norm2 += same->norm2;
      commit.skip = commit.skip || same->nonfinite;
    }
    if (!everywhere) continue;
    const double norm = std::sqrt(norm2);
    if (!std::isfinite(norm)) commit.skip = true;
    if (!commit.skip && norm > rules_.clip_norm) commit.scale = rules_.clip_norm / norm;
    return commit;
  }
  return std::nullopt;
}

bool SyncDecider::enough(const std::vector<Member>& members, const std::vector<Member>& active,
                         const std::vector<Member>& empty) const {
  const auto brings_nothing =
      std::count_if(members.begin(), members.end(), [&empty](const Member& member) { return contains(empty, member); });
  return enough_members(members.size(), static_cast<std::size_t>(brings_nothing), active.size(), rules_.aggregate);
}

void SyncDecider::forget() {
  for (auto& of_shard : reports_) of_shard.clear();
}

}  // namespace disttrain::psd
