// sync: how the pacer decides which members' pushes make a step (docs/protocol.md, "A step, sync"). Each shard, the
// pacer too, reports the set of members whose pushes it has staged for the open step (the next step to be committed). A
// set holds ranks of the current roster.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/fifo.h"
#include "common/ids.h"
#include "common/messages/data.h"
#include "common/rank_set.h"

namespace disttrain::shards {

struct SyncRules {
  std::uint32_t shards = 1;
  std::uint32_t aggregate = 0;  // how many gradients are enough for a step; 0 = those of the whole roster
  double clip_norm = 0.0;       // the limit of the global norm; 0 = no clipping
};

// Returns true if enough pushes are staged to commit a step. `roster`: the number of members in the roster. `staged`:
// how many of these have a staged push. `empty`: how many of the staged pushes have no examples. The pushes of all
// members are enough, and so are `aggregate` pushes with examples. Empty pushes don't count for `aggregate`. Otherwise
// members whose records are used up could make one empty step after another while the other members still compute.
bool enough_members(std::size_t staged, std::size_t empty, std::size_t roster, std::uint32_t aggregate);
// The fewest staged pushes that can be enough.
std::size_t fewest_members(std::size_t roster, std::uint32_t aggregate);

class SyncDecider {
 public:
  explicit SyncDecider(const SyncRules& rules) : rules_(rules), newest_(rules.shards) {}

  // Takes a shard's report. Ignores a report for another step than `open` or another roster than `roster`, because such
  // a report is old.
  void staged(const Staged& report, Step open, RosterVersion roster);

  // Returns true if each shard has reported for the open step. Before that, decide() returns none.
  bool has_all_reports() const { return reporting_ >= rules_.shards; }

  // Returns a commit of the members of `active` whose pushes are staged on all shards, or none if these members aren't
  // enough. With clipping, it commits a set only if every shard has reported the norm of exactly this set, and the
  // newest of such sets. `empty`: the members whose push has no examples. A call is cheap: it looks once at each
  // shard's newest report, or with clipping once at each reported set.
  std::optional<Commit> decide(Step open, RosterVersion roster, const RankSet& active, const RankSet& empty) const;

  // Forgets all reports, because the step is committed or starts again with another roster.
  void forget();

 private:
  // With clipping: a set of members that shards have reported, and the squared norm that each shard has reported for
  // it.
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
  std::uint32_t reporting_ = 0;                // number of shards that have reported
  Fifo<Candidate> candidates_;                 // with clipping: all reported sets, in order of their first report
};

}  // namespace disttrain::shards
