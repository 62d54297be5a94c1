#include "chiefd/core/job/views/links.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace disttrain::chiefd::views {
namespace {

// Returns the ps tasks that can't reach this ps or that this ps can't reach. A ps that is gone doesn't count.
std::set<TaskId> peers_cut_off(const JobFacts& job, const Tasks& tasks, TaskId ps) {
  std::set<TaskId> peers;
  for (const auto& [link, outage] : job.links.broken()) {
    if (link.from.role != Role::kPs || (link.from != ps && link.to != ps)) continue;
    const TaskId peer = link.from == ps ? link.to : link.from;
    const Task* task = tasks.find(peer);
    if (task != nullptr && task->takes_work()) peers.insert(peer);
  }
  return peers;
}

}  // namespace

std::vector<TaskId> voters(const JobFacts& job, const Tasks& tasks) {
  std::vector<TaskId> workers;
  if (job.stage.is(Stage::kRegather)) {
    for (const auto& [id, task] : tasks.all())
      if (id.role == Role::kWorker && task.takes_work()) workers.push_back(id);
    return workers;
  }
  for (const Member& member : job.workers.roster().members)
    if (!job.workers.is_lost(member)) workers.push_back(member.task);
  return workers;
}

bool is_cut_off(const JobFacts& job, const Tasks& tasks, TaskId ps) {
  const std::vector<TaskId> all = voters(job, tasks);
  const auto cut = std::count_if(all.begin(), all.end(), [&](TaskId worker) {
    return job.links.is_broken(Links::Link{worker, ps});
  });
  return static_cast<std::size_t>(cut) * 2 > all.size();
}

bool is_avoided(const JobFacts& job, const Tasks& tasks, TaskId ps) {
  if (is_cut_off(job, tasks, ps)) return true;
  const std::set<TaskId> peers = peers_cut_off(job, tasks, ps);
  return std::any_of(peers.begin(), peers.end(), [&](TaskId other) {
    const std::size_t own = peers.size();
    const std::size_t others = peers_cut_off(job, tasks, other).size();
    if (own != others) return own > others;
    const bool has_pacer = !job.generation.owners().empty() && job.generation.pacer().task == ps;
    const bool other_has_pacer = !job.generation.owners().empty() && job.generation.pacer().task == other;
    return has_pacer != other_has_pacer ? other_has_pacer : ps > other;
  });
}

bool reaches_owners(const JobFacts& job, TaskId worker) {
  return std::none_of(job.generation.owners().begin(), job.generation.owners().end(), [&](const Owner& owner) {
    return job.links.is_broken({worker, owner.ps.task});
  });
}

std::string links_of(const JobFacts& job, Instant now, TaskId worker) {
  std::string text;
  for (const Member& ps : job.generation.holders())
    if (const Links::Link link{worker, ps.task}; job.links.is_broken(link))
      text += (text.empty() ? "" : "; ") + job.links.text(now, link);
  return text;
}

std::string broken_links_text(const JobFacts& job, Instant now) {
  std::set<TaskId> workers;
  for (const auto& [link, outage] : job.links.broken())
    if (outage.is_told && link.from.role == Role::kWorker) workers.insert(link.from);
  std::string text;
  for (const TaskId worker : workers) {
    const std::string links = links_of(job, now, worker);
    if (!links.empty()) text += (text.empty() ? "" : "; ") + links;
  }
  return text;
}

}  // namespace disttrain::chiefd::views
