#include "chiefd/core/job/link_failures.h"

#include <algorithm>

#include "chiefd/core/job/parts.h"
#include "common/format_duration.h"

namespace disttrain::chiefd {
namespace {

constexpr char kLinkLost[] = "link_lost";
constexpr char kLinkBack[] = "link_back";

// While a link is broken, a task repeats its complaint within this time. If no complaint comes within this time, the
// chief regards the link as working again.
Duration longest_pause(const Timeouts& timeouts) {
  return 2 * (timeouts.dial + timeouts.reconnect_longest);
}

}  // namespace

LinkFailures::LinkFailures(JobParts& parts)
    : setup_(parts.setup),
      stage_(parts.stage),
      events_(parts.events),
      condition_(parts.condition),
      generation_(parts.generation),
      workers_(parts.workers),
      candidates_(parts.candidates),
      pauses_(parts.pauses),
      links_(parts.links),
      members_(parts.members),
      reachability_(parts.reachability),
      membership_(parts.membership),
      pausing_(parts.pausing),
      recovery_(parts.recovery),
      checkpointing_(parts.checkpointing),
      ending_(parts.ending) {}

void LinkFailures::on_accusation(Turn& turn, const Member& from, const Accusation& accusation) {
  const Links::Link link{from.task, accusation.accused};
  if (accusation.withdrawn) return mend(turn, link);
  if (accusation.generation != generation_.number() || turn.tasks.find(accusation.accused) == nullptr) return;
  if (accusation.accused == from.task) return turn.tasks.doubt(from.task, turn.actions);
  turn.tasks.accuse(accusation.accused, turn.actions);
  if (accusation.accused.role != Role::kPs) return;
  // In stage kRegather the job has given up the shards of its last generation. A complaint of a ps is about these
  // shards, and says nothing about the shards of the next generation.
  if (!has_channels() || (from.task.role == Role::kPs && stage_.is(Stage::kRegather))) return;
  links_.accuse(turn.now, link, accusation.lasts, accusation.reason);
  if (accusation.lasts >= setup_.timeouts.unreachable) judge(turn, from, link);
}

// Forgets the broken links of a task that is gone. The chief keeps the links of a worker that it has removed, because
// the worker comes back as another process, and its link may still be broken. The next process of a lost ps has no
// broken links yet. So the links of a ps are forgotten when the ps is lost. They are forgotten again when the next
// process joins, because complaints may come in between.
void LinkFailures::on_finding(const Turn& turn, const Finding& finding) {
  const Member& member = finding.member;
  const bool is_lost = finding.what == Finding::What::kLost;
  const Task* task = turn.tasks.find(member.task);
  const bool is_another = member.task.role == Role::kPs && (is_lost || finding.what == Finding::What::kJoined);
  const bool is_away = (is_lost || finding.what == Finding::What::kLeft) && (task == nullptr || !task->is_there()) &&
                       !workers_.is_lost(member);
  if (is_another || is_away) links_.forget(member.task);
}

// Returns false in the first stages of a job's start, because no task has channels of the new generation yet. A
// complaint in these stages is about channels of an earlier generation.
bool LinkFailures::has_channels() const {
  return !stage_.is(Stage::kGather) && !stage_.is(Stage::kDescribe) && !stage_.is(Stage::kFolder) &&
         !stage_.is(Stage::kInit);
}

void LinkFailures::tell(Turn& turn, const Links::Link& link, const std::string& consequence) {
  links_.set_told(link);
  events_.tell(turn, kLinkLost, 2, links_.text(turn.now, link) + ": " + consequence, link.from);
}

void LinkFailures::mend(Turn& turn, const Links::Link& link) {
  const auto outage = links_.mend(link);
  if (!outage.empty() && outage.mapped().is_told)
    events_.tell(turn, kLinkBack, 1,
                 to_string(link.from) + " reaches " + to_string(link.to) + " again, after " +
                     format_duration(turn.now - outage.mapped().since),
                 link.from);
}

// Decides what follows from a broken link. Does nothing if the chief itself doesn't hear the ps, because the rules for
// silent tasks apply then.
void LinkFailures::judge(Turn& turn, const Member& from, const Links::Link& link) {
  const Task* ps = turn.tasks.find(link.to);
  const bool is_owner_there = ps != nullptr && ps->is_there() && ps->connected && generation_.is_owner(ps->member) &&
                              turn.now - ps->last_heard <= setup_.timeouts.silent;
  if (!is_owner_there || pauses_.is_silent(link.to)) return;
  if (from.task.role != Role::kPs) return judge_worker(turn, from, link);
  if (!stage_.is(Stage::kCreate) && !stage_.is(Stage::kTrain)) return;
  tell(turn, link, "the job rolls back and chooses the owners of its shards again");
  recovery_.recover(turn, {std::nullopt, links_.text(turn.now, link)}, Loss::kLink);
}

void LinkFailures::judge_worker(Turn& turn, const Member& from, const Links::Link& link) {
  if (!workers_.is_taking_part(from) || (stage_.is(Stage::kTrain) && !workers_.is_unfinished(from))) return;
  const bool is_ps_lost = reachability_.is_cut_off(turn.tasks, link.to);
  if (stage_.is(Stage::kOpen)) {
    tell(turn, link, "the job rolls back and goes on without this link");
    candidates_.note_lost_at_start(from.task);
    return recovery_.recover(turn, {std::nullopt, links_.text(turn.now, link)}, Loss::kLink);
  }
  if (stage_.is(Stage::kEvaluate) && !is_ps_lost) {
    if (!stage_.awaits(from)) return;
    tell(turn, link, "another worker evaluates");
    workers_.mark_lost(from);
    return ending_.evaluate(turn, Loss::kLink);
  }
  if (!stage_.is(Stage::kTrain) && !stage_.is(Stage::kEvaluate)) return;
  if (is_ps_lost) return wait_for_links(turn, link.to);
  tell(turn, link, "the worker is removed from the job until its link is back");
  membership_.lose(turn, from, links_.text(turn.now, link), Loss::kLink);
}

void LinkFailures::wait_for_links(Turn& turn, TaskId ps) {
  std::string links;
  std::size_t count = 0;
  const std::vector<TaskId> all = reachability_.voters(turn.tasks);
  for (const TaskId worker : all) {
    const Links::Link link{worker, ps};
    if (!links_.is_broken(link)) continue;
    ++count;
    links_.set_told(link);
    links += (links.empty() ? "" : ", ") + to_string(worker) + " for " +
             format_duration(turn.now - links_.broken().at(link).since);
  }
  const std::string why = std::to_string(count) + " of " + std::to_string(all.size()) +
                          (all.size() == 1 ? " worker" : " workers") + " can't reach " + to_string(ps) + " (" + links +
                          ")";
  pauses_.note_silent(ps, Silence{turn.now, true, why});
  checkpointing_.abandon(turn, why);
  events_.tell(turn, kLinkLost, 2, why + ": the job waits for their links", ps);
  pausing_.tell_workers(turn, true, why);
  condition_.set(turn, JobState::kPaused, why + "; waiting for their links");
}

void LinkFailures::review(Turn& turn) {
  if (stage_.is(Stage::kTrain) || stage_.is(Stage::kEvaluate)) {
    std::vector<Links::Link> stale;
    for (const auto& [link, outage] : links_.broken()) {
      const Task* task = turn.tasks.find(link.from);
      const bool has_channels = task != nullptr && members_.uses(task->member) && !workers_.is_joining(task->member);
      if (has_channels && turn.now - outage.told > longest_pause(setup_.timeouts)) stale.push_back(link);
    }
    for (const Links::Link& link : stale) links_.mend(link);
  }
  const auto is_back = [&](TaskId ps) { return !reachability_.is_cut_off(turn.tasks, ps); };
  if (pauses_.note_links_back(is_back)) pausing_.resume(turn, "the links are back");
}

void LinkFailures::note_reach(Turn& turn, const Member& from, const std::vector<Member>& unreachable) {
  for (const auto& [id, task] : turn.tasks.all()) {
    if (id.role != Role::kPs) continue;
    const Links::Link link{from.task, id};
    if (std::find(unreachable.begin(), unreachable.end(), task.member) == unreachable.end()) {
      mend(turn, link);
      continue;
    }
    candidates_.ask_again_after(from.task, turn.now + setup_.timeouts.relink);
    links_.accuse(turn.now, link, Duration::zero(), "");
    if (generation_.is_owner(task.member) && !links_.broken().at(link).is_told)
      tell(turn, link, "the worker stays out of the job until its link is back");
  }
}

}  // namespace disttrain::chiefd
