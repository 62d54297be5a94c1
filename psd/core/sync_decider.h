// The pacer's decision in sync: which members make the step (docs/protocol.md, "A step, sync"). It gets the staged sets
// of all shards for the open step, its own set too. Sets are ranks of the roster in force.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/fifo.h"
#include "common/ids.h"
#include "common/messages/data.h"
#include "common/rank_set.h"

namespace disttrain::psd {

struct SyncRules {
  std::uint32_t shards = 1;
  std::uint32_t aggregate = 0;  // gradients that make a step, 0 = the whole roster
  double clip_norm = 0.0;       // global norm, 0 = no clipping
};

// Whether `staged` members make a step: all of `roster`, or at least `aggregate` members with examples. A member
// without examples doesn't count towards `aggregate`: members whose records are used up would otherwise make one empty
// step after another while the rest still compute.
bool enough_members(std::size_t staged, std::size_t empty, std::size_t roster, std::uint32_t aggregate);

class SyncDecider {
 public:
  explicit SyncDecider(const SyncRules& rules) : rules_(rules), newest_(rules.shards) {}

  // Takes a shard's report. Ignores one for a step other than `open`, or for a roster other than the one in force: it
  // is old.
  void staged(const Staged& report, Step open, RosterVersion roster);

  // S = the members of `active` that are staged on all shards, if they are enough. With clipping, S must be a set whose
  // norm every shard has reported. `empty`: members whose push brings no examples. Cost: one look at each shard's
  // newest report; with clipping, one at each reported set.
  std::optional<Commit> decide(Step open, RosterVersion roster, const RankSet& active, const RankSet& empty) const;

  // The step is committed, or starts again with another roster: forgets its reports.
  void forget();

 private:
  // One set that shards have reported, with each shard's squared norm.
  struct Candidate {
    RankSet members;
    std::vector<std::optional<double>> norm2;  // by shard
    std::uint32_t reports = 0;
    bool nonfinite = false;
  };

  void note_norm(const Staged& report);
  std::optional<Commit> decide_with_norm(const RankSet& active, const RankSet& empty) const;
  bool enough(const RankSet& members, const RankSet& active, const RankSet& empty) const;

  const SyncRules rules_;
  std::vector<std::optional<Staged>> newest_;  // by shard
  std::uint32_t reporting_ = 0;                // shards that have reported
  Fifo<Candidate> candidates_;                 // with clipping; in order of their first report
};

}  // namespace disttrain::psd
