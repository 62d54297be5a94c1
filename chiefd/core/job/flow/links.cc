// Complaints about links: whose they are, which still hold, and what follows from a link that stays broken.
#include "chiefd/core/job/flow/flow.h"

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "chiefd/core/job/rules/links.h"
#include "chiefd/core/job/views/links.h"
#include "chiefd/core/job/views/members.h"
#include "common/format_duration.h"

namespace disttrain::chiefd::flow {
namespace {

constexpr char kLinkLost[] = "link_lost";
constexpr char kLinkBack[] = "link_back";

// While a link is broken, a task repeats its complaint within this time. If no complaint comes within this time, the
// chief regards the link as working again.
Duration longest_pause(const Timeouts& timeouts) {
  return 2 * (timeouts.dial + timeouts.reconnect_longest);
}

void tell_link(JobFacts& job, Turn& turn, const Links::Link& link, const std::string& consequence) {
  job.links.set_told(link);
  tell(job, turn, kLinkLost, 2, job.links.text(turn.now, link) + ": " + consequence, link.from);
}

void mend_link(JobFacts& job, Turn& turn, const Links::Link& link) {
  const auto outage = job.links.mend(link);
  if (!outage.empty() && outage.mapped().is_told)
    tell(job, turn, kLinkBack, 1,
         to_string(link.from) + " reaches " + to_string(link.to) + " again, after " +
             format_duration(turn.now - outage.mapped().since),
         link.from);
}

}  // namespace

void wait_for_links(JobFacts& job, Turn& turn, TaskId ps) {
  std::string links;
  std::size_t count = 0;
  const std::vector<TaskId> all = views::voters(job, turn.tasks);
  for (const TaskId worker : all) {
    const Links::Link link{worker, ps};
    if (!job.links.is_broken(link)) continue;
    ++count;
    job.links.set_told(link);
    links += (links.empty() ? "" : ", ") + to_string(worker) + " for " +
             format_duration(turn.now - job.links.broken().at(link).since);
  }
  const std::string why = std::to_string(count) + " of " + std::to_string(all.size()) +
                          (all.size() == 1 ? " worker" : " workers") + " can't reach " + to_string(ps) + " (" + links +
                          ")";
  job.pauses.note_silent(ps, Silence{turn.now, true, why});
  abandon_attempt(job, turn, why);
  tell(job, turn, kLinkLost, 2, why + ": the job waits for their links", ps);
  tell_pause(job, turn, true, why);
  set_state(job, turn, JobState::kPaused, why + "; waiting for their links");
}

void on_accusation(JobFacts& job, Turn& turn, const Member& from, const Accusation& accusation) {
  const Links::Link link{from.task, accusation.accused};
  if (accusation.withdrawn) return mend_link(job, turn, link);
  if (accusation.generation != job.generation.number() || turn.tasks.find(accusation.accused) == nullptr) return;
  if (accusation.accused == from.task) return turn.tasks.doubt(from.task, turn.actions);
  turn.tasks.accuse(accusation.accused, turn.actions);
  if (accusation.accused.role != Role::kPs) return;
  // In stage kRegather the job has given up the shards of its last generation. A complaint of a ps is about these
  // shards, and says nothing about the shards of the next generation.
  if (!job.stage.traits().has_channels || (from.task.role == Role::kPs && job.stage.is(Stage::kRegather))) return;
  job.links.accuse(turn.now, link, accusation.lasts, accusation.reason);
  if (accusation.lasts < job.setup.timeouts.unreachable) return;
  const Verdict verdict = rules::broken_link(job, turn.tasks, turn.now, from, link);
  const std::string consequence = rules::consequence_of(verdict, from);
  if (!consequence.empty()) tell_link(job, turn, link, consequence);
  const bool is_at_start = job.stage.is(Stage::kOpen) && std::holds_alternative<Recover>(verdict);
  if (is_at_start) job.candidates.note_lost_at_start(from.task);
  carry_out(job, turn, verdict);
}

// Forgets the broken links of a task that is gone. The chief keeps the links of a worker that it has removed, because
// the worker comes back as another process, and its link may still be broken. The next process of a lost ps has no
// broken links yet. So the links of a ps are forgotten when the ps is lost. They are forgotten again when the next
// process joins, because complaints may come in between.
void forget_links(JobFacts& job, const Turn& turn, const Finding& finding) {
  const Member& member = finding.member;
  const bool is_lost = finding.what == Finding::What::kLost;
  const Task* task = turn.tasks.find(member.task);
  const bool is_another = member.task.role == Role::kPs && (is_lost || finding.what == Finding::What::kJoined);
  const bool is_away = (is_lost || finding.what == Finding::What::kLeft) && (task == nullptr || !task->is_there()) &&
                       !job.workers.is_lost(member);
  if (is_another || is_away) job.links.forget(member.task);
}

void review_links(JobFacts& job, Turn& turn) {
  if (job.stage.is(Stage::kTrain) || job.stage.is(Stage::kEvaluate)) {
    std::vector<Links::Link> stale;
    for (const auto& [link, outage] : job.links.broken()) {
      const Task* task = turn.tasks.find(link.from);
      const bool has_channels =
          task != nullptr && views::uses(job, task->member) && !job.workers.is_joining(task->member);
      if (has_channels && turn.now - outage.told > longest_pause(job.setup.timeouts)) stale.push_back(link);
    }
    for (const Links::Link& link : stale) job.links.mend(link);
  }
  const auto is_back = [&](TaskId ps) { return !views::is_cut_off(job, turn.tasks, ps); };
  if (job.pauses.note_links_back(is_back)) resume(job, turn, "the links are back");
}

void note_reach(JobFacts& job, Turn& turn, const Member& from, const std::vector<Member>& unreachable) {
  for (const auto& [id, task] : turn.tasks.all()) {
    if (id.role != Role::kPs) continue;
    const Links::Link link{from.task, id};
    if (std::find(unreachable.begin(), unreachable.end(), task.member) == unreachable.end()) {
      mend_link(job, turn, link);
      continue;
    }
    job.candidates.ask_again_after(from.task, turn.now + job.setup.timeouts.relink);
    job.links.accuse(turn.now, link, Duration::zero(), "");
    if (job.generation.is_owner(task.member) && !job.links.broken().at(link).is_told)
      tell_link(job, turn, link, "the worker stays out of the job until its link is back");
  }
}

}  // namespace disttrain::chiefd::flow
