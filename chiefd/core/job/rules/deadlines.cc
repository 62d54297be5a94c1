#include "chiefd/core/job/rules/deadlines.h"

#include <algorithm>
#include <string>
#include <vector>

#include "chiefd/core/job/views/checkpoints.h"
#include "chiefd/core/job/views/evaluations.h"
#include "chiefd/core/job/views/members.h"
#include "chiefd/core/job/views/start.h"
#include "chiefd/core/job/views/workers.h"
#include "common/format_duration.h"
#include "common/timeouts.h"

namespace disttrain::chiefd::rules {
namespace {

// When the awaited tasks last made progress; Instant() if they have made none. Progress of one task is enough: for
// example, a ps whose shards are ready makes no progress while it waits for the pacer, which may still restore.
Instant newest_progress(const JobFacts& job, const Tasks& tasks) {
  if (job.stage.is(Stage::kRegather)) return views::newest_work(job, tasks, job.candidates.invited_members());
  if (views::awaits_evaluators(job)) return views::newest_evaluation_work(job, tasks);
  return job.stage.traits().has_long_work ? views::newest_work(job, tasks, job.stage.awaited()) : Instant();
}

// Returns the awaited task to blame. This is the pacer if the stage waits for it, because the other tasks may wait for
// the pacer. Otherwise it is the task whose last progress is oldest.
TaskId who_stands_still(const JobFacts& job, const Tasks& tasks) {
  if (!job.stage.awaits_anyone() || (!job.generation.owners().empty() && job.stage.awaits(job.generation.pacer())))
    return job.generation.pacer().task;
  return std::min_element(job.stage.awaited().begin(), job.stage.awaited().end(),
                          [&](const Member& a, const Member& b) {
                            return views::worked_at(job, tasks, a) < views::worked_at(job, tasks, b);
                          })
      ->task;
}

Verdict give_up(const JobFacts& job, const Tasks& tasks, Instant now, const std::string& what) {
  const bool has_worked = views::newest_work(job, tasks, job.stage.awaited()) != Instant();
  const std::string since =
      (has_worked ? ", and has stood still for " : " within ") + format_duration(job.setup.timeouts.setup);
  const Error error{ErrorCode::kUnavailable, "it heartbeats, but " + what + since};
  const std::vector<Member> late(job.stage.awaited().begin(), job.stage.awaited().end());
  if (job.stage.is(Stage::kDescribe)) return DescribeWithout{late, error};
  if (job.stage.is(Stage::kOpen) && !late.empty() &&
      views::may_start_with(job,
                            views::others_in_roster(job, job.stage.awaited()) + views::others_outside(job, tasks, now)))
    return StartWithout{late, error, true};
  return Fail{error, who_stands_still(job, tasks)};
}

// The pacer's last report is late. Usually the job then rolls back. But if a ps is silent, or if the chief and the
// pacer don't hear each other, the pacer gets the full time again. In this case the time limit for silent tasks decides
// when the job rolls back.
Verdict settle(const JobFacts& job, const Tasks& tasks, Instant now) {
  const Member& pacer = job.generation.pacer();
  if (job.pauses.is_any_silent() || !tasks.hears_both_ways(pacer)) return WaitAgain{now + job.setup.answer_limit()};
  return Recover{{pacer.task, "it heartbeats, but didn't report its last step in time"}};
}

// The workers of a job that is being stopped haven't ended their steps. While a ps is silent they can't, and the time
// limit for silent tasks decides. A worker that evaluates has the time that an evaluation has. After that the job stops
// without these workers, so that it can still take its last checkpoint.
Verdict stop(const JobFacts& job, const Tasks& tasks, Instant now) {
  const Duration limit = std::max(job.setup.timeouts.close, job.setup.config().job.stall_timeout);
  if (job.pauses.is_any_silent()) return WaitAgain{now + limit};
  const Instant evaluated = job.stage.since() + job.setup.config().job.stall_timeout * kEvaluationPatience;
  if (views::is_evaluating(job, tasks) && now < evaluated) return WaitAgain{std::min(now + limit, evaluated)};
  const auto& late = job.workers.unfinished();
  return StopWithout{{late.begin(), late.end()}, "it didn't reach the end of its step in time"};
}

}  // namespace

// This function is long because it has a case for each stage.
Verdict at_deadline(const JobFacts& job, const Tasks& tasks, Instant now) {
  const Duration limit = job.setup.timeouts.setup;
  const Instant worked = newest_progress(job, tasks);
  if (worked != Instant() && now < worked + limit) return Extend{worked + limit};
  const std::string within = format_duration(limit);
  const auto fail = [](const std::string& why) { return Fail{Error{ErrorCode::kFailed, why}}; };
  switch (job.stage.at()) {
    case Stage::kGather:
    case Stage::kRegather:
      // absences.h bounds the wait for absent tasks. Without absent tasks the job goes on by itself, after a
      // pause that is shorter than this deadline.
      return WaitAgain{now + limit};
    case Stage::kDescribe:
      return give_up(job, tasks, now, "didn't read the data and build the model");
    case Stage::kInit:
      return fail(job.setup.config().checkpoint.init_from + " (checkpoint.init_from) hasn't been read within " +
                  within + ": does its file system hang?");
    case Stage::kFinalCut:
      return Fail{views::no_final_checkpoint(job, views::folder_problem(job, now, ""))};
    case Stage::kFolder:
    case Stage::kFind:
      return fail(views::folder_problem(job, now, " for " + within));
    case Stage::kGeneration:
      return fail("the chief's own disk hasn't written the record of the job's generation within " + within);
    case Stage::kCreate:
      return give_up(job, tasks, now, "didn't create its shards");
    case Stage::kOpen:
      return give_up(job, tasks, now, "didn't open the job");
    case Stage::kRoster:
      return give_up(job, tasks, now, "didn't take the roster");
    case Stage::kTrain:
      return job.condition.is_stopping() ? stop(job, tasks, now) : Verdict(Stay{});
    case Stage::kSettle:
      return settle(job, tasks, now);
    case Stage::kEvaluate:
      if (views::awaits_evaluators(job)) return GiveUpEvaluators{"no evaluator has made progress for " + within};
      return give_up(job, tasks, now, "didn't finish the final evaluation");
    case Stage::kClose:
      return LeaveBehind{};
    case Stage::kReclaim:
    case Stage::kQueued:
    case Stage::kReleased:
      return Stay{};
  }
  return Stay{};
}

}  // namespace disttrain::chiefd::rules
