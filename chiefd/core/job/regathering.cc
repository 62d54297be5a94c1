#include "chiefd/core/job/regathering.h"

#include <algorithm>
#include <map>
#include <utility>

#include "chiefd/core/job/absent.h"
#include "chiefd/core/job/parts.h"

namespace disttrain::chiefd {

Regathering::Regathering(JobParts& parts)
    : setup_(parts.setup),
      stage_(parts.stage),
      condition_(parts.condition),
      rollbacks_(parts.rollbacks),
      generation_(parts.generation),
      workers_(parts.workers),
      candidates_(parts.candidates),
      worker_losses_(parts.worker_losses),
      links_(parts.links),
      reachability_(parts.reachability),
      invitations_(parts.invitations),
      membership_(parts.membership),
      quorum_(parts.quorum),
      folder_(parts.folder),
      launch_(parts.launch) {}

void Regathering::regather(Turn& turn) {
  lacks_memory_ = false;
  std::string problem;
  const bool has_ps = regather_ps(turn, problem);
  const bool has_workers = regather_workers(turn);
  if (!has_workers && quorum_.fail_without_hope(turn)) return;
  if (!has_ps || !has_workers) {
    std::vector<Awaited> missing = missing_ps(turn.tasks);
    for (Awaited& worker : missing_workers(turn.tasks, turn.now)) missing.push_back(std::move(worker));
    std::string shortage = "waiting for " + to_string(missing);
    if (!has_ps && !problem.empty()) shortage += " (the other ps tasks can't take the shards: " + problem + ")";
    if (!has_workers)
      for (const auto& [task, why] : candidates_.kept_out()) shortage += "; " + to_string(task) + " " + why;
    if (const std::string links = reachability_.broken_links_text(turn.now); !links.empty()) shortage += "; " + links;
    return explain(shortage);
  }
  if (!regather_memory(turn)) return;
  if (turn.now < rollbacks_.current()->not_before) return;
  if (const std::vector<Awaited> late = late_workers(turn); !late.empty())
    return explain("waiting for " + to_string(late) + " after a restart of the chief");
  find_restore(turn);
}

void Regathering::explain(const std::string& shortage) {
  rollbacks_.explain(shortage);
  condition_.explain(to_string(rollbacks_.current()->cause) + "; " + shortage);
}

// Takes the same ps tasks as before, with the processes that are connected now. If some of them are still missing after
// Timeouts::silent_ps, places the shards on any ps tasks.
bool Regathering::regather_ps(Turn& turn, std::string& problem) {
  const auto take_them = [&] {
    generation_.keep_owners(turn.tasks);
    return true;
  };
  const std::vector<Awaited> missing = missing_ps(turn.tasks);
  if (missing.empty()) return take_them();
  if (turn.now - rollbacks_.current()->gathers_since < setup_.timeouts.silent_ps) return false;
  const GenerationPlan::Placed before = generation_.placed();
  const auto is_avoided = [&](TaskId ps) { return reachability_.is_avoided(turn.tasks, ps); };
  const Status placed = generation_.place(turn.tasks, is_avoided, fewest_workers(), workers_.roster().members.size());
  if (placed) return true;
  generation_.put_back(before);
  const bool are_there = std::all_of(missing.begin(), missing.end(),
                                     [](const Awaited& awaited) { return awaited.what == AwaitedFor::kLink; });
  // If the link between two ps tasks broke, they connect to each other again only in another generation. So the chief
  // forgets the broken link, and lets the next generation try it again.
  const bool lack_peers = are_there && std::none_of(missing.begin(), missing.end(), [&](const Awaited& awaited) {
                            return reachability_.is_cut_off(turn.tasks, *awaited.task);
                          });
  if (lack_peers) {
    links_.forget_peers();
    return take_them();
  }
  // Most workers can't reach a ps, and no other ps can take its shards. So the job goes on with the workers that reach
  // this ps.
  if (are_there && can_train_with(turn.tasks)) return take_them();
  problem = placed.error().message;
  return false;
}

bool Regathering::can_train_with(const Tasks& tasks) const {
  if (setup_.waits_for_lost()) return false;
  const auto workers = std::count_if(tasks.all().begin(), tasks.all().end(), [this](const auto& entry) {
    return entry.first.role == Role::kWorker && entry.second.takes_work() && reachability_.reaches_owners(entry.first);
  });
  return static_cast<std::size_t>(workers) >= setup_.least_workers();
}

bool Regathering::regather_workers(Turn& turn) {
  std::map<TaskId, Member> ready;
  std::map<TaskId, Member> spared;  // ready, but lost when the generation before started
  for (const auto& [id, task] : turn.tasks.all()) {
    if (id.role != Role::kWorker || !task.takes_work() || candidates_.is_left_out(task)) continue;
    if (worker_losses_.is_too_often(id, turn.now) && !setup_.waits_for_lost()) {
      membership_.keep_out(turn, id, membership_.lost_too_often(id, turn.now));
    } else if (!reachability_.reaches_owners(id)) {
      // invitations_.invite_again() asks the prepared workers again. Any other worker is invited here, and its answer
      // says which ps tasks it can't reach.
      if (!candidates_.is_prepared(task.member) && candidates_.may_be_asked(id, turn.now))
        invitations_.invite(turn, task.member);
    } else if (candidates_.is_prepared(task.member)) {
      candidates_.let_in(id);
      (candidates_.was_lost_at_start(id) && !setup_.waits_for_lost() ? spared : ready).emplace(id, task.member);
    } else {
      invitations_.invite(turn, task.member);
    }
  }
  if (!missing_workers(turn.tasks, turn.now).empty()) return false;
  if (ready.size() < setup_.least_workers()) ready.merge(spared);
  std::vector<Member> roster;
  if (setup_.waits_for_lost())
    for (const TaskId rank : workers_.ranks()) roster.push_back(ready.at(rank));
  else
    for (const auto& [id, member] : ready) roster.push_back(member);
  workers_.choose_members(std::move(roster));
  return true;
}

std::vector<Awaited> Regathering::late_workers(const Turn& turn) const {
  std::vector<Awaited> late;
  if (turn.now >= waits_for_workers_until_) return late;
  for (const auto& [id, task] : turn.tasks.all())
    if (id.role == Role::kWorker && task.is_listed && task.state == TaskState::kWaiting)
      late.push_back(absent(id, &task, rollbacks_.current()->gathers_since));
  return late;
}

std::size_t Regathering::fewest_workers() const {
  return setup_.waits_for_lost() ? workers_.ranks().size() : setup_.least_workers();
}

// A ps may be back with less memory than before, and there may be more workers than before. If the memory doesn't
// suffice for all workers, the workers at the end of the roster stay out.
bool Regathering::regather_memory(Turn& turn) {
  std::vector<Member> roster = workers_.roster().members;
  if (const Status placed = generation_.make_places(turn.tasks, fewest_workers(), roster.size()); !placed) {
    lacks_memory_ = true;
    explain("waiting for memory: " + placed.error().message);
    return false;
  }
  while (roster.size() > generation_.places()) {
    membership_.keep_out(turn, roster.back().task, membership_.no_place_for(turn.tasks, roster.size()));
    roster.pop_back();
  }
  workers_.choose_members(std::move(roster));
  return true;
}

void Regathering::find_restore(Turn& turn) {
  workers_.use_roster();
  generation_.draw_numbers(turn.term);
  if (!setup_.takes_checkpoints()) {
    generation_.restore_from(std::nullopt);
    return launch_.begin_generation(turn);
  }
  stage_.enter(Stage::kFind);
  stage_.set_deadline(turn.now + setup_.timeouts.setup);
  folder_.ask_newest(turn);
}

std::vector<Awaited> Regathering::missing_ps(const Tasks& tasks) const {
  std::vector<Awaited> missing;
  for (const Member& ps : generation_.holders()) {
    const Task* task = tasks.find(ps.task);
    if (task == nullptr || !task->takes_work())
      missing.push_back(absent(ps.task, task, rollbacks_.current()->gathers_since));
    else if (reachability_.is_avoided(tasks, ps.task))
      missing.push_back({ps.task, AwaitedFor::kLink, rollbacks_.current()->gathers_since});
  }
  return missing;
}

// True if the worker can be in the next generation.
bool Regathering::is_ready(const Task& task, Instant now) const {
  const TaskId id = task.member.task;
  if (id.role != Role::kWorker || !task.takes_work() || !candidates_.is_prepared(task.member)) return false;
  if (!reachability_.reaches_owners(id) || candidates_.is_left_out(task)) return false;
  return setup_.waits_for_lost() || !worker_losses_.is_too_often(id, now);
}

std::vector<Awaited> Regathering::missing_workers(const Tasks& tasks, Instant now) const {
  std::vector<Awaited> missing;
  if (setup_.waits_for_lost()) {
    for (const TaskId rank : workers_.ranks()) {
      const Task* task = tasks.find(rank);
      if (task != nullptr && is_ready(*task, now)) continue;
      if (task != nullptr && task->takes_work() && !reachability_.reaches_owners(rank)) {
        missing.push_back({rank, AwaitedFor::kLink, rollbacks_.current()->gathers_since});
        continue;
      }
      const auto invited = task != nullptr ? candidates_.invited().find(task->member) : candidates_.invited().end();
      if (invited != candidates_.invited().end() && task->takes_work())
        missing.push_back({rank, AwaitedFor::kDescription, invited->second});
      else
        missing.push_back(absent(rank, task, rollbacks_.current()->gathers_since));
    }
    return missing;
  }
  const auto ready = static_cast<std::size_t>(std::count_if(
      tasks.all().begin(), tasks.all().end(), [&](const auto& entry) { return is_ready(entry.second, now); }));
  if (ready < setup_.least_workers())
    missing.push_back(
        {std::nullopt, AwaitedFor::kHello, rollbacks_.current()->gathers_since, setup_.least_workers() - ready});
  return missing;
}

}  // namespace disttrain::chiefd
