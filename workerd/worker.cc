#include "workerd/worker.h"

#include <unistd.h>

#include <asio/post.hpp>
#include <utility>

#include "common/daemon/clock.h"
#include "common/daemon/config_reader.h"
#include "common/daemon/host.h"
#include "common/daemon/random.h"
#include "workerd/worker_metrics.h"

namespace disttrain::workerd {

namespace {

constexpr std::size_t kLogLinesAtOnce = 200;

std::string name_of_job(JobId job) {
  return "job " + std::to_string(job.value);
}

// For what it has waited so long that people want to know. "": it works.
std::string waited_for(const BoardEntry& entry) {
  if (daemon::now() - entry.progress.since < std::chrono::seconds(1)) return "";
  switch (entry.progress.phase) {
    case Phase::kInput:
      return "reading data";
    case Phase::kEvaluate:
      return "evaluating";
    case Phase::kPull:
    case Phase::kPush:
    case Phase::kWait:
      return "waiting for the ps tasks";
    case Phase::kIdle:
    case Phase::kCompute:
      break;
  }
  return "";
}

}  // namespace

Worker::Worker(asio::io_context& loop, transport::Transport& transport, daemon::Log& log, daemon::Startup startup,
               EngineFactory make_engine, std::function<void(const Error&)> on_refused)
    : loop_(loop),
      log_(log),
      startup_(std::move(startup)),
      on_refused_(std::move(on_refused)),
      transport_(transport),
      alive_(std::make_shared<bool>(true)),
      self_{startup_.task, startup_.incarnation},
      requests_({"Hello", "DescribeJob", "OpenJob", "StartJob", "LeaseGrant", "StopJob", "SetEvaluator", "Evaluate",
                 "CloseJob", "MarkChannels", "PauseJob", "HeartbeatAnswer", "LeaveGranted"}),
      leave_timer_(loop),
      heartbeat_(loop),
      chief_(loop, transport, startup_.cluster.chief.address, derive_timeouts(startup_.cluster.heartbeat.timeout),
             link_handlers()),
      step_(StepThreadOptions{startup_.cluster, self_.task, std::move(make_engine)}, transport, log,
            [this, alive = alive_](wire::ControlMessage message) {
              asio::post(loop_, [this, alive, message = std::move(message)]() mutable {
                if (*alive) tell(std::move(message));
              });
            }) {}

Worker::~Worker() {
  *alive_ = false;
  log_.set_listener({});
  chief_.close();
}

Status Worker::start() {
  const TransportConfig& limits = startup_.cluster.transport;
  Result<std::unique_ptr<transport::Listener>> listener = transport_.listen(
      loop_, startup_.listen_address,
      transport::ListenerLimits{.max_connections = limits.max_connections, .hello_timeout = limits.hello_timeout},
      [this](std::unique_ptr<transport::Arrival> arrival) { on_arrival(std::move(arrival)); });
  if (!listener) return tl::unexpected(listener.error());
  listener_ = std::move(*listener);
  if (startup_.address.ends_with(":0")) startup_.address = listener_->address();
  log_.info(to_string(self_.task) + " at " + startup_.address + ", metrics at " +
            (startup_.metrics_address.empty() ? "no address" : startup_.metrics_address) + ", chief at " +
            startup_.cluster.chief.address);
  log_.set_listener([this, alive = alive_] {
    asio::post(loop_, [this, alive] {
      if (*alive) send_logs();
    });
  });
  chief_.open();
  beat();
  return {};
}

std::string Worker::waits_for() const {
  return chief_.is_registered() ? "" : "the chief at " + startup_.cluster.chief.address;
}

void Worker::collect(metrics::Page& page) const {
  const std::string task = to_string(self_.task);
  requests_.collect(page, task);
  workerd::collect(step_.figures().read(), task, page);
}

// What the step thread has to say.
void Worker::tell(wire::ControlMessage message) {
  if (const auto* finished = std::get_if<WorkerFinished>(&message))
    log_.info(name_of_job(finished->job) + ": finished after " + std::to_string(finished->steps) + " steps");
  if (const auto* failed = std::get_if<TaskFailed>(&message)) log_.error(failed->reason);
  if (const auto* accusation = std::get_if<Accusation>(&message)) log_.warn(accusation->reason);
  chief_.tell(std::move(message));
}

transport::ChiefLink::Handlers Worker::link_handlers() {
  return {.make_hello = [this] { return make_hello(); },
          .on_welcome = [this](const Welcome& welcome) { on_welcome(welcome); },
          .on_other_journal = [this] { on_other_journal(); },
          .on_message = [this](const wire::ControlMessage& message) { on_message(message); },
          .on_refused = [this](const Error& why) { on_refused_(why); },
          .on_away = [this](const std::string& why) { on_away(why); },
          .on_unsent = [this](const Error& why) { log_.error("can't tell the chief: " + why.message); }};
}

void Worker::on_message(const wire::ControlMessage& message) {
  const Instant begin = daemon::now();
  std::visit([this](const auto& m) { handle(m); }, message);
  requests_.of(wire::name_of(message)).note(metrics::RpcCode::kOk, daemon::now() - begin);
}

// A probe of the chief, or somebody who is lost.
void Worker::on_arrival(std::unique_ptr<transport::Arrival> arrival) {
  const Instant begin = daemon::now();
  const std::vector<std::byte> bytes =
      wire::encode(Refused{ErrorCode::kConfig, to_string(self_.task) + " takes no connections; the chief is at " +
                                                   startup_.cluster.chief.address});
  transport::OutgoingFrame frame;
  frame.header.type = wire::FrameType::kRefused;
  frame.control = bytes;
  const std::unique_ptr<transport::Connection> connection = arrival->adopt(loop_);
  connection->send(frame);
  connection->close();
  requests_.of("Hello").note(metrics::RpcCode::kRefused, daemon::now() - begin);
}

Hello Worker::make_hello() const {
  TaskHello task;
  task.member = self_;
  task.address = startup_.address;
  task.host = daemon::host_name();
  task.pid = static_cast<std::uint32_t>(getpid());
  if (self_.task.index < startup_.cluster.workers.size()) {
    task.threads = startup_.cluster.workers[self_.task.index].threads;
    task.device = startup_.cluster.workers[self_.task.index].device;
  }
  task.journal = chief_.journal();
  task.metrics = startup_.metrics_address;
  task.job = job_;
  task.generation = generation_;
  Hello hello;
  hello.cluster = startup_.cluster.name;
  hello.cluster_hash = startup_.cluster.hash;
  hello.who = task;
  return hello;
}

void Worker::on_welcome(const Welcome& welcome) {
  for (const std::string& warning : welcome.warnings) log_.warn("the chief warns: " + warning);
  log_.info("registered with the chief at " + startup_.cluster.chief.address);
  if (is_leaving_) chief_.tell(LeaveRequest{});
  step_.chief_returned();
  send_logs();
}

// Nobody else gives its records to others.
void Worker::on_away(const std::string& why) {
  if (is_leaving_) return loop_.stop();
  log_.warn("no connection to the chief at " + startup_.cluster.chief.address + " (" + why +
            "); dialling it until it answers" +
            (job_ == JobId() ? "" : ", training goes on with the records that it has"));
}

void Worker::on_other_journal() {
  if (job_ != JobId()) log_.warn("the chief has another journal: " + name_of_job(job_) + " is dropped");
  log_.set_job("");
  job_ = JobId();
  generation_ = Generation();
  step_.drop_job();
}

void Worker::handle(const DescribeJob& message) {
  job_ = message.job;
  generation_ = Generation();
  name_job(message.job_toml);
  step_.describe(message);
}

void Worker::handle(const OpenJob& message) {
  if (message.job == job_ && message.generation < generation_) return;
  job_ = message.job;
  generation_ = message.generation;
  name_job(message.job_toml);
  step_.open(message, self_, chief_.timeouts());
}

void Worker::handle(const StartJob& message) {
  if (!is_ours(message.job, message.generation)) return;
  log_.info(name_of_job(message.job) + ": training starts");
  step_.feed(message.job, message.generation, Start{});
}

void Worker::handle(const LeaseGrant& message) {
  if (is_ours(message.job, message.generation)) step_.feed(message.job, message.generation, LeaseGranted{message});
}

void Worker::handle(const StopJob& message) {
  if (is_ours(message.job, message.generation)) step_.feed(message.job, message.generation, StopRequested{});
}

void Worker::handle(const SetEvaluator& message) {
  if (is_ours(message.job, message.generation)) step_.feed(message.job, message.generation, BecomesEvaluator{});
}

void Worker::handle(const Evaluate& message) {
  if (is_ours(message.job, message.generation)) step_.feed(message.job, message.generation, EvaluateRequested{});
}

void Worker::handle(const CloseJob& message) {
  if (message.job == job_) {
    log_.set_step(step_.board().read().progress.steps);  // a short job has ended between two heartbeats
    log_.info(name_of_job(message.job) + ": closed" + (message.reason.empty() ? "" : " (" + message.reason + ")"));
    log_.set_job("");
    job_ = JobId();
    generation_ = Generation();
  }
  step_.close(message);
  if (!message.removed) return;
  self_.incarnation = Incarnation(daemon::draw_number());
  chief_.redial();
}

void Worker::handle(const MarkChannels& message) {
  if (is_ours(message.job, message.generation))
    step_.feed(message.job, message.generation, MarkRequested{message.attempt});
}

void Worker::handle(const PauseJob& message) {
  if (!is_ours(message.job, message.generation)) return;
  pause_reason_ = message.paused ? message.reason : "";
  log_.info(name_of_job(message.job) + (message.paused ? ": pauses: " : ": goes on: ") + message.reason);
  step_.feed(message.job, message.generation, Paused{message.paused});
}

// ---- the end, and what systemd is told

void Worker::name_job(const std::string& job_toml) {
  pause_reason_.clear();
  const Result<JobConfig> config = daemon::read_job(job_toml);
  job_name_ = config ? config->job.name : std::to_string(job_.value);
  log_.set_job(job_name_);
}

void Worker::leave() {
  if (is_leaving_ || !chief_.is_registered()) {
    log_.info(is_leaving_ ? "told to end again: ends at once" : "told to end; no chief is there to wait for");
    return loop_.stop();
  }
  is_leaving_ = true;
  log_.info("told to end: waits until the chief lets it go" + std::string(job_ == JobId() ? "" : ", after its step"));
  chief_.tell(LeaveRequest{});
  leave_timer_.expires_after(chief_.timeouts().leave);
  leave_timer_.async_wait([this, alive = alive_](asio::error_code cancelled) {
    if (cancelled || !*alive) return;
    log_.warn("the chief hasn't let it go within " +
              std::to_string(static_cast<long>(to_seconds(chief_.timeouts().leave))) + " s: ends all the same");
    loop_.stop();
  });
}

void Worker::handle(const LeaveGranted&) {
  if (!is_leaving_) return;
  log_.info("the chief lets it go");
  loop_.stop();
}

std::vector<daemon::WatchedLoop> Worker::loops() {
  // One computation, or one piece of data, may take so long.
  constexpr Duration kLongestTurn = std::chrono::minutes(10);
  return {{"step", [this](std::function<void()> task) { step_.post(std::move(task)); },
           [this] { return step_.turns(); }, kLongestTurn}};
}

daemon::ServiceState Worker::state() const {
  daemon::ServiceState state;
  const BoardEntry entry = step_.board().read();
  state.is_ready = chief_.is_registered() || chief_.is_waiting();
  state.is_busy = is_leaving_;
  std::string& text = state.status;
  if (job_ != JobId()) {
    text = "job " + job_name_ + ", step " + std::to_string(entry.progress.steps);
    const std::string waits = waited_for(entry);
    if (!pause_reason_.empty())
      text += ", pauses: " + pause_reason_;
    else if (!waits.empty())
      text += ", " + waits;
  }
  if (is_leaving_)
    text += (text.empty() ? "" : ", ") + std::string("told to end, waits for the chief at ") +
            startup_.cluster.chief.address + " to let it go";
  else if (!chief_.is_registered())
    text += (text.empty() ? "" : ", ") + std::string("waits for the chief at ") + startup_.cluster.chief.address;
  else if (job_ == JobId())
    text = "no job; the chief is at " + startup_.cluster.chief.address;
  return state;
}

void Worker::change(const ClusterConfig& cluster) {
  if (cluster.heartbeat.timeout != startup_.cluster.heartbeat.timeout)
    log_.info("heartbeat.timeout: while a chief is there its own holds; a job that runs keeps the waits it began with");
  startup_.cluster = cluster;
  chief_.set_own_timeouts(derive_timeouts(cluster.heartbeat.timeout));
}

void Worker::beat() {
  heartbeat_.expires_after(chief_.timeouts().interval);
  heartbeat_.async_wait([this, alive = alive_](asio::error_code cancelled) {
    if (!cancelled && *alive) beat();
  });
  const Instant now = daemon::now();
  const BoardEntry entry = step_.board().read();
  Heartbeat heartbeat;
  heartbeat.job = entry.job;
  heartbeat.generation = entry.generation;
  heartbeat.phase = entry.progress.phase;
  heartbeat.in_phase = entry.job == JobId() ? Duration::zero() : now - entry.progress.since;
  heartbeat.steps = entry.progress.steps;
  log_.set_step(entry.progress.steps);
  heartbeat.examples = entry.progress.examples;
  heartbeat.loss = entry.progress.loss;
  heartbeat.phase_times.assign(entry.progress.times.begin(), entry.progress.times.end());
  heartbeat.phase_times[static_cast<std::size_t>(entry.progress.phase)] += heartbeat.in_phase;
  chief_.tell(heartbeat);
}

void Worker::send_logs() {
  while (chief_.has_room()) {
    LogLines lines = log_.take(kLogLinesAtOnce);
    if (lines.lines.empty() && lines.dropped == 0) return;
    chief_.tell(lines);
  }
}

}  // namespace disttrain::workerd
