// The workers that a shard knows: who may send, what was taken from each, which channel each has. Exactly-once by frame
// is decided here, with one entry per worker (docs/protocol.md, "Exactly once").
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

// An answer that waits: in sync for the commit of `clock`, in ssp for the bound.
struct ParkedReply {
  bool waiting = false;
  bool wants_parameters = false;  // else an Acknowledge
  Step clock;
  PushOutcome outcome = PushOutcome::kNone;
};

struct MemberState {
  Member member;
  Place place;
  Rank rank;  // in the roster, while in it
  bool in_roster = false;
  bool fenced = false;
  ChannelId channel;      // 0 = none open
  Sequence last;          // last frame taken from this incarnation
  Sequence acknowledged;  // told to the worker, or known to it from Welcome
  Step last_clock;        // of the last whole push

  // The push under way.
  bool push_nonfinite = false;
  bool push_wants = false;

  ParkedReply parked;
  std::uint64_t marked = 0;  // the checkpoint's attempt whose mark was the last to come
};

class MemberTable {
 public:
  // places: members that memory was made for.
  explicit MemberTable(std::uint32_t places) : taken_(places, false) {}

  // What members leave behind that are no longer in the roster.
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
  // Whoever has this rank, fenced or not. Null: nobody. The same validity.
  MemberState* at(Rank rank) { return rank.value < ranked_.size() ? ranked_[rank.value] : nullptr; }
  const MemberState* at(Rank rank) const { return rank.value < ranked_.size() ? ranked_[rank.value] : nullptr; }
  bool is_active(const MemberState& member) const { return member.in_roster && !member.fenced; }

  MemberState* find(const Member& member);
  const MemberState* find(const Member& member) const;
  // Of an open channel.
  MemberState* find(ChannelId channel);
  const MemberState* find(ChannelId channel) const;

  // The member's only channel. Numbers grow: it is newer than all others.
  void open_channel(MemberState& member, ChannelId channel);
  // What waits for an answer on it waits no longer.
  void close_channel(MemberState& member);

  // Nothing of this incarnation is taken from now on.
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
  std::vector<std::unique_ptr<MemberState>> members_;  // the oldest first
  std::map<Member, MemberState*> by_member_;
  std::vector<Open> open_;            // ascending by channel
  std::vector<MemberState*> ranked_;  // by rank
  std::vector<MemberState*> active_;
  RankSet active_ranks_;
};

}  // namespace disttrain::psd
