// Links that don't carry between tasks that the chief hears: who goes on without whom. See job.h and links.h.
//
// A worker that can't reach a ps says so at once, and again and again while that lasts. From Timeouts::unreachable on
// the chief decides: where most workers reach the ps, the one that doesn't is removed, and the others train on; else
// the ps is waited for as a silent one is, and then done without where others can take its shards. Neither end is
// blamed, and nothing counts for job.max_restarts. A worker that isn't in the job is asked again and again which ps
// tasks it reaches, and joins only when it reaches all that it needs.
#include <algorithm>

#include "chiefd/core/job.h"

namespace disttrain::chiefd {
namespace {

constexpr char kLinkLost[] = "link_lost";
constexpr char kLinkBack[] = "link_back";

// Complaints come at least so often while a link is away; after that the last one is void.
Duration longest_pause(const Timeouts& timeouts) {
  return 2 * (timeouts.dial + timeouts.reconnect_longest);
}

}  // namespace

void Job::on_accusation(Turn& turn, const Member& from, const Accusation& accusation) {
  const Links::Link link{from.task, accusation.accused};
  if (accusation.withdrawn) return mend_link(turn, link);
  if (accusation.generation != generation_ || turn.tasks.find(accusation.accused) == nullptr) return;
  turn.tasks.accuse(accusation.accused, turn.actions);
  if (accusation.accused.role != Role::kPs || accusation.accused == from.task) return;
  // Shards of a generation that is given up say nothing of links between those of the next.
  if (!has_channels() || (from.task.role == Role::kPs && stage_ == Stage::kRegather)) return;
  links_.accuse(turn.now, link, accusation.lasts);
  if (accusation.lasts >= setup_.timeouts.unreachable) judge_link(turn, from, link);
}

// A worker that was removed begins anew: its link is no better for that. Accusations of a ps that is lost may come
// later than its loss: another process of it has no such links.
void Job::forget_links(const Turn& turn, const Finding& finding) {
  const Member& member = finding.member;
  const bool is_lost = finding.what == Finding::What::kLost;
  const Task* task = turn.tasks.find(member.task);
  const bool is_another = member.task.role == Role::kPs && (is_lost || finding.what == Finding::What::kJoined);
  const bool is_away = (is_lost || finding.what == Finding::What::kLeft) && (task == nullptr || !task->is_there()) &&
                       lost_.count(member) == 0;
  if (is_another || is_away) links_.forget(member.task);
}

// Before kGeneration no task has channels for the next generation. An accusation that comes then is about channels of
// the one that was given up.
bool Job::has_channels() const {
  return stage_ != Stage::kGather && stage_ != Stage::kDescribe && stage_ != Stage::kFolder && stage_ != Stage::kInit;
}

void Job::tell_link(Turn& turn, const Links::Link& link, const std::string& consequence) {
  links_.set_told(link);
  tell(turn, kLinkLost, 2, links_.text(turn.now, link) + ": " + consequence, link.from);
}

void Job::mend_link(Turn& turn, const Links::Link& link) {
  const auto outage = links_.mend(link);
  if (!outage.empty() && outage.mapped().is_told)
    tell(turn, kLinkBack, 1,
         to_string(link.from) + " reaches " + to_string(link.to) + " again, after " +
             in_tenths(turn.now - outage.mapped().since),
         link.from);
}

// The silence of a task that the chief doesn't hear either has rules of its own.
void Job::judge_link(Turn& turn, const Member& from, const Links::Link& link) {
  const Task* ps = turn.tasks.find(link.to);
  const bool is_owner_there = ps != nullptr && ps->is_there() && ps->connected && is_owner(ps->member) &&
                              turn.now - ps->last_heard <= setup_.timeouts.silent;
  if (!is_owner_there || silent_ps_.count(link.to) != 0) return;
  if (from.task.role == Role::kPs) {
    if (stage_ != Stage::kCreate && stage_ != Stage::kTrain) return;
    tell_link(turn, link, "the job begins again with other owners of its shards");
    return recover(turn, {std::nullopt, links_.text(turn.now, link)}, Loss::kLink);
  }
  if (!is_worker(from) || (stage_ == Stage::kTrain && unfinished_.count(from) == 0)) return;
  const bool is_ps_lost = is_cut_off(turn.tasks, link.to);
  if (stage_ == Stage::kOpen) {
    tell_link(turn, link, "the job begins again without that link");
    return recover(turn, {std::nullopt, links_.text(turn.now, link)}, Loss::kLink);
  }
  if (stage_ == Stage::kEvaluate && !is_ps_lost) {
    if (awaited_.count(from) == 0) return;
    tell_link(turn, link, "another worker evaluates");
    lost_.insert(from);
    return evaluate(turn, Loss::kLink);
  }
  if (stage_ != Stage::kTrain && stage_ != Stage::kEvaluate) return;
  if (is_ps_lost) return wait_for_links(turn, link.to);
  tell_link(turn, link, "removed from the job until its link is back");
  lose_worker(turn, from, links_.text(turn.now, link), Loss::kLink);
}

void Job::wait_for_links(Turn& turn, TaskId ps) {
  std::string links;
  std::size_t count = 0;
  const std::vector<TaskId> all = voters(turn.tasks);
  for (const TaskId worker : all) {
    const Links::Link link{worker, ps};
    if (!links_.is_broken(link)) continue;
    ++count;
    links_.set_told(link);
    links += (links.empty() ? "" : ", ") + to_string(worker) + " for " +
             in_tenths(turn.now - links_.broken().at(link).since);
  }
  const std::string why = std::to_string(count) + " of " + std::to_string(all.size()) +
                          (all.size() == 1 ? " worker" : " workers") + " can't reach " + to_string(ps) +
                          " (no answer: " + links + ")";
  silent_ps_[ps] = Silence{turn.now, true, why};
  abandon_attempt(turn, why);
  tell(turn, kLinkLost, 2, why + ": the job waits for their links", ps);
  pause_workers(turn, true, why);
  set_state(turn, JobState::kPaused, why + "; waiting for their links");
}

// At each tick.
void Job::review_links(Turn& turn) {
  if (stage_ == Stage::kTrain || stage_ == Stage::kEvaluate) {
    std::vector<Links::Link> stale;
    for (const auto& [link, outage] : links_.broken()) {
      const Task* task = turn.tasks.find(link.from);
      const bool has_channels = task != nullptr && uses(task->member) && joining_.count(task->member) == 0;
      if (has_channels && turn.now - outage.told > longest_pause(setup_.timeouts)) stale.push_back(link);
    }
    for (const Links::Link& link : stale) links_.mend(link);
  }
  const auto is_over = [&](const auto& entry) { return entry.second.is_link && !is_cut_off(turn.tasks, entry.first); };
  if (std::erase_if(silent_ps_, is_over) > 0 && silent_ps_.empty()) resume(turn, "the links are back");
}

// ---- those that aren't in the job

// What a worker says that was asked which of ps_to_reach() it reaches.
void Job::note_reach(Turn& turn, const Member& from, const std::vector<Member>& unreachable) {
  for (const auto& [id, task] : turn.tasks.all()) {
    if (id.role != Role::kPs) continue;
    const Links::Link link{from.task, id};
    if (std::find(unreachable.begin(), unreachable.end(), task.member) == unreachable.end()) {
      mend_link(turn, link);
      continue;
    }
    invite_after_[from.task] = turn.now + setup_.timeouts.relink;
    links_.accuse(turn.now, link, Duration::zero());
    if (is_owner(task.member) && !links_.broken().at(link).is_told)
      tell_link(turn, link, "stays out of the job until its link is back");
  }
}

void Job::invite_again(Turn& turn) {
  if (stage_ != Stage::kTrain && stage_ != Stage::kRegather) return;
  std::set<TaskId> cut_off;
  for (const auto& [link, outage] : links_.broken())
    if (link.from.role == Role::kWorker) cut_off.insert(link.from);
  for (const TaskId worker : cut_off) {
    const Task* task = turn.tasks.find(worker);
    if (task == nullptr || !task->takes_work() || turn.now < invite_after_[worker]) continue;
    // In training its channels tell.
    if (prepared_.count(task->member) == 0 || (stage_ == Stage::kTrain && uses(task->member))) continue;
    prepared_.erase(task->member);
    invite(turn, task->member);
  }
}

std::vector<Owner> Job::ps_to_reach(const Tasks& tasks) const {
  std::vector<Owner> ps;
  for (const auto& [id, task] : tasks.all())
    if (id.role == Role::kPs && task.is_there()) ps.push_back(Owner{task.member, task.hello.address});
  return ps;
}

bool Job::reaches_owners(TaskId worker) const {
  return std::none_of(owners_.begin(), owners_.end(), [&](const Owner& owner) {
    return links_.is_broken({worker, owner.ps.task});
  });
}

// ---- which of the two ends

// The workers whose links count.
std::vector<TaskId> Job::voters(const Tasks& tasks) const {
  std::vector<TaskId> workers;
  if (stage_ == Stage::kRegather) {
    for (const auto& [id, task] : tasks.all())
      if (id.role == Role::kWorker && task.takes_work()) workers.push_back(id);
    return workers;
  }
  for (const Member& member : roster_.members)
    if (lost_.count(member) == 0) workers.push_back(member.task);
  return workers;
}

// Most workers can't reach it.
bool Job::is_cut_off(const Tasks& tasks, TaskId ps) const {
  const std::vector<TaskId> all = voters(tasks);
  const auto cut = std::count_if(all.begin(), all.end(), [&](TaskId worker) {
    return links_.is_broken(Links::Link{worker, ps});
  });
  return static_cast<std::size_t>(cut) * 2 > all.size();
}

// The ps tasks that it can't reach, or that can't reach it. One that is gone says nothing of a link.
std::set<TaskId> Job::peers_cut_off(const Tasks& tasks, TaskId ps) const {
  std::set<TaskId> peers;
  for (const auto& [link, outage] : links_.broken()) {
    if (link.from.role != Role::kPs || (link.from != ps && link.to != ps)) continue;
    const TaskId peer = link.from == ps ? link.to : link.from;
    const Task* task = tasks.find(peer);
    if (task != nullptr && task->takes_work()) peers.insert(peer);
  }
  return peers;
}

// No shard is given to it. Of two ps tasks that can't reach each other it is the one that can't reach more of the
// others, else the one that isn't the pacer's.
bool Job::is_avoided(const Tasks& tasks, TaskId ps) const {
  if (is_cut_off(tasks, ps)) return true;
  const std::set<TaskId> peers = peers_cut_off(tasks, ps);
  return std::any_of(peers.begin(), peers.end(), [&](TaskId other) {
    const std::size_t own = peers.size();
    const std::size_t others = peers_cut_off(tasks, other).size();
    if (own != others) return own > others;
    const bool has_pacer = !owners_.empty() && pacer().task == ps;
    const bool other_has_pacer = !owners_.empty() && pacer().task == other;
    return has_pacer != other_has_pacer ? other_has_pacer : ps > other;
  });
}

// ---- in words

// The broken links of a worker to the owners of shards. "": it reaches them.
std::string Job::links_of(Instant now, TaskId worker) const {
  std::string text;
  for (const Member& ps : holders())
    if (const Links::Link link{worker, ps.task}; links_.is_broken(link))
      text += (text.empty() ? "" : "; ") + links_.text(now, link);
  return text;
}

// Of all workers: those that an event has told.
std::string Job::broken_links_text(Instant now) const {
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
