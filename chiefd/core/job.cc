#include "chiefd/core/job.h"

#include <algorithm>
#include <utility>

#include "chiefd/core/job/facts/job_facts.h"
#include "chiefd/core/job/flow/flow.h"
#include "chiefd/core/job/invariants.h"
#include "chiefd/core/job/report.h"
#include "chiefd/core/job/rules/end.h"
#include "chiefd/core/job/views/members.h"

namespace disttrain::chiefd {

Job::Job(Setup setup) : facts_(std::make_unique<JobFacts>(std::move(setup))) {}
Job::~Job() = default;

// ---- identity and state

JobId Job::id() const {
  return facts_->setup.id;
}

const std::string& Job::name() const {
  return facts_->setup.name();
}

const Submission& Job::submission() const {
  return facts_->setup.submission;
}

JobState Job::state() const {
  return facts_->condition.state();
}

bool Job::is_end_durable() const {
  return facts_->condition.has_ended() && facts_->held.is_empty();
}

bool Job::has_told_to_close() const {
  return (facts_->stage.is(Stage::kClose) || is_released()) && facts_->closing.is_end_written;
}

bool Job::is_released() const {
  return facts_->stage.is(Stage::kReleased);
}

bool Job::may_succeed_later() const {
  const std::optional<ErrorCode>& code = facts_->condition.code();  // none: the workers had opened the job
  return !code || *code == ErrorCode::kUnavailable;
}

Generation Job::generation() const {
  return facts_->generation.number();
}

bool Job::has_begun() const {
  return facts_->condition.has_begun();
}

JobStatus Job::status(Instant now) const {
  return report::status(*facts_, now);
}

std::vector<Awaited> Job::waits_for(const Tasks& tasks, Instant now) const {
  return report::waits_for(*facts_, tasks, now);
}

std::uint64_t Job::steps_of(const Member& worker) const {
  return facts_->worker_figures.steps_of(worker);
}

std::optional<std::uint64_t> Job::reached_by(const Member& member, const Heartbeat& heartbeat) const {
  return report::reached_by(*facts_, member, heartbeat);
}

PhaseTimes Job::measured_times(const Member& worker, PhaseTimes times) const {
  return facts_->worker_figures.measured_times(worker, times);
}

std::string Job::why_kept_out(TaskId task, Instant now) const {
  return report::why_kept_out(*facts_, task, now);
}

std::optional<std::uint32_t> Job::rank_of(const Member& worker) const {
  const std::vector<Member>& members = facts_->workers.roster().members;
  const auto found = std::find(members.begin(), members.end(), worker);
  if (found == members.end()) return std::nullopt;
  return static_cast<std::uint32_t>(found - members.begin());
}

bool Job::is_evaluated_by(const Member& evaluator) const {
  return facts_->evaluations.has_order(evaluator);
}

std::vector<Member> Job::members() const {
  return views::all_members(*facts_);
}

Step Job::reached() const {
  return views::reached(*facts_);
}

std::optional<std::string> Job::broken_invariant() const {
  return chiefd::broken_invariant(*facts_);
}

// ---- what a former chief knew

void Job::restore(const JournaledJob& journaled) {
  flow::restore(*facts_, journaled);
}

void Job::recall(Instant now, const std::deque<EventRecord>& events, const EventClocks& clocks) {
  flow::recall(*facts_, now, events, clocks);
}

void Job::take_up(Turn& turn, const JournaledJob& journaled) {
  flow::take_up(*facts_, turn, journaled);
}

// ---- requests

void Job::begin(Turn& turn) {
  flow::begin_job(*facts_, turn);
}

void Job::stop(Turn& turn, const std::string& user) {
  flow::stop(*facts_, turn, user);
}

void Job::kill(Turn& turn, const std::string& user) {
  flow::kill(*facts_, turn, user);
}

void Job::fail(Turn& turn, Error error, std::optional<TaskId> root) {
  flow::fail_job(*facts_, turn, std::move(error), root);
}

void Job::save(Turn& turn, ClientId client) {
  flow::save(*facts_, turn, client);
}

bool Job::may_go(const Member& member) const {
  return rules::may_go(*facts_, member);
}

void Job::advance_leavers(Turn& turn) {
  flow::advance_leavers(*facts_, turn);
}

// ---- events

void Job::on_reconnect(Turn& turn, const TaskHello& hello) {
  flow::on_reconnect(*facts_, turn, hello);
}

void Job::on_persisted(Turn& turn, Ticket ticket) {
  flow::on_persisted(*facts_, turn, ticket);
}

void Job::on_folder(Turn& turn, const FolderDone& done) {
  flow::on_folder(*facts_, turn, done);
}

void Job::on_message(Turn& turn, const Member& from, const FromTask& message) {
  flow::on_message(*facts_, turn, from, message);
}

void Job::on_finding(Turn& turn, const Finding& finding) {
  flow::on_finding(*facts_, turn, finding);
}

void Job::on_tick(Turn& turn) {
  flow::on_tick(*facts_, turn);
}

}  // namespace disttrain::chiefd
