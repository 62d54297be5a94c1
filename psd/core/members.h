// The workers that a shard knows: whether each may send, which frames were taken from it, and its channel. Exactly-once
// per frame is decided here, with one entry per worker (docs/protocol.md, "Exactly once").
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "common/ids.h"
#include "common/messages/control.h"
#include "common/messages/data.h"
#include "common/rank_set.h"
#include "psd/core/events.h"

namespace disttrain::psd {

// An answer that waits: in sync for the commit of `clock`, in ssp until the worker is within the bound.
struct ParkedReply {
  bool waiting = false;
  bool wants_parameters = false;  // false: it gets an Acknowledge
  Step clock;
  PushOutcome outcome = PushOutcome::kNone;
};

struct MemberState {
  Member member;
  Place place;
  Rank rank;  // in the roster, while the member is in it
  bool in_roster = false;
  bool fenced = false;
  ChannelId channel;      // 0 = none open
  Sequence last;          // last frame taken from this incarnation
  Sequence acknowledged;  // acknowledged to the worker, or known to it from Welcome
  Step last_clock;        // clock of the last whole push

  // The push under way.
  bool push_nonfinite = false;
  bool push_wants = false;

  ParkedReply parked;
  std::uint64_t marked = 0;  // checkpoint attempt of the last mark that came
};

class MemberTable {
 public:
  // places: number of members that memory was made for.
  explicit MemberTable(std::uint32_t places) : taken_(places, false) {}

  // What members that left the roster leave behind.
  struct Leavings {
    std::vector<ChannelId> channels;
    std::vector<Place> places;
  };
  // False: the roster has more members than there is memory for; nothing has changed.
  bool set_roster(const Roster& roster, Leavings& leavings);
  const Roster& roster() const { return roster_; }

  // Members of the roster that aren't fenced, in rank order. Valid until set_roster() or fence().
  const std::vector<MemberState*>& active() const { return active_; }
  const RankSet& active_ranks() const { return active_ranks_; }
  // The member with this rank, fenced or not; null if there is none. Valid as long as active().
  MemberState* at(Rank rank) { return rank.value < ranked_.size() ? ranked_[rank.value] : nullptr; }
  const MemberState* at(Rank rank) const { return rank.value < ranked_.size() ? ranked_[rank.value] : nullptr; }
  bool is_active(const MemberState& member) const { return member.in_roster && !member.fenced; }

  MemberState* find(const Member& member);
  const MemberState* find(const Member& member) const;
  // The member that has this open channel.
  MemberState* find(ChannelId channel);
  const MemberState* find(ChannelId channel) const;

  // Sets the member's only channel. Channel numbers grow, so `channel` is above all earlier numbers.
  void open_channel(MemberState& member, ChannelId channel);
  // Also drops the answer that waits for this channel.
  void close_channel(MemberState& member);

  // From now on nothing is taken from this incarnation.
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

}  // namespace disttrain::psd
