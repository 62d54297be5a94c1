#include "shards/core/sync_decider.h"

#include <algorithm>
#include <cmath>

#include "common/mutant.h"

namespace disttrain::shards {

bool enough_members(std::size_t staged, std::size_t empty, std::size_t roster, std::uint32_t aggregate) {
  if (staged == 0) return false;
  return staged == roster || (aggregate > 0 && staged - empty >= std::min<std::size_t>(aggregate, roster));
}

std::size_t fewest_members(std::size_t roster, std::uint32_t aggregate) {
  return std::max<std::size_t>(1, aggregate > 0 ? std::min<std::size_t>(aggregate, roster) : roster);
}

void SyncDecider::staged(const Staged& report, Step open, RosterVersion roster) {
  const bool is_old = report.step != open || report.roster != roster;
  if ((is_old && !DISTTRAIN_MUTANT(kStaleStagedAccepted)) || report.shard.value >= newest_.size()) return;
  std::optional<Staged>& newest = newest_[report.shard.value];
  if (!newest) ++reporting_;
  newest = report;
  if (rules_.clip_norm > 0.0) note_norm(report);
}

void SyncDecider::note_norm(const Staged& report) {
  std::size_t at = 0;
  while (at < candidates_.size() && candidates_[at].members != report.members) ++at;
  if (at == candidates_.size()) {
    Candidate& fresh = candidates_.push_slot();
    fresh.members = report.members;
    fresh.norm2.assign(rules_.shards, std::nullopt);
    fresh.reports = 0;
    fresh.nonfinite = false;
  }
  Candidate& candidate = candidates_[at];
  std::optional<double>& norm2 = candidate.norm2[report.shard.value];
  if (!norm2) ++candidate.reports;
  norm2 = report.norm2;
  candidate.nonfinite = candidate.nonfinite || report.nonfinite;
}

std::optional<Commit> SyncDecider::decide(Step open, RosterVersion roster, const RankSet& active,
                                          const RankSet& empty) const {
  if (!has_all_reports()) return std::nullopt;
  std::optional<Commit> commit;
  if (rules_.clip_norm > 0.0) {
    commit = decide_with_norm(active, empty);
  } else {
    commit.emplace();
    commit->members = active;
    for (const auto& report : newest_) {
      commit->members = commit->members & report->members;
      // A shard reports one flag `nonfinite` for all pushes that it has staged. So the pacer skips the step if any of
      // these pushes isn't finite, even if the commit leaves out this push. This is rare and safe.
      commit->skip = commit->skip || report->nonfinite;
    }
    if (!enough(commit->members, active, empty)) commit.reset();
  }
  if (commit) {
    commit->step = open;
    commit->roster = roster;
  }
  return commit;
}

std::optional<Commit> SyncDecider::decide_with_norm(const RankSet& active, const RankSet& empty) const {
  // Several sets may be enough, because a shard that holds for a checkpoint commits nothing. The newest has most
  // pushes.
  for (std::size_t i = candidates_.size(); i-- > 0;) {
    const Candidate& candidate = candidates_[i];
    if (candidate.reports < rules_.shards || !candidate.members.is_part_of(active)) continue;
    if (!enough(candidate.members, active, empty)) continue;
    Commit commit;
    commit.members = candidate.members;
    commit.skip = candidate.nonfinite;
    double norm2 = 0.0;  // summed in the order of the shards, because the order of their reports may vary
    for (const std::optional<double>& of_shard : candidate.norm2) norm2 += *of_shard;
    if (DISTTRAIN_MUTANT(kClipPerShard)) norm2 = *candidate.norm2.front();
    const double norm = std::sqrt(norm2);
    if (!std::isfinite(norm)) commit.skip = true;
    if (!commit.skip && norm > rules_.clip_norm) commit.scale = rules_.clip_norm / norm;
    return commit;
  }
  return std::nullopt;
}

bool SyncDecider::enough(const RankSet& members, const RankSet& active, const RankSet& empty) const {
  return enough_members(members.size(), (members & empty).size(), active.size(), rules_.aggregate);
}

void SyncDecider::forget() {
  std::fill(newest_.begin(), newest_.end(), std::nullopt);
  reporting_ = 0;
  candidates_.clear();
}

}  // namespace disttrain::shards
