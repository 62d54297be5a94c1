#include "chiefd/core/job/rules/losses.h"

#include <algorithm>

#include "chiefd/core/job/views/start.h"
#include "common/format_duration.h"

namespace disttrain::chiefd::rules {
namespace {

// A rollback would lose the training since the newest checkpoint. So the job waits for a silent ps for as long as this
// training took. It waits at least Timeouts::silent_ps, and at most this long, or job.ps_timeout if that is shorter.
constexpr int kMostPatience = 60;  // heartbeat timeouts

Duration patience_with_ps(const JobFacts& job, Instant silent_since) {
  const Duration age = silent_since - job.schedule.newest_at();
  const Duration limit = job.setup.config().job.ps_timeout;
  const Duration most = job.setup.timeouts.silent * kMostPatience;
  const Duration longest = limit == Duration::zero() ? most : std::min(most, limit);
  return std::clamp(age, job.setup.timeouts.silent_ps, std::max(longest, job.setup.timeouts.silent_ps));
}

Loss loss_of(const Finding& finding) {
  return finding.was_told_to_end ? Loss::kLeft : Loss::kCounts;
}

// Before the generation trains.
Verdict lost_at_start(const JobFacts& job, const Tasks& tasks, Instant now, const Finding& finding) {
  const Member& member = finding.member;
  const Cause cause{member.task, finding.why};
  if (finding.was_told_to_end || !views::may_start_without(job, tasks, now, member))
    return Recover{cause, loss_of(finding)};
  if (job.stage.is(Stage::kOpen)) return StartWithout{{member}, Error{ErrorCode::kUnavailable, finding.why}};
  return StartAgainWithout{member, finding.why, views::loss_at_start(job, member.task)};
}

}  // namespace

Verdict lost_owner(const JobFacts& job, const Finding& finding) {
  const Cause cause{finding.member.task, finding.why};
  if (finding.what == Finding::What::kSilent && job.stage.traits().has_trained)
    return PauseForPs{finding.member, to_string(cause) + "; waiting for it to return"};
  return Recover{cause, loss_of(finding)};
}

Verdict silent_too_long(const JobFacts& job, const Tasks& tasks, Instant now) {
  if (job.condition.has_ended()) return Stay{};
  for (const auto& [task, silence] : job.pauses.silent_ps()) {
    const Duration lasts = now - silence.since;
    if (lasts <= patience_with_ps(job, silence.since)) continue;
    if (silence.is_link) return Recover{{std::nullopt, silence.why}, Loss::kLink};
    return Recover{{task, "it has been silent for " + format_duration(lasts)},
                   tasks.find(task)->leaving ? Loss::kLeft : Loss::kCounts};
  }
  return Stay{};
}

Verdict lost_worker(const JobFacts& job, const Tasks& tasks, Instant now, const Finding& finding) {
  switch (job.stage.at()) {
    case Stage::kTrain:
      return Lose{finding.member, finding.why, loss_of(finding)};
    case Stage::kReclaim:
      // The pacer is asked with the workers that are back.
      if (job.stage.awaits_anyone()) return Lose{finding.member, finding.why, loss_of(finding)};
      return AwaitAgain{finding.member};
    case Stage::kSettle:
    case Stage::kFinalCut:
    case Stage::kEvaluate:
      return EndWithout{finding.member, loss_of(finding)};
    case Stage::kQueued:
    case Stage::kGather:
    case Stage::kDescribe:
    case Stage::kFolder:
    case Stage::kInit:
    case Stage::kRegather:
    case Stage::kFind:
    case Stage::kGeneration:
    case Stage::kCreate:
    case Stage::kOpen:
    case Stage::kRoster:
    case Stage::kClose:
    case Stage::kReleased:
      break;
  }
  return lost_at_start(job, tasks, now, finding);
}

}  // namespace disttrain::chiefd::rules
