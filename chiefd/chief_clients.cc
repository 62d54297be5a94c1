// What command lines ask of the chief. See chief.h.
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "chiefd/chief.h"
#include "chiefd/status_page/status_page.h"
#include "common/daemon/clock.h"
#include "common/daemon/config_reader.h"

namespace disttrain::chiefd {
namespace {

constexpr std::size_t kMaxWaiters = 1024;
// A client that asks to wait longer asks again.
constexpr Duration kLongestWait = std::chrono::hours(1);

}  // namespace

void Chief::on_request(Peer& client, const wire::ControlMessage& message) {
  if (const auto* request = std::get_if<SubmitJob>(&message)) return submit(client, *request);
  if (const auto* request = std::get_if<StatusRequest>(&message)) return give_status(client, *request);
  if (const auto* request = std::get_if<LogsRequest>(&message)) return give_logs(client, *request);
  if (const auto* request = std::get_if<EventsRequest>(&message)) return give_events(client, *request);
  if (const auto* request = std::get_if<SaveRequest>(&message))
    return step(Save{ClientId(client.id().value), request->job});
  if (const auto* request = std::get_if<StopRequest>(&message))
    return step(chiefd::Stop{ClientId(client.id().value), request->job, request->kill, *client.user});
  answer(client.id(), Refused{ErrorCode::kUsage, std::string("a client can't ask for ") + wire::name_of(message)});
}

void Chief::submit(Peer& client, const SubmitJob& request) {
  Result<JobConfig> config = daemon::read_job(request.job_toml);
  if (!config) return answer(client.id(), Refused{config.error().code, config.error().message});
  if (Status status = daemon::check_job_fits(*config, config_); !status)
    return answer(client.id(), Refused{status.error().code, status.error().message});
  const auto awaited = std::min<std::size_t>(request.awaited_workers, config_.workers.size());
  step(Submit{
      ClientId(client.id().value),
      Submission{request.job_toml, std::move(*config), request.warmup_steps, static_cast<std::uint32_t>(awaited)},
      request.goes_on});
}

void Chief::give_status(Peer& client, const StatusRequest& request) {
  if (request.all) return answer(client.id(), StatusAnswer{all_status_json()});
  const std::optional<JobId> job = cluster_->find(request.job);
  if (!job && !request.job.empty())
    return answer(client.id(), Refused{ErrorCode::kUsage, "there is no job " + request.job});
  const bool waits = job && request.wait_for_end > Duration::zero() && !cluster_->has_ended(*job);
  if (!waits) return answer(client.id(), StatusAnswer{status_json(job)});
  if (waiters_.size() >= kMaxWaiters)
    return answer(client.id(), Refused{ErrorCode::kTemporary, "too many clients wait for the end of a job already"});
  waiters_.push_back(Waiter{client.id(), *job, daemon::now() + std::min(request.wait_for_end, kLongestWait)});
}

void Chief::give_logs(Peer& client, const LogsRequest& request) {
  take_own_lines();
  const std::vector<TaskStatus> known = cluster_->tasks(daemon::now());
  for (const TaskId task : request.tasks) {
    const auto is_it = [task](const TaskStatus& status) { return status.task == task; };
    if (task.role == Role::kChief ? task.index == 0 : std::any_of(known.begin(), known.end(), is_it)) continue;
    std::string names = "chief/0";
    for (const TaskStatus& status : known) names += ", " + to_string(status.task);
    return answer(client.id(), Refused{ErrorCode::kUsage, "there is no " + to_string(task) + " in cluster " +
                                                              config_.name + "; expected one of " + names});
  }
  LogFilter filter{request.tasks, request.level, request.since_wall_nanoseconds, INT64_MAX};
  if (!request.job.empty()) {
    const std::optional<JobId> job = cluster_->find(request.job);
    if (!job) return answer(client.id(), Refused{ErrorCode::kUsage, "there is no job " + request.job});
    const auto span = spans_.find(*job);
    if (span != spans_.end()) {
      filter.since_wall_nanoseconds = std::max(filter.since_wall_nanoseconds, span->second.begin);
      filter.until_wall_nanoseconds = span->second.end;
    }
  }
  answer(client.id(), LogLines{logs_.find(filter), 0});
  // One stream for each client: a second request takes the first one's place.
  std::erase_if(followers_, [&client](const Follower& follower) { return follower.client == client.id(); });
  if (request.follow && peers_.count(client.id()) != 0) followers_.push_back(Follower{client.id(), filter});
}

void Chief::give_events(Peer& client, const EventsRequest& request) {
  std::optional<JobId> job;
  if (!request.all) {
    job = cluster_->find(request.job);
    if (!job && !request.job.empty())
      return answer(client.id(), Refused{ErrorCode::kUsage, "there is no job " + request.job});
  }
  std::vector<EventRecord> events;
  for (const EventRecord& event : events_)
    if (!job || event.job == *job) events.push_back(event);
  if (request.most != 0 && events.size() > request.most)
    events.erase(events.begin(), events.end() - static_cast<std::ptrdiff_t>(request.most));
  answer(client.id(), EventsAnswer{events_json(events)});
  std::erase_if(event_followers_, [&client](const EventFollower& follower) { return follower.client == client.id(); });
  if (request.follow && peers_.count(client.id()) != 0) event_followers_.push_back(EventFollower{client.id(), job});
}

void Chief::add_event(const EventRecord& event) {
  chiefd::add_event(events_, event);
  const std::vector<EventFollower> followers = event_followers_;
  for (const EventFollower& follower : followers)
    if (!follower.job || *follower.job == event.job) answer(follower.client, EventsAnswer{events_json({event})});
}

void Chief::add_lines(TaskId task, LogLines lines) {
  for (LogLine& line : lines.lines) line.task = task;
  std::vector<Follower> followers = followers_;
  for (const Follower& follower : followers) {
    LogLines passing;
    passing.dropped = lines.dropped;
    for (const LogLine& line : lines.lines)
      if (follower.filter.passes(line)) passing.lines.push_back(line);
    if (!passing.lines.empty()) answer(follower.client, passing);
  }
  logs_.add(task, std::move(lines));
}

ChiefStatus Chief::chief_status() const {
  return ChiefStatus{static_cast<std::uint32_t>(::getpid()), config_.chief.address, metrics_address_,
                     daemon::wall_nanoseconds()};
}

nlohmann::json Chief::status_of(std::optional<JobId> job) const {
  const Instant now = daemon::now();
  if (!job) return json_without_job(cluster_->tasks(now), chief_status());
  return to_json(cluster_->status(*job, now), chief_status(), logs_);
}

// Reasons and log lines may hold any bytes; JSON holds UTF-8.
std::string Chief::status_json(std::optional<JobId> job) const {
  return status_of(job).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string Chief::page_json() const {
  return page_state(config_.name, status_of(cluster_->current_or_last()), progress_, events_)
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string Chief::all_status_json() const {
  const Instant now = daemon::now();
  nlohmann::json jobs = nlohmann::json::array();
  for (JobId job : cluster_->jobs()) jobs.push_back(to_json(cluster_->status(job, now), chief_status(), logs_));
  return nlohmann::json{{"jobs", jobs}}.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace disttrain::chiefd
