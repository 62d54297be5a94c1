// The same ps tasks own the shards again, even if their processes are new, because then nothing moves. A ps may be back
// with less memory than before, and there may be more workers than before, so memory is planned anew each time.
#include "chiefd/core/job/rules/regather.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "chiefd/core/job/views/fitness.h"
#include "chiefd/core/job/views/links.h"
#include "chiefd/core/job/views/recovery.h"
#include "chiefd/core/job/views/workers.h"

namespace disttrain::chiefd::rules {
namespace {

// Asks a worker again that reached no owner. invite_again() asks the prepared ones.
std::optional<Verdict> invitation_of_unreaching(const JobFacts& job, const Member& worker, Instant now) {
  if (job.candidates.is_prepared(worker) || !job.candidates.may_be_asked(worker.task, now)) return std::nullopt;
  return Invite{worker};
}

// Why no other ps takes the shards of the missing ones. `problem`: why the connected ps tasks can't. `are_there`: the
// missing ones are connected. "": they aren't, and the cluster has no other ps.
std::string why_no_other_ps(const Tasks& tasks, const std::vector<Awaited>& missing, bool are_there,
                            const std::string& problem) {
  bool has_others = false;
  for (const auto& [id, task] : tasks.all()) {
    const bool is_missing =
        std::any_of(missing.begin(), missing.end(), [ps = id](const Awaited& awaited) { return awaited.task == ps; });
    if (id.role != Role::kPs || is_missing) continue;
    if (task.takes_work()) return "the other ps tasks can't take the shards: " + problem;
    has_others = true;
  }
  if (are_there) return problem;
  return has_others ? "no other ps is connected" : "";
}

}  // namespace

Verdict next_owners(const JobFacts& job, const Tasks& tasks, Instant now) {
  const std::vector<Awaited> missing = views::missing_ps(job, tasks);
  if (missing.empty()) return KeepOwners{};
  if (now - job.rollbacks.current()->gathers_since < job.setup.timeouts.silent_ps) return LackPs{};
  const std::size_t roster = job.workers.roster().members.size();
  Result<GenerationPlan::Placed> placed = job.generation.plan(
      tasks, [&](TaskId ps) { return views::is_avoided(job, tasks, ps); }, roster);
  const Result<std::uint32_t> places =
      placed ? job.generation.plan_places(tasks, *placed, views::fewest_workers(job), roster)
             : tl::unexpected(placed.error());
  if (places) return PlaceAnew{std::move(*placed)};
  const bool are_there = std::all_of(missing.begin(), missing.end(),
                                     [](const Awaited& awaited) { return awaited.what == AwaitedFor::kLink; });
  // If the link between two ps tasks broke, they connect to each other again only in another generation. So the chief
  // forgets the broken link, and lets the next generation try it again.
  const bool lack_peers = are_there && std::none_of(missing.begin(), missing.end(), [&](const Awaited& awaited) {
                            return views::is_cut_off(job, tasks, *awaited.task);
                          });
  if (lack_peers) return KeepOwners{true};
  // Most workers can't reach a ps, and no other ps can take its shards. So the job goes on with the workers that reach
  // this ps.
  if (are_there && views::can_train_with(job, tasks, now)) return KeepOwners{};
  return LackPs{why_no_other_ps(tasks, missing, are_there, places.error().message)};
}

std::vector<Verdict> next_invitations(const JobFacts& job, const Tasks& tasks, Instant now) {
  std::vector<Verdict> verdicts;
  for (const auto& [id, task] : tasks.all()) {
    if (id.role != Role::kWorker || !views::is_available(job, task)) continue;
    if (job.worker_losses.is_too_often(id, now) && !job.setup.waits_for_lost()) {
      verdicts.push_back(KeepOut{id, views::lost_too_often(job, id, now)});
    } else if (!views::reaches_owners(job, id)) {
      if (const std::optional<Verdict> invitation = invitation_of_unreaching(job, task.member, now))
        verdicts.push_back(*invitation);
    } else if (job.candidates.is_prepared(task.member)) {
      verdicts.push_back(LetIn{id});
    } else {
      verdicts.push_back(Invite{task.member});
    }
  }
  return verdicts;
}

Verdict next_roster(const JobFacts& job, const Tasks& tasks, Instant now) {
  if (!views::missing_workers(job, tasks, now).empty()) {
    std::optional<views::Blame> blame = views::in_vain(job, tasks, now);
    return blame ? Verdict(Fail{std::move(blame->error), blame->task}) : Verdict(Stay{});
  }
  std::map<TaskId, Member> ready;
  std::map<TaskId, Member> spared;  // ready, but lost when the generation before started
  for (const auto& [id, task] : tasks.all())
    if (id.role == Role::kWorker && views::is_ready(job, task, now))
      (job.candidates.was_lost_at_start(id) && !job.setup.waits_for_lost() ? spared : ready).emplace(id, task.member);
  if (ready.size() < job.setup.least_workers()) ready.merge(spared);
  ChooseRoster chosen;
  if (job.setup.waits_for_lost())
    for (const TaskId rank : job.workers.ranks()) chosen.roster.push_back(ready.at(rank));
  else
    for (const auto& [id, member] : ready) chosen.roster.push_back(member);
  return chosen;
}

Verdict next_missing(const JobFacts& job, const Tasks& tasks, Instant now, const Verdict& owners) {
  const LackPs* lack = std::get_if<LackPs>(&owners);
  const std::vector<Awaited> workers = views::missing_workers(job, tasks, now);
  if (lack == nullptr && workers.empty()) return Stay{};
  std::vector<Awaited> missing = views::missing_ps(job, tasks);
  missing.insert(missing.end(), workers.begin(), workers.end());
  std::string shortage = "waiting for " + to_string(missing);
  if (lack != nullptr && !lack->why.empty()) shortage += " (" + lack->why + ")";
  if (!workers.empty())
    for (const auto& [task, why] : job.candidates.kept_out()) shortage += "; " + to_string(task) + " " + why;
  if (const std::string links = views::broken_links_text(job, now); !links.empty()) shortage += "; " + links;
  return AwaitTasks{std::move(shortage)};
}

Verdict next_places(const JobFacts& job, const Tasks& tasks) {
  const Result<std::uint32_t> places = job.generation.plan_places(
      tasks, job.generation.placed(), views::fewest_workers(job), job.workers.roster().members.size());
  if (!places) return AwaitTasks{"waiting for memory: " + places.error().message, true};
  return MakePlaces{*places};
}

std::vector<Verdict> next_left_out(const JobFacts& job, const Tasks& tasks) {
  std::vector<Verdict> verdicts;
  std::vector<Member> roster = job.workers.roster().members;
  while (roster.size() > job.generation.places()) {
    verdicts.push_back(KeepOut{roster.back().task, views::no_place_for(job, tasks, roster.size())});
    roster.pop_back();
  }
  if (!verdicts.empty()) verdicts.push_back(ChooseRoster{std::move(roster)});
  return verdicts;
}

Verdict next_begins(const JobFacts& job, const Tasks& tasks, Instant now) {
  if (now < job.rollbacks.current()->not_before) return Stay{};
  if (const std::vector<Awaited> late = views::late_workers(job, tasks, now); !late.empty())
    return AwaitTasks{"waiting for " + to_string(late) + " after a restart of the chief"};
  return BeginNext{};
}

}  // namespace disttrain::chiefd::rules
