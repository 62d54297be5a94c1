// Everything that a job waits for has a bound, and this file asks the rules of it: the deadline of a stage, the record
// that the chief's own disk hasn't written, and tasks that are away. Waits for absent tasks are reported as events:
// after half of the limit, or after half of Timeouts::setup if there is none, and then after twice the time again, but
// at least once an hour. So an operator hears of a wait before it fails the job, and a wait without a limit has
// deadlines too.
#include "chiefd/core/job/flow/flow.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "chiefd/core/job/rules/absences.h"
#include "chiefd/core/job/rules/deadlines.h"
#include "chiefd/core/job/rules/disk.h"
#include "chiefd/core/job/views/absences.h"
#include "chiefd/core/job/views/members.h"
#include "common/format_duration.h"

namespace disttrain::chiefd::flow {
namespace {

constexpr Duration kLongestSilence = std::chrono::hours(1);  // between two reports of a wait

// Extends the tasks' time limits by `pause`.
void excuse_disk(JobFacts& job, Duration pause) {
  job.progress.excuse(pause);
  job.stage.postpone_deadline(pause);
  job.workers.postpone_joins(pause);
  job.pauses.excuse_shortage(pause);
  job.absences.excuse(pause);
}

// The job closes, but the record of its end isn't durable. After Timeouts::setup the chief tells the tasks to release
// the job, although the record still isn't durable.
void review_disk_at_end(JobFacts& job, Turn& turn, Duration late) {
  if (late > job.setup.timeouts.setup) return begin_closing(job, turn);
  if (late <= job.setup.timeouts.silent || job.pauses.is_disk_late()) return;
  job.pauses.set_disk_late(true);
  set_state(job, turn, job.condition.state(), job.condition.end_reason() + "; " + rules::unwritten_for(late));
}

void begin_absence(JobFacts& job, Turn& turn) {
  Duration shortest = job.setup.timeouts.setup;
  for (const Absence& wait : job.absences.current) shortest = std::min(shortest, wait.limit.value_or(shortest));
  job.absences.until_next = shortest / 2;
  job.absences.next_report = turn.now + job.absences.until_next;
}

// The stage goes on with the tasks that are there now, and gets the time of every stage for this.
void end_absence(JobFacts& job, Turn& turn) {
  job.absences.next_report.reset();
  if (job.stage.is(Stage::kGather) || job.stage.is(Stage::kRegather))
    job.stage.set_deadline(turn.now + job.setup.timeouts.setup);
}

void report_absence(JobFacts& job, Turn& turn) {
  tell(job, turn, kStillWaiting, 2,
       "the job has waited for " +
           format_duration(turn.now - job.absences.since.at(job.absences.current.front().role)) + ": " +
           job.condition.reason() + "; " + views::absence_limit_text(job));
  job.absences.until_next = std::min(2 * job.absences.until_next, kLongestSilence);
  job.absences.next_report = turn.now + job.absences.until_next;
}

void set_absence_deadline(JobFacts& job, Turn& turn) {
  if (!job.stage.is(Stage::kGather) && !job.stage.is(Stage::kRegather)) return;
  Instant next = *job.absences.next_report;
  for (const Absence& wait : job.absences.current)
    if (wait.limit) next = std::min(next, wait.since + *wait.limit);
  job.stage.set_deadline(std::max(next, turn.now + job.setup.timeouts.interval));
}

}  // namespace

bool check_deadline(JobFacts& job, Turn& turn) {
  if (!job.stage.is_overdue(turn.now)) return false;
  const Verdict verdict = rules::at_deadline(job, turn.tasks, turn.now);
  const bool is_extended = std::holds_alternative<Extend>(verdict);
  if (!is_extended) job.stage.clear_deadline();
  carry_out(job, turn, verdict);
  return !is_extended;
}

void leave_behind(JobFacts& job, Turn& turn) {
  for (const Member& member : job.stage.awaited()) {
    turn.tasks.note_unreleased(member, job.setup.id);
    turn.actions.push_back(Note{
        2,
        to_string(member.task) + " didn't release job " + job.setup.name() + " in time; the chief goes on without it",
        "", job.setup.name()});
  }
  finish_closing(job, turn);
}

void review_disk(JobFacts& job, Turn& turn) {
  const Duration since_tick = turn.now - std::exchange(job.disk.ticked, turn.now);
  const std::optional<Ticket> oldest = job.held.oldest();
  if (std::exchange(job.disk.unwritten, oldest) != oldest || !oldest) job.disk.unwritten_since = turn.now;
  const Duration late = turn.now - job.disk.unwritten_since;
  if (late > job.setup.timeouts.silent) excuse_disk(job, since_tick);
  if (job.stage.is(Stage::kClose) && !job.closing.is_end_written) return review_disk_at_end(job, turn, late);
  carry_out(job, turn, rules::late_disk(job, late));
}

bool review_absences(JobFacts& job, Turn& turn) {
  const std::vector<Role> roles = rules::lacking(job, turn.tasks, turn.now);
  const bool was_waiting = !job.absences.current.empty();
  bool is_more = false;  // the job waits for another role too
  std::erase_if(job.absences.since, [&roles](const auto& entry) {
    return std::find(roles.begin(), roles.end(), entry.first) == roles.end();
  });
  job.absences.current.clear();
  for (const Role role : roles) {
    const auto [entry, is_new] = job.absences.since.emplace(role, turn.now);
    is_more = is_more || is_new;
    Instant since = entry->second;
    // The workers that replace lost ones may have much data to read, so their progress extends the limit.
    if (role == Role::kWorker)
      since = std::max(since, views::newest_work(job, turn.tasks, job.candidates.invited_members()));
    job.absences.current.push_back({role, since, views::limit_of(job, role)});
  }
  if (job.absences.current.empty()) {
    if (was_waiting) end_absence(job, turn);
    return false;
  }
  if (is_more) begin_absence(job, turn);
  const Verdict verdict = rules::overdue_absence(job, turn.tasks, turn.now);
  if (!std::holds_alternative<Stay>(verdict)) {
    carry_out(job, turn, verdict);
    return true;
  }
  if (turn.now >= *job.absences.next_report) report_absence(job, turn);
  set_absence_deadline(job, turn);
  return false;
}

}  // namespace disttrain::chiefd::flow
