#include "chiefd/core/job/absences.h"

#include <algorithm>

#include "chiefd/core/job/parts.h"
#include "common/format_duration.h"

namespace disttrain::chiefd {
namespace {

constexpr Duration kLongestSilence = std::chrono::hours(1);  // between two reports of a wait

const char* key_of(Role role) {
  return role == Role::kPs ? "job.ps_timeout" : "job.workers_timeout";
}

}  // namespace

Absences::Absences(JobParts& parts)
    : setup_(parts.setup),
      stage_(parts.stage),
      condition_(parts.condition),
      events_(parts.events),
      rollbacks_(parts.rollbacks),
      candidates_(parts.candidates),
      pauses_(parts.pauses),
      work_clock_(parts.work_clock),
      gathering_(parts.gathering),
      regathering_(parts.regathering),
      quorum_(parts.quorum),
      ending_(parts.ending) {}

bool Absences::review(Turn& turn) {
  const std::vector<Role> roles = lacking(turn);
  const bool was_waiting = !current_.empty();
  bool is_more = false;  // the job waits for another role too
  std::erase_if(since_, [&roles](const auto& entry) {
    return std::find(roles.begin(), roles.end(), entry.first) == roles.end();
  });
  current_.clear();
  for (const Role role : roles) {
    const auto [entry, is_new] = since_.emplace(role, turn.now);
    is_more = is_more || is_new;
    Instant since = entry->second;
    // The workers that replace lost ones may have much data to read, so their progress extends the limit.
    if (role == Role::kWorker)
      since = std::max(since, work_clock_.newest_work(turn.tasks, candidates_.invited_members()));
    current_.push_back({role, since, limit_of(role)});
  }
  if (current_.empty()) {
    if (was_waiting) end(turn);
    return false;
  }
  if (is_more) begin(turn);
  if (fail_overdue(turn)) return true;
  if (turn.now >= *next_report_) report(turn);
  set_deadline(turn);
  return false;
}

// The roles of the absent tasks without which the job can't go on.
std::vector<Role> Absences::lacking(const Turn& turn) const {
  std::vector<Role> roles;
  const auto add = [&roles](bool lacks, Role role) {
    if (lacks) roles.push_back(role);
  };
  if (stage_.is(Stage::kGather)) {
    add(gathering_.lacks(turn.tasks, Role::kPs), Role::kPs);
    add(gathering_.lacks(turn.tasks, Role::kWorker), Role::kWorker);
  } else if (stage_.is(Stage::kRegather)) {
    add(regathering_.lacks_ps(turn.tasks), Role::kPs);
    add(!regathering_.missing_workers(turn.tasks, turn.now).empty(), Role::kWorker);
  } else {
    add(pauses_.is_any_silent(), Role::kPs);
    add(stage_.is(Stage::kTrain) && pauses_.is_short(), Role::kWorker);
  }
  return roles;
}

std::optional<Duration> Absences::limit_of(Role role) const {
  const Duration limit = role == Role::kPs ? setup_.config().job.ps_timeout : setup_.config().job.workers_timeout;
  return limit == Duration::zero() ? std::nullopt : std::optional(limit);
}

void Absences::begin(Turn& turn) {
  Duration shortest = setup_.timeouts.setup;
  for (const Absence& wait : current_) shortest = std::min(shortest, wait.limit.value_or(shortest));
  until_next_ = shortest / 2;
  next_report_ = turn.now + until_next_;
}

// The stage goes on with the tasks that are there now, and gets the time of every stage for this.
void Absences::end(Turn& turn) {
  next_report_.reset();
  if (stage_.is(Stage::kGather) || stage_.is(Stage::kRegather)) stage_.set_deadline(turn.now + setup_.timeouts.setup);
}

bool Absences::fail_overdue(Turn& turn) {
  for (const Absence& wait : current_) {
    if (!wait.limit || turn.now - wait.since < *wait.limit) continue;
    // A silent ps isn't lost yet. When its time is over, task_losses.h rolls the job back. Other ps tasks then get the
    // time to take its shards.
    const bool is_silence = wait.role == Role::kPs && !stage_.is(Stage::kGather) && !stage_.is(Stage::kRegather);
    const bool may_move = wait.role == Role::kPs && stage_.is(Stage::kRegather) &&
                          turn.now - rollbacks_.current()->gathers_since < 2 * setup_.timeouts.silent_ps;
    if (is_silence || may_move) continue;
    const std::string limit = " for " + format_duration(*wait.limit) + " (" + key_of(wait.role) + ")";
    if (const auto& rollback = rollbacks_.current())
      ending_.fail(turn, Error{ErrorCode::kUnavailable, rollback->cause.reason + "; " + rollback->shortage + limit},
                   rollback->cause.task);
    else if (stage_.is(Stage::kGather))
      ending_.fail(turn,
                   Error{ErrorCode::kUnavailable,
                         condition_.reason() + limit + ": start the missing tasks, or lower job.min_workers"},
                   std::nullopt);
    else
      ending_.fail(turn, Error{ErrorCode::kUnavailable, quorum_.shortage(turn) + limit}, std::nullopt);
    return true;
  }
  return false;
}

std::string Absences::limit_text() const {
  const Absence& wait = current_.front();
  const std::string key = key_of(wait.role);
  if (!wait.limit) return "the job waits until this is over (" + key + " sets no limit)";
  const bool is_extended = wait.since > since_.at(wait.role);
  return "the job fails if " +
         std::string(is_extended ? "the workers that get ready make no progress for " : "this takes ") +
         format_duration(*wait.limit) + " (" + key + ")";
}

void Absences::report(Turn& turn) {
  events_.tell(turn, kStillWaiting, 2,
               "the job has waited for " + format_duration(turn.now - since_.at(current_.front().role)) + ": " +
                   condition_.reason() + "; " + limit_text());
  until_next_ = std::min(2 * until_next_, kLongestSilence);
  next_report_ = turn.now + until_next_;
}

void Absences::set_deadline(Turn& turn) {
  if (!stage_.is(Stage::kGather) && !stage_.is(Stage::kRegather)) return;
  Instant next = *next_report_;
  for (const Absence& wait : current_)
    if (wait.limit) next = std::min(next, wait.since + *wait.limit);
  stage_.set_deadline(std::max(next, turn.now + setup_.timeouts.interval));
}

void Absences::excuse(Duration pause) {
  if (const auto workers = since_.find(Role::kWorker); workers != since_.end()) workers->second += pause;
}

}  // namespace disttrain::chiefd
