// The pacer's decision in sync: which members make the step (PROTOCOL: sync, one place decides). It hears the staged
// sets of all shards, its own among them, for the step that is open.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/ids.h"
#include "common/messages/data.h"

namespace disttrain::psd {

struct SyncRules {
  std::uint32_t shards = 1;
  std::uint32_t aggregate = 0;  // gradients that make a step, 0 = the whole roster
  double clip_norm = 0.0;       // global norm, 0 = no clipping
};

// Enough for a step: all of `roster`, or `aggregate` that bring examples. Who brings none is no help: where the others'
// records are all that is left, steps without them would follow each other without end.
bool enough_members(std::size_t staged, std::size_t empty, std::size_t roster, std::uint32_t aggregate);

class SyncDecider {
 public:
  explicit SyncDecider(const SyncRules& rules) : rules_(rules), reports_(rules.shards) {}

  // A shard's report. One of another step than `open`, or of another roster than the one in force, is old and ignored.
  void staged(const Staged& report, Step open, RosterVersion roster);

  // S = the members of `active` (in rank order) that are staged on all shards, if these are enough. With clipping, S
  // must be a set whose norm every shard has reported. `empty`: those whose push brings no examples. Commit::roster is
  // left to the caller.
  std::optional<Commit> decide(Step open, const std::vector<Member>& active, const std::vector<Member>& empty) const;

  // The step is committed, or begins anew with another roster: forgets its reports.
  void forget();

 private:
  std::optional<Commit> decide_with_norm(Step open, const std::vector<Member>& active,
                                         const std::vector<Member>& empty) const;
  bool enough(const std::vector<Member>& members, const std::vector<Member>& active,
              const std::vector<Member>& empty) const;

  const SyncRules rules_;
  std::vector<std::vector<Staged>> reports_;  // by shard, in order of arrival; the last is the fullest
};

}  // namespace disttrain::psd
