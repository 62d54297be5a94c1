// The part of Chief that admits clients (command lines) and answers their requests. See chief.h.
#include <unistd.h>

#include <algorithm>
#include <asio/post.hpp>
#include <utility>

#include "chiefd/chief.h"
#include "chiefd/status_page/status_page.h"
#include "common/config/reader/reader.h"
#include "common/daemon/clock.h"

namespace disttrain::chiefd {
namespace {

// The most bytes of a message from a client. The largest such message holds a job file.
constexpr std::uint64_t kMaxClientBlob = kMaxJobTomlBytes + 4096;
// The most bytes that may be queued for one client. Beyond this limit the chief drops the client, because the client
// doesn't read its answers.
constexpr std::size_t kMaxQueuedToClient = std::size_t{80} << 20;
// The most queued bytes of all clients together. Beyond this limit the chief drops the client with the most queued
// bytes.
constexpr std::size_t kMaxQueuedToClients = std::size_t{256} << 20;
// The chief drops a client that sends a request while more than kMaxUnread bytes of earlier answers are still queued.
// It also drops a client that has read none of its queued bytes for kMaxUnreadTime.
constexpr std::size_t kMaxUnread = std::size_t{1} << 20;
constexpr Duration kMaxUnreadTime = std::chrono::seconds(10);
// The longest time that the chief lets a client wait for a job's end. It then answers with the current status, and the
// client may ask again.
constexpr Duration kLongestWait = std::chrono::hours(1);

// A client runs on the chief's host if it connects from a loopback address, or from the address on which the chief
// listens.
bool is_of_this_host(const std::string& peer, const std::string& own) {
  const std::string host = peer.substr(0, peer.rfind(':'));
  return host.starts_with("127.") || host == "[::1]" || host.starts_with("[::ffff:127.") ||
         host == own.substr(0, own.rfind(':'));
}

}  // namespace

// ---- who may ask

ClientAdmission::Use Chief::use_of(PeerId client) const {
  const auto is_it = [client](const auto& entry) { return entry.client == client; };
  const auto peer = peers_.find(client);
  const bool waits = waits_.contains(client);
  if (peer != peers_.end() && peer->second->is_asking && !waits) return ClientAdmission::Use::kAsks;
  if (waits || std::any_of(followers_.begin(), followers_.end(), is_it) ||
      std::any_of(event_followers_.begin(), event_followers_.end(), is_it))
    return ClientAdmission::Use::kStays;
  return ClientAdmission::Use::kIdle;
}

void Chief::admit_client(transport::Arrival& arrival, const ClientHello& hello) {
  const bool is_local = is_of_this_host(arrival.peer(), listener_->address());
  const ClientAdmission::Verdict verdict =
      admission_.find_place(is_local, daemon::now(), [this](PeerId id) { return use_of(id); });
  if (!verdict.is_free)
    return refuse(arrival, Refused{ErrorCode::kTemporary, "the chief already serves " + std::to_string(kMaxClients) +
                                                              " clients, the most that it allows: try again later"});
  if (verdict.leaves) {
    answer(*verdict.leaves, Refused{ErrorCode::kTemporary,
                                    "the chief has dropped this client to make room for another, because it serves " +
                                        std::to_string(kMaxClients) + " clients at most: try again later"});
    drop(*verdict.leaves);
  }
  Peer& peer = adopt(arrival, kMaxClientBlob);
  admission_.take(peer.id(), is_local, daemon::now());
  peer.user = hello.user;
  peer.welcome(make_welcome(0));
}

void Chief::answer(PeerId client, const wire::ControlMessage& message) {
  if (client == speaker_ && std::holds_alternative<Refused>(message)) outcome_ = metrics::RpcCode::kRefused;
  const auto found = peers_.find(client);
  if (found == peers_.end()) return;
  Peer& peer = *found->second;
  peer.is_asking = false;
  admission_.stir(client, daemon::now());
  peer.send(message);
  if (peer.queued_bytes() > kMaxQueuedToClient) return drop(client);
  if (peer.queued_bytes() != 0) bound_queues();
}

// If all clients together have too many queued bytes, drops the client with the most.
void Chief::bound_queues() {
  std::size_t total = 0;
  const Peer* worst = nullptr;
  for (const auto& [id, peer] : peers_) {
    if (!peer->user) continue;
    total += peer->queued_bytes();
    if (worst == nullptr || peer->queued_bytes() > worst->queued_bytes()) worst = peer.get();
  }
  if (total > kMaxQueuedToClients) drop(worst->id());
}

// Returns true if the chief must drop this client because the client has read none of its queued bytes for
// kMaxUnreadTime.
bool Chief::drops_for_unread(PeerId client, Instant now) {
  Peer& peer = *peers_.at(client);
  const std::size_t queued = peer.queued_bytes();
  if (queued == 0 || queued < peer.unread_bytes || peer.unread_bytes == 0) peer.unread_since = now;
  peer.unread_bytes = queued;
  return queued != 0 && now - peer.unread_since > kMaxUnreadTime;
}

void Chief::look_at_clients(Instant now) {
  std::vector<PeerId> leaving = admission_.idle(now, [this](PeerId id) { return use_of(id); });
  for (const auto& [id, peer] : peers_)
    if (peer->user && drops_for_unread(id, now)) leaving.push_back(id);
  for (PeerId id : leaving) drop(id);
}

// ---- what they ask for

void Chief::on_request(Peer& client, const wire::ControlMessage& message) {
  if (client.queued_bytes() > kMaxUnread) return drop(client.id());
  // The chief takes one request of a client per turn of the loop. So a client that sends requests without pause delays
  // neither the tasks nor other clients.
  client.pause();
  asio::post(loop_, [this, id = client.id(), alive = std::weak_ptr<bool>(is_alive_)] {
    if (alive.expired()) return;
    if (const auto peer = peers_.find(id); peer != peers_.end()) peer->second->resume();
  });
  client.is_asking = true;
  admission_.stir(client.id(), daemon::now());
  if (const auto* request = std::get_if<SubmitJob>(&message)) return submit(client, *request);
  if (const auto* request = std::get_if<StatusRequest>(&message)) return give_status(client, *request);
  if (const auto* request = std::get_if<LogsRequest>(&message)) return give_logs(client, *request);
  if (const auto* request = std::get_if<EventsRequest>(&message)) return give_events(client, *request);
  if (const auto* request = std::get_if<SaveRequest>(&message))
    return step(Save{ClientId(client.id().value), request->job});
  if (const auto* request = std::get_if<ResubmitRequest>(&message))
    return step(Resubmit{ClientId(client.id().value), request->job});
  if (const auto* request = std::get_if<StopRequest>(&message))
    return step(chiefd::Stop{ClientId(client.id().value), request->job, request->kill, *client.user});
  answer(client.id(), Refused{ErrorCode::kUsage, std::string("a client can't ask for ") + wire::name_of(message)});
}

void Chief::submit(Peer& client, const SubmitJob& request) {
  const auto done = [this, alive = std::weak_ptr<bool>(is_alive_), id = client.id(), request,
                     begin = daemon::now()](Result<JobConfig> config) mutable {
    asio::post(loop_, [this, alive, id, request = std::move(request), config = std::move(config), begin] {
      if (!alive.expired()) submit_read(id, request, config, begin);
    });
  };
  if (!reader_->give(request.job_toml, done))
    return answer(client.id(), Refused{ErrorCode::kTemporary,
                                       std::to_string(kMaxJobsToRead) +
                                           " submitted jobs already wait for the chief to read them: try again later"});
  outcome_.reset();
}

void Chief::submit_read(PeerId client, const SubmitJob& request, Result<JobConfig> config, Instant begin) {
  speaker_ = client;
  outcome_ = metrics::RpcCode::kOk;
  take_submission(client, request, std::move(config));
  metrics_->requests(wire::name_of(request)).note(*outcome_, daemon::now() - begin);
}

void Chief::take_submission(PeerId client, const SubmitJob& request, Result<JobConfig> config) {
  if (!config) return answer(client, Refused{config.error().code, config.error().message});
  if (Status status = config::check_job_fits(*config, config_); !status)
    return answer(client, Refused{status.error().code, status.error().message});
  const auto awaited = std::min<std::size_t>(request.awaited_workers, config_.workers.size());
  step(Submit{
      ClientId(client.value),
      Submission{request.job_toml, std::move(*config), request.warmup_steps, static_cast<std::uint32_t>(awaited)},
      request.goes_on});
}

void Chief::give_status(Peer& client, const StatusRequest& request) {
  if (request.all) return answer(client.id(), StatusAnswer{all_status_json()});
  const std::optional<JobId> job = cluster_->find(request.job);
  if (!job && !request.job.empty())
    return answer(client.id(), Refused{ErrorCode::kUsage, "there is no job " + request.job});
  const bool waits =
      job && request.wait_for_end > Duration::zero() && (!cluster_->has_ended(*job) || traces_.awaits(*job));
  if (!waits) return answer(client.id(), StatusAnswer{status_json(job)});
  // A client waits for one job at a time. An earlier request is answered now, as it would be after its time.
  if (const auto earlier = waits_.extract(client.id()); !earlier.empty())
    answer(client.id(), final_status(earlier.mapped().job));
  if (peers_.contains(client.id()))
    waits_[client.id()] = Wait{*job, daemon::now() + std::min(request.wait_for_end, kLongestWait)};
}

bool Chief::knows(JobId job) const {
  const std::vector<JobId> jobs = cluster_->jobs();
  return std::ranges::find(jobs, job) != jobs.end();
}

wire::ControlMessage Chief::final_status(JobId job) const {
  if (knows(job)) return StatusAnswer{status_json(job)};
  return Refused{ErrorCode::kUsage, "job " + std::to_string(job.value) +
                                        " has ended, and the chief has forgotten it, because it keeps the newest " +
                                        std::to_string(kMaxEndedJobs) + " jobs that have ended"};
}

LogFilter Chief::lines_of(JobId job) const {
  LogFilter filter;
  if (const auto span = spans_.find(job); span != spans_.end()) {
    filter.since_wall_nanoseconds = span->second.begin;
    filter.until_wall_nanoseconds = span->second.end;
  }
  return filter;
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
    const LogFilter of_job = lines_of(*job);
    filter.since_wall_nanoseconds = std::max(filter.since_wall_nanoseconds, of_job.since_wall_nanoseconds);
    filter.until_wall_nanoseconds = of_job.until_wall_nanoseconds;
  }
  answer(client.id(), LogLines{logs_.find(filter), 0});
  // A client has at most one stream of log lines, so a second request replaces the first.
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
  if (!job) return json_without_job(cluster_->tasks(daemon::now()), chief_status());
  return to_json(job_status(*job), chief_status(), logs_, lines_of(*job));
}

namespace {

// The most bytes of a status of all jobs, so that the answer fits into one message. The chief adds the newest job
// first. If a job with its tasks doesn't fit any more, the chief adds the job without its tasks.
constexpr std::size_t kMaxAllStatusBytes = std::size_t{32} << 20;

// Replaces bytes that aren't UTF-8: reasons and log lines may hold any bytes, but JSON allows only UTF-8.
std::string as_text(const nlohmann::json& json) {
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::string Chief::status_json(std::optional<JobId> job) const {
  return as_text(status_of(job));
}

std::string Chief::page_json() const {
  return as_text(page_state(config_.name, status_of(cluster_->current_or_last()), curves_, events_));
}

std::string Chief::all_status_json() const {
  const std::vector<JobId> ids = cluster_->jobs();
  std::vector<std::string> jobs;  // the newest first
  std::size_t bytes = 0;
  for (auto id = ids.rbegin(); id != ids.rend(); ++id) {
    nlohmann::json job = to_json(job_status(*id), chief_status(), logs_, lines_of(*id));
    jobs.push_back(as_text(job));
    if (bytes + jobs.back().size() > kMaxAllStatusBytes) {
      job["tasks"] = nlohmann::json::array();
      jobs.back() = as_text(job);
    }
    bytes += jobs.back().size();
  }
  std::string list;
  for (auto job = jobs.rbegin(); job != jobs.rend(); ++job) list += (list.empty() ? "" : ",") + *job;
  return "{\"jobs\":[" + list + "]}";
}

}  // namespace disttrain::chiefd
