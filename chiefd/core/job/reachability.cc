#include "chiefd/core/job/reachability.h"

#include <algorithm>

#include "chiefd/core/job/parts.h"

namespace disttrain::chiefd {

Reachability::Reachability(const JobParts& parts)
    : stage_(parts.stage), generation_(parts.generation), workers_(parts.workers), links_(parts.links) {}

std::vector<TaskId> Reachability::voters(const Tasks& tasks) const {
  std::vector<TaskId> workers;
  if (stage_.is(Stage::kRegather)) {
    for (const auto& [id, task] : tasks.all())
      if (id.role == Role::kWorker && task.takes_work()) workers.push_back(id);
    return workers;
  }
  for (const Member& member : workers_.roster().members)
    if (!workers_.is_lost(member)) workers.push_back(member.task);
  return workers;
}

bool Reachability::is_cut_off(const Tasks& tasks, TaskId ps) const {
  const std::vector<TaskId> all = voters(tasks);
  const auto cut = std::count_if(all.begin(), all.end(), [&](TaskId worker) {
    return links_.is_broken(Links::Link{worker, ps});
  });
  return static_cast<std::size_t>(cut) * 2 > all.size();
}

// Returns the ps tasks that can't reach this ps or that this ps can't reach. A ps that is gone doesn't count.
std::set<TaskId> Reachability::peers_cut_off(const Tasks& tasks, TaskId ps) const {
  std::set<TaskId> peers;
  for (const auto& [link, outage] : links_.broken()) {
    if (link.from.role != Role::kPs || (link.from != ps && link.to != ps)) continue;
    const TaskId peer = link.from == ps ? link.to : link.from;
    const Task* task = tasks.find(peer);
    if (task != nullptr && task->takes_work()) peers.insert(peer);
  }
  return peers;
}

bool Reachability::is_avoided(const Tasks& tasks, TaskId ps) const {
  if (is_cut_off(tasks, ps)) return true;
  const std::set<TaskId> peers = peers_cut_off(tasks, ps);
  return std::any_of(peers.begin(), peers.end(), [&](TaskId other) {
    const std::size_t own = peers.size();
    const std::size_t others = peers_cut_off(tasks, other).size();
    if (own != others) return own > others;
    const bool has_pacer = !generation_.owners().empty() && generation_.pacer().task == ps;
    const bool other_has_pacer = !generation_.owners().empty() && generation_.pacer().task == other;
    return has_pacer != other_has_pacer ? other_has_pacer : ps > other;
  });
}

bool Reachability::reaches_owners(TaskId worker) const {
  return std::none_of(generation_.owners().begin(), generation_.owners().end(), [&](const Owner& owner) {
    return links_.is_broken({worker, owner.ps.task});
  });
}

std::string Reachability::links_of(Instant now, TaskId worker) const {
  std::string text;
  for (const Member& ps : generation_.holders())
    if (const Links::Link link{worker, ps.task}; links_.is_broken(link))
      text += (text.empty() ? "" : "; ") + links_.text(now, link);
  return text;
}

std::string Reachability::broken_links_text(Instant now) const {
  std::set<TaskId> workers;
  for (const auto& [link, outage] : links_.broken())
    if (outage.is_told && link.from.role == Role::kWorker) workers.insert(link.from);
  std::string text;
  for (const TaskId worker : workers) {
    const std::string links = links_of(now, worker);
    if (!links.empty()) text += (text.empty() ? "" : "; ") + links;
  }
  return text;
}

}  // namespace disttrain::chiefd
