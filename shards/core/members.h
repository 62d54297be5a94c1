// The workers that a shard knows. Each worker's entry says whether the worker may send, which of its frames the shard
// has taken, and on which channel the worker is connected. With these entries the shard takes each frame exactly once
// (docs/protocol.md, "Exactly once").
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "common/ids.h"
#include "common/messages/control.h"
#include "common/messages/data.h"
#include "common/rank_set.h"
#include "shards/core/events.h"

namespace disttrain::shards {

// An answer that waits. In sync it waits until step `clock` is committed. In ssp it waits while the worker is too far
// ahead of the slowest worker (shards/core/clocks.h).
struct ParkedReply {
  bool waiting = false;
  bool wants_parameters = false;  // if false, the answer is an Acknowledge, without parameters
  Step clock;
  PushOutcome outcome = PushOutcome::kNone;
};

struct MemberState {
  Member member;
  Place place;
  Rank rank;  // the member's index in the roster; valid while in_roster is true
  bool in_roster = false;
  bool fenced = false;
  ChannelId channel;      // 0 = none open
  Sequence last;          // the last frame that the shard took from this incarnation
  Sequence acknowledged;  // the last frame that an answer (or Welcome) has acknowledged to the worker
  Step last_clock;        // the clock of the last push that arrived whole

  // The push whose frames are arriving.
  bool push_nonfinite = false;
  bool push_wants = false;

  ParkedReply parked;
  std::optional<Pull> pull;  // waits until the shard has its first values
  std::uint64_t marked = 0;  // the checkpoint attempt of the worker's last mark
};

class MemberTable {
 public:
  // `places`: the number of workers that the shard has memory for.
  explicit MemberTable(std::uint32_t places) : taken_(places, false) {}

  // The channels and memory areas of the members that left the roster. The caller closes the channels and clears the
  // areas.
  struct Leavings {
    std::vector<ChannelId> channels;
    std::vector<Place> places;
  };
  // Returns false and changes nothing if the roster has more members than the shard has memory for.
  bool set_roster(const Roster& roster, Leavings& leavings);
  const Roster& roster() const { return roster_; }

  // The members of the roster that aren't fenced, in rank order. The result is valid until the next call of
  // set_roster() or fence().
  const std::vector<MemberState*>& active() const { return active_; }
  const RankSet& active_ranks() const { return active_ranks_; }
  // The member with this rank, fenced or not; null if there is none. The result is valid until the next call of
  // set_roster() or fence().
  MemberState* at(Rank rank) { return rank.value < ranked_.size() ? ranked_[rank.value] : nullptr; }
  const MemberState* at(Rank rank) const { return rank.value < ranked_.size() ? ranked_[rank.value] : nullptr; }
  bool is_active(const MemberState& member) const { return member.in_roster && !member.fenced; }

  MemberState* find(const Member& member);
  const MemberState* find(const Member& member) const;
  // The member whose open channel this is; null if there is none.
  MemberState* find(ChannelId channel);
  const MemberState* find(ChannelId channel) const;

  // Sets the member's channel; the member must have none. `channel` must be higher than all earlier channel numbers.
  void open_channel(MemberState& member, ChannelId channel);
  // Forgets the member's channel, and drops the answer that waits to be sent on it.
  void close_channel(MemberState& member);

  // From now on the shard takes nothing from this incarnation of the worker.
  MemberState& fence(const Member& member);

 private:
  static constexpr std::size_t kMostDead = 256;

  struct Open {
    ChannelId channel;
    MemberState* member = nullptr;
  };

  MemberState& make(const Member& member);
  std::vector<Open>::const_iterator position(ChannelId channel) const;
  void refresh_ranks();
  void forget_the_dead();

  Roster roster_;
  std::vector<bool> taken_;                            // by Place
  std::vector<std::unique_ptr<MemberState>> members_;  // oldest first
  std::map<Member, MemberState*> by_member_;
  std::vector<Open> open_;            // ascending by channel
  std::vector<MemberState*> ranked_;  // by rank
  std::vector<MemberState*> active_;
  RankSet active_ranks_;
};

}  // namespace disttrain::shards
