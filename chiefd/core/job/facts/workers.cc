#include "chiefd/core/job/facts/workers.h"

#include <algorithm>
#include <utility>

#include "common/bounds.h"

namespace disttrain::chiefd {

bool Workers::is_in_roster(const Member& member) const {
  return std::find(roster_.members.begin(), roster_.members.end(), member) != roster_.members.end();
}

std::vector<Member> Workers::living() const {
  std::vector<Member> living = roster_.members;
  std::erase_if(living, [this](const Member& member) { return is_lost(member); });
  return living;
}

std::vector<Member> Workers::unlost() const {
  std::vector<Member> unlost = all_;
  std::erase_if(unlost, [this](const Member& member) { return is_lost(member); });
  return unlost;
}

bool Workers::has_living() const {
  return std::any_of(roster_.members.begin(), roster_.members.end(),
                     [this](const Member& member) { return !is_lost(member); });
}

void Workers::choose(std::vector<Member> members) {
  roster_ = Roster{RosterVersion(1), std::move(members)};
}

const Roster& Workers::change(std::vector<Member> members) {
  roster_.members = std::move(members);
  roster_.version = roster_.version.next();
  return roster_;
}

bool Workers::has_rank(TaskId worker) const {
  return std::find(ranks_.begin(), ranks_.end(), worker) != ranks_.end();
}

void Workers::fix_ranks(const std::vector<Member>& members) {
  for (const Member& worker : members) ranks_.push_back(worker.task);
}

bool Workers::is_taking_part(const Member& member) const {
  return in_all_.count(member) != 0 && !is_lost(member);
}

void Workers::use_roster() {
  all_ = roster_.members;
  in_all_ = std::set<Member>(all_.begin(), all_.end());
}

void Workers::begin_generation() {
  wires_.clear();
  own_batches_.clear();  // a late answer may have told those of the generation before
  roster_.version = RosterVersion(1);
  use_roster();
  lost_.clear();
  unfinished_.clear();
  joining_.clear();
}

void Workers::begin_training() {
  unfinished_ = std::set<Member>(roster_.members.begin(), roster_.members.end());
}

void Workers::drop_generation() {
  joining_.clear();
  told_to_stop_.clear();
  stopped_.clear();
  own_batches_.clear();
  // A worker that was lost in this generation, for example because it was silent, may be in the next generation.
  lost_.clear();
}

void Workers::take_up(const Roster& roster) {
  roster_ = roster;
  use_roster();
  begin_training();
}

bool Workers::lose(const Member& member) {
  lost_.insert(member);
  joining_.erase(member);
  told_to_stop_.erase(member);
  stopped_.erase(member);
  return unfinished_.erase(member) == 0;
}

void Workers::note_own_batches(TaskId worker, Step batches) {
  if (own_batches_.size() >= kMaxMembers && own_batches_.count(worker) == 0) return;
  Step& known = own_batches_[worker];
  known = std::max(known, batches);
}

std::vector<Member> Workers::predecessors_of(const Member& worker) const {
  std::vector<Member> before;
  for (const Member& member : lost_)
    if (member.task == worker.task && member != worker && !is_in_roster(member)) before.push_back(member);
  return before;
}

void Workers::forget(const Member& member) {
  lost_.erase(member);
  std::erase(all_, member);
  in_all_.erase(member);
  wires_.erase(member);
}

Wires Workers::wires() const {
  Wires all = 0;
  for (const auto& [worker, wires] : wires_) all |= wires;
  return all;
}

void Workers::note_wires(const Member& member, Wires wires) {
  if (wires != 0) wires_[member] = wires;
}

void Workers::join(const Member& member, Instant now) {
  all_.push_back(member);
  in_all_.insert(member);
  unfinished_.insert(member);
  joining_[member] = now;
}

void Workers::postpone_joins(Duration by) {
  for (auto& [worker, began] : joining_) began += by;
}

}  // namespace disttrain::chiefd
