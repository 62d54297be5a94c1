#include "chiefd/chief.h"

#include <unistd.h>

#include <asio/post.hpp>
#include <utility>

#include "chiefd/journal/limits.h"
#include "chiefd/traces/trace_report.h"
#include "common/config/reader/reader.h"
#include "common/daemon/clock.h"
#include "common/daemon/crash.h"
#include "common/daemon/random.h"
#include "common/daemon/startup.h"
#include "common/printable.h"
#include "transport/control_link.h"

namespace disttrain::chiefd {
namespace {

// The most bytes of a message from a task. The largest such message describes the job's model.
constexpr std::uint64_t kMaxTaskBlob = wire::kMaxBlobBytes;
// The most bytes that may be queued for one task. Beyond this limit the chief drops the task's connection, because the
// task doesn't read its messages.
constexpr std::size_t kMaxQueuedToTask = std::size_t{192} << 20;

std::map<JobId, RecoveredJob> recovered_jobs(const JournalState& journal) {
  std::map<JobId, RecoveredJob> jobs;
  for (const auto& [id, job] : journal.jobs) {
    const bool is_done = job.state == JobState::kFinished;  // a job that failed or was stopped may be submitted again
    jobs.emplace(id, RecoveredJob{job, !is_done ? config::read_job(job.submitted.toml, job.submitted.name)
                                                : Result<JobConfig>(JobConfig{})});
  }
  return jobs;
}

}  // namespace

Chief::Chief(asio::io_context& loop, transport::Transport& transport, daemon::Log& log, Setup setup)
    : loop_(loop),
      transport_(transport),
      log_(log),
      listen_address_(std::move(setup.listen_address)),
      metrics_address_(std::move(setup.metrics_address)),
      on_listening_(std::move(setup.on_listening)),
      on_failed_(std::move(setup.on_failed)),
      is_alive_(std::make_shared<bool>(true)),
      config_(std::move(setup.cluster)),
      timer_(loop),
      curves_([&log](const std::string& why) {
        log.warn("TensorBoard's event files can't be written; training goes on: " + why);
      }),
      traces_(loop, [this](const TraceWritten& written) {
        step(written);
        if (is_over(written.job)) answer_waiters([&written](const Wait& wait) { return wait.job == written.job; });
      }) {
  JournalState state = std::move(setup.journal.state);
  for (const std::string& line : setup.journal.told) log_.warn(line);
  journal_ = std::make_unique<JournalWriter>(
      loop_, std::move(setup.journal.file),
      JournalWriter::Handlers{.on_persisted = [this](Ticket ticket) { step(Persisted{ticket}); },
                              .on_failed = [this](const Error& error) { on_failed_(error); },
                              .on_put_off =
                                  [this](const Error& error) {
                                    log_.warn(
                                        "the chief couldn't rewrite its journal to a smaller file, and keeps "
                                        "appending to the current file; it retries after another 1 MiB of records: " +
                                        error.message);
                                  }});
  folders_ =
      std::make_unique<FolderKeeper>(disk_files_, [this, alive = std::weak_ptr<bool>(is_alive_)](FolderDone done) {
        asio::post(loop_, [this, alive, done = std::move(done)] {
          if (alive.expired()) return;
          traces_.note(done);
          step(done);
        });
      });
  reader_ = std::make_unique<JobReader>();
  events_ = state.events;
  for (const auto& [id, job] : state.jobs)
    if (!is_final(job.state) && job.state != JobState::kQueued) daemon::note_work(id.value);  // only one job runs
  std::map<JobId, RecoveredJob> jobs = recovered_jobs(state);
  cluster_ =
      std::make_unique<Cluster>(Cluster::Setup{config_, std::move(state), std::move(jobs), setup.seed,
                                               EventClocks{daemon::wall_nanoseconds(), daemon::uptime_nanoseconds()},
                                               setup.incarnation, std::move(setup.crashes)});
  metrics_ = std::make_unique<ChiefMetrics>(config_, *cluster_);
  log_.set_listener([this, alive = std::weak_ptr<bool>(is_alive_)] {
    asio::post(loop_, [this, alive] {
      if (!alive.expired()) take_own_lines();
    });
  });
  carry_out(cluster_->start(daemon::now()));
  on_tick();
}

Chief::~Chief() {
  log_.set_listener({});
  folders_.reset();
  reader_.reset();
}

std::string Chief::waits_for() const {
  return listener_ ? "" : "the first write to the chief's journal (its new term)";
}

void Chief::collect(metrics::Page& page) const {
  metrics_->collect(daemon::now(), daemon::wall_nanoseconds(), page);
}

void Chief::step(const Event& event) {
  carry_out(cluster_->step(daemon::now(), event));
  const std::optional<JobId> job = cluster_->current_or_last();
  daemon::note_work(job && !cluster_->has_ended(*job) ? job->value : 0);
}

void Chief::carry_out(Actions actions) {
  for (const Action& action : actions) std::visit([this](const auto& a) { act(a); }, action);
}

// Runs every half heartbeat interval. From a late tick the core concludes that the chief itself was stopped or slow.
void Chief::on_tick() {
  step(Tick{});
  const Instant now = daemon::now();
  if (now >= next_look_) {
    metrics_->look(now);
    next_look_ = now + cluster_->timeouts().interval;
  }
  look_at_clients(now);
  traces_.look(*cluster_);
  if (curves_.is_due(now) || curves_.job() != cluster_->current_or_last()) look_at_curves();
  answer_waiters([this, now](const Wait& wait) { return now >= wait.deadline || is_over(wait.job); });
  timer_.expires_after(cluster_->timeouts().interval / 2);
  timer_.async_wait([this, alive = std::weak_ptr<bool>(is_alive_)](const asio::error_code& error) {
    if (!error && !alive.expired()) on_tick();
  });
}

void Chief::look_at_curves() {
  const Instant now = daemon::now();
  const std::int64_t wall = daemon::wall_nanoseconds();
  const std::optional<JobId> job = cluster_->current_or_last();
  // Skip a job that ended before this chief started, because this chief has no points of that job's curves.
  if (!job || (curves_.job() != job && cluster_->has_ended(*job))) return;
  // The current job has changed. Look at the previous job once more, because it may have made steps since the previous
  // look.
  if (const auto last = curves_.job(); last && last != job && cluster_->find(std::to_string(last->value)) == last)
    curves_.look(now, wall, cluster_->status(*last, now));
  curves_.look(now, wall, cluster_->status(*job, now));
}

void Chief::change(const ClusterConfig& cluster) {
  const bool is_other_timeout = cluster.heartbeat.timeout != config_.heartbeat.timeout;
  config_ = cluster;
  if (!is_other_timeout) return;
  log_.info(
      "heartbeat.timeout has changed: the chief sends each task the new timeout in the answer to its next heartbeat; "
      "the connections between the tasks of a running job keep the old timeout");
  step(Reconfigured{cluster.heartbeat.timeout});
}

daemon::ServiceState Chief::state() const {
  daemon::ServiceState state;
  state.is_ready = listener_ != nullptr;
  if (!state.is_ready) {
    state.status = "the chief is writing its new term to its journal";
    return state;
  }
  const Instant now = daemon::now();
  std::size_t there = 0;
  const std::vector<TaskStatus> tasks = cluster_->tasks(now);
  for (const TaskStatus& task : tasks) there += is_up(task);
  state.status = std::to_string(there) + " of " + std::to_string(tasks.size()) + " tasks are up";
  const std::optional<JobId> id = cluster_->current_or_last();
  if (!id) return state;
  const JobStatus job = cluster_->status(*id, now);
  const std::string steps = ", step " + std::to_string(job.global_step) +
                            (job.steps_target != 0 ? " of " + std::to_string(job.steps_target) : std::string());
  state.status = "job " + job.name + " is " + to_string(job.state) + steps +
                 (job.reason.empty() ? "" : ", " + job.reason) + "; " + state.status;
  return state;
}

void Chief::take_own_lines() {
  while (true) {
    LogLines lines = log_.take(100);
    if (lines.lines.empty()) return;
    add_lines(TaskId{Role::kChief, 0}, std::move(lines));
  }
}

// ---- connections

std::optional<Refused> Chief::refusal_of(const Hello& hello) const {
  if (hello.oldest_version > kProtocolVersion || hello.newest_version < kProtocolVersion)
    return Refused{ErrorCode::kConfig, "the peer speaks protocol versions " + std::to_string(hello.oldest_version) +
                                           " to " + std::to_string(hello.newest_version) +
                                           ", but the chief speaks version " + std::to_string(kProtocolVersion) +
                                           ": install the same version of disttrain everywhere"};
  const bool is_task = std::holds_alternative<TaskHello>(hello.who);
  const bool is_client = std::holds_alternative<ClientHello>(hello.who);
  // A client that was started with --chief HOST:PORT doesn't know the cluster's name, and sends an empty name.
  if (hello.cluster != config_.name && !(is_client && hello.cluster.empty()))
    return Refused{ErrorCode::kConfig, "this is the chief of cluster \"" + config_.name +
                                           "\", but the peer belongs to cluster \"" + hello.cluster +
                                           "\": give the peer the right cluster file"};
  if (!is_task && !is_client)
    return Refused{ErrorCode::kConfig,
                   "the peer asked for a shard, but this is a chief: check the addresses in the cluster file"};
  return std::nullopt;
}

Welcome Chief::make_welcome(std::uint64_t cluster_hash) const {
  Welcome welcome;
  welcome.term = cluster_->term();
  welcome.journal = cluster_->journal();
  welcome.chief = cluster_->self();
  welcome.former = cluster_->former_chiefs();
  welcome.heartbeat_timeout = cluster_->timeouts().silent;
  if (cluster_hash != 0 && cluster_hash != config_.hash)
    welcome.warnings.push_back("this task's cluster file differs from the chief's: give all tasks the same file");
  return welcome;
}

namespace {

// "10.0.0.2" of "10.0.0.2:7100", "[::1]" of "[::1]:7100".
std::string host_of(const std::string& address) {
  return address.substr(0, address.rfind(':'));
}

}  // namespace

void Chief::on_arrival(std::unique_ptr<transport::Arrival> arrival) {
  const Instant begin = daemon::now();
  const Result<Hello> hello = transport::hello_of(*arrival);
  const std::optional<Refused> refused =
      hello ? refusal_of(*hello) : std::optional(Refused{ErrorCode::kConfig, hello.error().message});
  hello_outcome_ = !hello ? metrics::RpcCode::kError : refused ? metrics::RpcCode::kRefused : metrics::RpcCode::kOk;
  if (refused)
    refuse(*arrival, *refused);
  else if (const auto* client = std::get_if<ClientHello>(&hello->who))
    admit_client(*arrival, *client);
  else
    join_task(*arrival, *hello);
  metrics_->requests("Hello").note(hello_outcome_, daemon::now() - begin);
}

void Chief::refuse(transport::Arrival& arrival, const Refused& why) {
  hello_outcome_ = hello_outcome_ == metrics::RpcCode::kError ? hello_outcome_ : metrics::RpcCode::kRefused;
  log_.warn("refused " + arrival.peer() + ": " + why.reason);
  transport::refuse(loop_, arrival, why);
}

Peer& Chief::adopt(transport::Arrival& arrival, std::uint64_t max_blob_bytes) {
  last_peer_ = last_peer_.next();
  auto peer = std::make_unique<Peer>(
      last_peer_, arrival.adopt(loop_), max_blob_bytes,
      Peer::Handlers{[this](PeerId id, const wire::ControlMessage& message) { on_message(id, message); },
                     [this](PeerId id, const Error& why) { on_closed(id, why); }});
  return *peers_.emplace(last_peer_, std::move(peer)).first->second;
}

void Chief::join_task(transport::Arrival& arrival, const Hello& hello) {
  const TaskHello& task = std::get<TaskHello>(hello.who);
  if (hello.cluster_hash != config_.hash)
    log_.warn("the cluster file of " + to_string(task.member.task) + " differs from the chief's");
  joining_ = &adopt(arrival, kMaxTaskBlob);
  joining_hash_ = hello.cluster_hash;
  step(TaskJoined{task, host_of(joining_->address())});
  joining_ = nullptr;
}

// Closes the peer's connection now. Destroys the peer in a later turn of the loop, because one of the peer's own
// handlers may have called this.
void Chief::drop(PeerId id) {
  auto peer = peers_.extract(id);
  if (peer.empty()) return;
  waits_.erase(id);
  std::erase_if(followers_, [id](const Follower& follower) { return follower.client == id; });
  std::erase_if(event_followers_, [id](const EventFollower& follower) { return follower.client == id; });
  admission_.leave(id);
  if (const auto& member = peer.mapped()->member) {
    const auto current = task_peers_.find(member->task);
    if (current != task_peers_.end() && current->second == id) task_peers_.erase(current);
  }
  peer.mapped()->close();
  asio::post(loop_, [kept = std::shared_ptr<Peer>(std::move(peer.mapped()))] {});
}

void Chief::on_closed(PeerId id, const Error& why) {
  const auto peer = peers_.find(id);
  if (peer == peers_.end()) return;
  if (why.code == ErrorCode::kData) log_.warn("dropped " + peer->second->address() + ": " + why.message);
  const std::optional<Member> member = peer->second->member;
  const bool is_current = member && task_peers_.count(member->task) != 0 && task_peers_[member->task] == id;
  drop(id);
  if (is_current) step(ConnectionLost{*member, why.message});
}

void Chief::on_message(PeerId id, const wire::ControlMessage& message) {
  const auto found = peers_.find(id);
  if (found == peers_.end()) return;
  const Instant begin = daemon::now();
  speaker_ = id;
  outcome_ = metrics::RpcCode::kOk;
  take(*found->second, message);
  if (outcome_) metrics_->requests(wire::name_of(message)).note(*outcome_, daemon::now() - begin);
}

void Chief::take(Peer& peer, const wire::ControlMessage& message) {
  if (peer.user) return on_request(peer, message);
  if (!peer.member) return;
  const Member from = *peer.member;
  if (const auto* evaluated = std::get_if<Evaluated>(&message)) traces_.note(from, *evaluated);
  std::visit(
      [this, &from](const auto& m) {
        using Message = std::decay_t<decltype(m)>;
        if constexpr (std::is_same_v<Message, LogLines>)
          add_lines(from.task, m);
        else if constexpr (std::is_same_v<Message, TraceEvents>)
          traces_.hear(*cluster_, from, m);
        else if constexpr (std::is_constructible_v<FromTask, Message>)
          step(TaskMessage{from, m});
        else
          outcome_ = metrics::RpcCode::kError;
      },
      message);
  if (outcome_ == metrics::RpcCode::kError)
    log_.warn(to_string(from.task) + " sent a message that a chief doesn't accept: " + wire::name_of(message));
}

// ---- what the core decides

Status Chief::listen() {
  Result<std::unique_ptr<transport::Listener>> listener =
      transport_.listen(loop_, listen_address_,
                        transport::ListenerLimits{max_connections_of(config_, 0), config_.transport.hello_timeout},
                        [this](std::unique_ptr<transport::Arrival> arrival) { on_arrival(std::move(arrival)); });
  if (!listener) return tl::unexpected(listener.error());
  listener_ = std::move(*listener);
  return {};
}

// Blocking is safe here, because no peer is connected yet.
void Chief::act(const Listen&) {
  if (Status listens = daemon::try_patiently([this] { return listen(); }); !listens) return on_failed_(listens.error());
  log_.write(
      daemon::Level::kInfo,
      daemon::banner(config_, TaskId{Role::kChief, 0}, listener_->address(), transport_.name(), metrics_address_) +
          "; term " + std::to_string(cluster_->term().value) + ", waits for " + std::to_string(config_.ps.size()) +
          " ps and " + std::to_string(config_.workers.size()) + " workers",
      {.kind = "chief_started"});
  if (on_listening_) on_listening_(listener_->address());
}

void Chief::act(const Admit& action) {
  if (joining_ == nullptr) return;
  const auto old = task_peers_.find(action.member.task);
  if (old != task_peers_.end()) drop(old->second);
  joining_->member = action.member;
  metrics_->joined(action.member.task, joining_hash_);
  task_peers_[action.member.task] = joining_->id();
  joining_->welcome(make_welcome(joining_hash_));
}

void Chief::act(const RefuseTask& action) {
  if (joining_ == nullptr) return;
  hello_outcome_ = metrics::RpcCode::kRefused;
  log_.warn("refused " + to_string(action.member.task) + ": " + action.refused.reason);
  joining_->refuse(action.refused);
  drop(joining_->id());
}

void Chief::act(const Disconnect& action) {
  const auto id = task_peers_.find(action.member.task);
  if (id == task_peers_.end()) return;
  const auto peer = peers_.find(id->second);
  if (peer != peers_.end() && peer->second->member == action.member) drop(peer->first);
}

void Chief::act(const Send& action) {
  const auto id = task_peers_.find(action.task);
  if (id == task_peers_.end()) return;
  Peer& peer = *peers_.at(id->second);
  if (const auto* answer = std::get_if<HeartbeatAnswer>(&action.message))
    peer.send(HeartbeatAnswer{answer->term, answer->heartbeat_timeout, answer->heartbeat_clock, daemon::now(),
                              answer->heartbeat_pause});
  else
    std::visit([&peer](const auto& message) { peer.send(message); }, action.message);
  if (peer.queued_bytes() <= kMaxQueuedToTask) return;
  const Member member = *peer.member;
  drop(peer.id());
  asio::post(loop_, [this, member, alive = std::weak_ptr<bool>(is_alive_)] {
    // Report no lost connection if the task has connected again before this call runs.
    if (!alive.expired() && task_peers_.count(member.task) == 0)
      step(ConnectionLost{member, "it doesn't read its messages"});
  });
}

void Chief::act(const Probe& action) {
  const TaskId task = action.member.task;
  const auto done = [this, member = action.member](ProbeOutcome outcome, const Member& by) {
    const std::unique_ptr<TaskProbe> over = std::move(probes_[member.task]);
    probes_.erase(member.task);
    step(ProbeDone{member, outcome, by});
  };
  probes_[task] = std::make_unique<TaskProbe>(
      loop_, transport_, action.address,
      wire::encode(Hello{.cluster = config_.name, .cluster_hash = config_.hash, .who = ClientHello{"chief"}}),
      cluster_->timeouts().probe, done);
}

void Chief::act(const Persist& action) {
  if (const auto* submitted = std::get_if<SubmittedRecord>(&action.record))
    spans_[submitted->job].begin = daemon::wall_nanoseconds();
  if (const auto* event = std::get_if<EventRecord>(&action.record)) {
    EventRecord stamped = std::get<EventRecord>(bounded(*event));
    stamped.wall_nanoseconds = daemon::wall_nanoseconds();
    stamped.uptime_nanoseconds = daemon::uptime_nanoseconds();
    add_event(stamped);
    curves_.hear(stamped);
    traces_.note(stamped);
    metrics_->hear(stamped);
    return journal_->write(action.ticket, stamped);
  }
  journal_->write(action.ticket, action.record);
}

void Chief::act(const FolderWork& action) {
  traces_.note(action);
  folders_->give(action);
}

void Chief::act(const CloseFolder& action) {
  folders_->close(action.job);
}

void Chief::act(const AnswerClient& action) {
  const PeerId client(action.client.value);
  std::visit([this, client](const auto& message) { answer(client, message); }, action.answer);
}

void Chief::act(const JobEnded& action) {
  take_own_lines();
  look_at_curves();
  // Add 1 s to the job's end, because a line that a task logged before the end may have a slightly later time.
  spans_[action.job].end = daemon::wall_nanoseconds() + 1'000'000'000;
  while (spans_.size() > kMaxEndedJobs) spans_.erase(spans_.begin());
  traces_.end(action.job);
  if (!traces_.awaits(action.job)) answer_waiters([&action](const Wait& wait) { return wait.job == action.job; });
}

void Chief::answer_waiters(const std::function<bool(const Wait&)>& is_over) {
  std::map<JobId, std::vector<PeerId>> clients;
  std::erase_if(waits_, [&](const auto& entry) {
    if (!is_over(entry.second)) return false;
    clients[entry.second.job].push_back(entry.first);
    return true;
  });
  for (const auto& [job, waiting] : clients) {
    // Made once for all, because the status of a large job takes long.
    const wire::ControlMessage status = final_status(job);
    for (PeerId client : waiting) answer(client, status);
  }
}

JobStatus Chief::job_status(JobId job) const {
  JobStatus status = cluster_->status(job, daemon::now());
  // Before the end is durable, nobody has said yet whether a trace is due.
  const bool is_ending = is_final(status.state) && !cluster_->has_ended(job);
  status.is_trace_pending = traces_.awaits(job) || (is_ending && status.profile_steps[1] != 0 && status.trace.empty());
  return status;
}

bool Chief::is_over(JobId job) const {
  return !knows(job) || (cluster_->has_ended(job) && !traces_.awaits(job));
}

void Chief::act(const Note& action) {
  log_.write(static_cast<daemon::Level>(action.level), unfolded(action.text),
             daemon::LogFields{action.kind, action.job, action.step});
}

}  // namespace disttrain::chiefd
