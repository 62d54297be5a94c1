#include "chiefd/core/job/rules/links.h"

#include <string>

#include "chiefd/core/job/views/links.h"

namespace disttrain::chiefd::rules {
namespace {

Verdict broken_link_of_worker(const JobFacts& job, const Tasks& tasks, Instant now, const Member& from,
                              const Links::Link& link) {
  if (!job.workers.is_taking_part(from) || (job.stage.is(Stage::kTrain) && !job.workers.is_unfinished(from)))
    return Stay{};
  const bool is_ps_lost = views::is_cut_off(job, tasks, link.to);
  if (job.stage.is(Stage::kOpen)) return Recover{{std::nullopt, job.links.text(now, link)}, Loss::kLink};
  if (job.stage.is(Stage::kEvaluate) && !is_ps_lost)
    return job.stage.awaits(from) ? Verdict(EvaluateWithout{from}) : Verdict(Stay{});
  if (!job.stage.is(Stage::kTrain) && !job.stage.is(Stage::kEvaluate)) return Stay{};
  if (is_ps_lost) return WaitForLinks{link.to};
  return Lose{from, job.links.text(now, link), Loss::kLink};
}

}  // namespace

Verdict broken_link(const JobFacts& job, const Tasks& tasks, Instant now, const Member& from, const Links::Link& link) {
  const Task* ps = tasks.find(link.to);
  const bool is_owner_there = ps != nullptr && ps->is_there() && ps->connected && job.generation.is_owner(ps->member) &&
                              now - ps->last_heard <= job.setup.timeouts.silent;
  if (!is_owner_there || job.pauses.is_silent(link.to)) return Stay{};
  if (from.task.role != Role::kPs) return broken_link_of_worker(job, tasks, now, from, link);
  if (!job.stage.is(Stage::kCreate) && !job.stage.is(Stage::kTrain)) return Stay{};
  return Recover{{std::nullopt, job.links.text(now, link)}, Loss::kLink};
}

const char* consequence_of(const Verdict& verdict, const Member& from) {
  if (std::holds_alternative<Recover>(verdict))
    return from.task.role == Role::kPs ? "the job rolls back and chooses the owners of its shards again"
                                       : "the job rolls back and goes on without this link";
  if (std::holds_alternative<EvaluateWithout>(verdict)) return "another worker evaluates";
  if (std::holds_alternative<Lose>(verdict)) return "the worker is removed from the job until its link is back";
  return "";
}

}  // namespace disttrain::chiefd::rules
