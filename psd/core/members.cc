#include "psd/core/members.h"

#include <algorithm>

#include "common/mutant.h"

namespace disttrain::psd {

MemberState* MemberTable::find(const Member& member) {
  for (auto& state : members_)
    if (state->member == member || (DISTTRAIN_MUTANT(kNoIncarnation) && state->member.task == member.task))
      return state.get();
  return nullptr;
}

const MemberState* MemberTable::find(const Member& member) const {
  for (const auto& state : members_)
    if (state->member == member) return state.get();
  return nullptr;
}

MemberState* MemberTable::find(ChannelId channel) {
  for (auto& state : members_)
    if (state->channel == channel) return state.get();
  return nullptr;
}

const MemberState* MemberTable::find(ChannelId channel) const {
  for (const auto& state : members_)
    if (state->channel == channel) return state.get();
  return nullptr;
}

MemberState& MemberTable::make(const Member& member) {
  members_.push_back(std::make_unique<MemberState>());
  members_.back()->member = member;
  return *members_.back();
}

bool MemberTable::set_roster(const Roster& roster, Leavings& leavings) {
  if (roster.members.size() > taken_.size()) return false;
  roster_ = roster;
  for (auto& state : members_) {
    const bool stays = std::find(roster.members.begin(), roster.members.end(), state->member) != roster.members.end();
    if (state->in_roster && !stays) {
      state->in_roster = false;
      taken_[state->place.value] = false;
      state->parked = {};
      leavings.places.push_back(state->place);
      if (state->channel.value != 0) leavings.channels.push_back(state->channel);
      state->channel = {};
    }
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
  refresh_active();
  forget_the_dead();
  return true;
}

// Workers that come and go for weeks must not make every search longer. Who is forgotten is refused still: it isn't in
// the roster.
void MemberTable::forget_the_dead() {
  const std::size_t most = taken_.size() + kMostDead;
  if (members_.size() <= most) return;
  const auto is_dead = [](const auto& state) { return state->fenced && !state->in_roster; };
  std::size_t excess = members_.size() - most;
  std::erase_if(members_, [&](const auto& state) { return is_dead(state) && excess > 0 && excess-- > 0; });
}

MemberState& MemberTable::fence(const Member& member) {
  MemberState* known = find(member);
  MemberState& state = known != nullptr ? *known : make(member);
  if (DISTTRAIN_MUTANT(kNoFence)) return state;
  state.fenced = true;
  state.parked = {};
  state.channel = {};
  refresh_active();
  return state;
}

void MemberTable::refresh_active() {
  active_.clear();
  for (const Member& member : roster_.members) {
    MemberState* state = find(member);
    if (state != nullptr && is_active(*state)) active_.push_back(state);
  }
}

}  // namespace disttrain::psd
