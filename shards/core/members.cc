#include "shards/core/members.h"

#include <algorithm>
#include <set>
#include <utility>

#include "common/check.h"
#include "common/mutant.h"

namespace disttrain::shards {

MemberState* MemberTable::find(const Member& member) {
  if (DISTTRAIN_MUTANT(kNoIncarnation))
    for (auto& state : members_)
      if (state->member.task == member.task) return state.get();
  const auto found = by_member_.find(member);
  return found == by_member_.end() ? nullptr : found->second;
}

const MemberState* MemberTable::find(const Member& member) const {
  const auto found = by_member_.find(member);
  return found == by_member_.end() ? nullptr : found->second;
}

std::vector<MemberTable::Open>::const_iterator MemberTable::position(ChannelId channel) const {
  return std::lower_bound(open_.begin(), open_.end(), channel,
                          [](const Open& open, ChannelId wanted) { return open.channel < wanted; });
}

const MemberState* MemberTable::find(ChannelId channel) const {
  const auto at = position(channel);
  return at == open_.end() || at->channel != channel ? nullptr : at->member;
}

MemberState* MemberTable::find(ChannelId channel) {
  return const_cast<MemberState*>(std::as_const(*this).find(channel));
}

void MemberTable::open_channel(MemberState& member, ChannelId channel) {
  DISTTRAIN_CHECK(member.channel.value == 0);
  DISTTRAIN_CHECK(open_.empty() || open_.back().channel < channel);
  member.channel = channel;
  open_.push_back(Open{channel, &member});
}

void MemberTable::close_channel(MemberState& member) {
  member.parked = {};
  member.pull.reset();
  if (member.channel.value == 0) return;
  open_.erase(position(member.channel));
  member.channel = {};
}

MemberState& MemberTable::make(const Member& member) {
  members_.push_back(std::make_unique<MemberState>());
  members_.back()->member = member;
  by_member_[member] = members_.back().get();
  return *members_.back();
}

bool MemberTable::set_roster(const Roster& roster, Leavings& leavings) {
  if (roster.members.size() > taken_.size() || roster.members.size() > kMaxRoster) return false;
  roster_ = roster;
  const std::set<Member> staying(roster.members.begin(), roster.members.end());
  for (auto& state : members_) {
    if (!state->in_roster || staying.count(state->member) != 0) continue;
    state->in_roster = false;
    taken_[state->place.value] = false;
    leavings.places.push_back(state->place);
    if (state->channel.value != 0) leavings.channels.push_back(state->channel);
    close_channel(*state);
  }
  for (const Member& member : roster.members) {
    MemberState* known = find(member);
    MemberState& state = known != nullptr ? *known : make(member);
    if (state.in_roster) continue;
    const auto free = std::find(taken_.begin(), taken_.end(), false);
    state.place = Place(static_cast<std::uint32_t>(free - taken_.begin()));
    state.in_roster = true;
    *free = true;
  }
  refresh_ranks();
  forget_the_dead();
  return true;
}

// Removes old entries of fenced workers that left the roster. If these entries stayed, each search would get slower as
// workers come and go for weeks. A worker without an entry is still refused, because it isn't in the roster.
void MemberTable::forget_the_dead() {
  const std::size_t most = taken_.size() + kMostDead;
  if (members_.size() <= most) return;
  const auto is_dead = [](const auto& state) { return state->fenced && !state->in_roster; };
  std::size_t excess = members_.size() - most;
  std::erase_if(members_, [&](const auto& state) {
    if (excess == 0 || !is_dead(state)) return false;
    --excess;
    by_member_.erase(state->member);
    return true;
  });
}

MemberState& MemberTable::fence(const Member& member) {
  MemberState* known = find(member);
  MemberState& state = known != nullptr ? *known : make(member);
  if (DISTTRAIN_MUTANT(kNoFence)) return state;
  state.fenced = true;
  close_channel(state);
  refresh_ranks();
  return state;
}

void MemberTable::refresh_ranks() {
  ranked_.clear();
  active_.clear();
  active_ranks_ = {};
  for (const Member& member : roster_.members) {
    MemberState* state = find(member);
    const Rank rank(static_cast<std::uint32_t>(ranked_.size()));
    ranked_.push_back(state);
    if (state == nullptr) continue;
    state->rank = rank;
    if (!is_active(*state)) continue;
    active_.push_back(state);
    active_ranks_.insert(rank);
  }
}

}  // namespace disttrain::shards
