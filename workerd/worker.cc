#include "workerd/worker.h"

#include <algorithm>
#include <asio/post.hpp>
#include <utility>

#include "common/counted.h"
#include "common/daemon/clock.h"
#include "transport/control_link.h"
#include "workerd/worker_metrics.h"

namespace disttrain::workerd {

namespace {

std::string name_of_job(JobId job) {
  return "job " + std::to_string(job.value);
}

// Says what the worker waits for. Empty if it isn't waiting, or if it has waited for less than a second.
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
               EngineFactory make_engine, std::function<void(const Error&)> on_refused, std::function<void()> on_hung)
    : loop_(loop),
      log_(log),
      startup_(std::move(startup)),
      on_refused_(std::move(on_refused)),
      on_hung_(std::move(on_hung)),
      transport_(transport),
      alive_(std::make_shared<bool>(true)),
      requests_({"Hello", "DescribeJob", "OpenJob", "StartJob", "LeaseGrant", "StopJob", "SetEvaluator", "Evaluate",
                 "CloseJob", "MarkChannels", "PauseJob", "HeartbeatAnswer", "LeaveGranted"}),
      membership_(loop, transport, log, startup_, requests_, membership_handlers()),
      step_(StepThreadOptions{startup_.cluster, startup_.task, std::move(make_engine)}, transport, log,
            [this, alive = alive_](wire::ControlMessage message) {
              asio::post(loop_, [this, alive, message = std::move(message)]() mutable {
                if (*alive) tell(std::move(message));
              });
            }),
      release_(loop,
               {.post = [this](std::function<void()> task) { step_.post(std::move(task)); },
                .turns = [this] { return step_.turns(); }},
               [this](const std::string& missed) { this->on_hung(missed); }) {}

Worker::~Worker() {
  *alive_ = false;
  membership_.close();  // done first, because the end of the step thread may take as long as a computation
}

Status Worker::start() {
  const TransportConfig& limits = startup_.cluster.transport;
  Result<std::unique_ptr<transport::Listener>> listener =
      transport_.listen(loop_, startup_.listen_address,
                        transport::ListenerLimits{.max_connections = max_connections_of(startup_.cluster, 0),
                                                  .hello_timeout = limits.hello_timeout},
                        [this](std::unique_ptr<transport::Arrival> arrival) { on_arrival(std::move(arrival)); });
  if (!listener) return tl::unexpected(listener.error());
  listener_ = std::move(*listener);
  if (startup_.address.ends_with(":0")) startup_.address = listener_->address();
  const TaskHello what = make_hello();
  log_.info(
      daemon::banner(startup_.cluster, startup_.task, startup_.address, transport_.name(), startup_.metrics_address) +
      "; device " + (what.device.empty() ? "cpu" : what.device) + ", " + std::to_string(what.threads) +
      (what.threads == 1 ? " thread" : " threads") + "; waiting for the chief at " + startup_.cluster.chief.address);
  membership_.open();
  return {};
}

void Worker::collect(metrics::Page& page) const {
  const std::string task = to_string(startup_.task);
  requests_.collect(page, task);
  workerd::collect(step_.figures().read(), task, page);
}

// Handles a message that the step thread sends to the chief.
void Worker::tell(wire::ControlMessage message) {
  if (const auto* finished = std::get_if<WorkerFinished>(&message))
    log_.info(name_of_job(finished->job) + ": finished after " + counted(finished->steps, "step"));
  if (const auto* failed = std::get_if<TaskFailed>(&message)) on_failed(*failed);
  if (const auto* accusation = std::get_if<Accusation>(&message)) {
    // The step thread dials again and again. This would log the same sentence each time.
    std::string& complaint = complaints_[accusation->accused];
    if (accusation->withdrawn)
      log_.info(to_string(accusation->accused) + " answers again");
    else if (complaint != accusation->reason)
      log_.warn(accusation->reason);
    complaint = accusation->reason;
  }
  if (auto* trace = std::get_if<TraceEvents>(&message)) return membership_.tell_trace(std::move(*trace));
  if (auto* described = std::get_if<JobDescribed>(&message)) return probe_and_tell(std::move(*described));
  const auto* const closed = std::get_if<JobClosed>(&message);
  const JobId closed_job = closed == nullptr ? JobId() : closed->job;
  membership_.tell(std::move(message));
  if (closed_job != JobId()) on_closed(closed_job);
}

// If the step thread can't open the job, it holds nothing of the generation. The hello to a later chief says so,
// because this message may be lost. That chief then asks again.
void Worker::on_failed(const TaskFailed& failed) {
  log_.error(failed.reason);
  const bool has_released = step_.board().read().job == JobId();
  if (has_released && is_ours(failed.job, failed.generation)) generation_ = Generation();
}

// The step thread has released the job. A worker that was removed from the job comes back as another member, unless the
// chief has given it another order meanwhile.
void Worker::on_closed(JobId job) {
  const auto closing = closing_.extract(job);
  if (!closing.empty() && closing.mapped() && job_ == JobId()) membership_.rejoin();
}

// The process ends, because a thread can't be ended from outside. The log passes its lines to the loop, so they are
// sent to the chief before the connection closes.
void Worker::on_hung(const std::string& missed) {
  std::string jobs;
  for (const auto& [job, removed] : closing_) jobs += (jobs.empty() ? "" : ", ") + name_of_job(job);
  log_.error((jobs.empty() ? "the last job" : jobs) +
             " is over for this worker, but its program, trainer or data still keeps the step thread, which " + missed +
             ": ending this process with exit code " + std::to_string(daemon::kHungCode) +
             ", so that it is started again without the job");
  asio::post(loop_, [this, alive = alive_] {
    if (!*alive) return;
    membership_.close();
    on_hung_();
  });
}

// Probes the links to all ps tasks of the job and then tells the chief which of them this worker can't reach. Only a
// worker that reaches all of them may join the job.
void Worker::probe_and_tell(JobDescribed described) {
  Hello hello;
  hello.cluster = startup_.cluster.name;
  hello.cluster_hash = startup_.cluster.hash;
  hello.who = ClientHello{to_string(startup_.task)};
  probe_ = std::make_unique<ReachProbe>(loop_, transport_, hello, reach_, membership_.timeouts().dial,
                                        [this, answer = std::move(described)](std::vector<Member> unreachable) mutable {
                                          for (const Member& ps : unreachable)
                                            log_.warn("no answer from " + to_string(ps.task));
                                          answer.unreachable = std::move(unreachable);
                                          if (job_ == answer.job) membership_.tell(std::move(answer));
                                          probe_.reset();
                                        });
}

task::Handlers Worker::membership_handlers() {
  return {.make_hello = [this] { return make_hello(); },
          .make_heartbeat = [this] { return make_heartbeat(); },
          .before_heartbeat = [this] { log_.set_step(step_.board().read().progress.steps); },
          .on_order = [this](const auto& message) { std::visit([this](const auto& m) { handle(m); }, message); },
          .on_other_journal = [this] { on_other_journal(); },
          .on_registered = [this] { step_.chief_returned(); },
          .on_away = [this] { step_.chief_went_away(); },
          .on_refused = on_refused_,
          .without_chief =
              [this] {
                return std::string(job_ == JobId() ? "" : "training goes on with the records that the worker has");
              },
          .end = [this] { loop_.stop(); }};
}

// Refuses a connection to the worker. Either the chief probes the worker, or the other side dialled the wrong address.
void Worker::on_arrival(std::unique_ptr<transport::Arrival> arrival) {
  const Instant begin = daemon::now();
  const Result<Hello> hello = transport::hello_of(*arrival);
  const std::string why =
      hello ? to_string(startup_.task) + " takes no connections; the chief is at " + startup_.cluster.chief.address
            : hello.error().message;
  transport::refuse(loop_, *arrival, Refused{ErrorCode::kConfig, why, false, membership_.self()});
  requests_.of("Hello").note(metrics::RpcCode::kRefused, daemon::now() - begin);
}

TaskHello Worker::make_hello() const {
  TaskHello hello;
  const std::vector<WorkerConfig>& workers = startup_.cluster.workers;
  if (startup_.task.index < workers.size()) {
    hello.threads = workers[startup_.task.index].threads;
    hello.device = workers[startup_.task.index].device;
  }
  hello.job = job_;
  hello.generation = generation_;
  // While the step thread holds a job that is over, the worker takes no other job.
  if (job_ == JobId() && !closing_.empty()) hello.job = closing_.begin()->first;
  return hello;
}

void Worker::on_other_journal() {
  if (job_ != JobId())
    log_.warn("the chief has another journal and doesn't know " + name_of_job(job_) + ": this worker drops the job");
  log_.set_job("");
  job_ = JobId();
  generation_ = Generation();
  closing_.clear();  // the new journal may give the same numbers to other jobs
  step_.drop_job();
  release_.begin();
}

// The chief gives orders for one job only. Its order to close the older job may have been lost, or not sent to a worker
// that was only asked to describe the job.
void Worker::leave_older_job(JobId newer) {
  if (job_ == JobId() || job_ == newer) return;
  handle(CloseJob{job_, generation_, "the chief has begun " + name_of_job(newer)});
}

// The chief may ask again about the same job while it recovers. The worker's pause reason then stays.
void Worker::handle(const DescribeJob& message) {
  leave_older_job(message.job);
  if (message.job != job_) pause_reason_.clear();
  job_ = message.job;
  generation_ = Generation();
  reach_ = message.reach;
  longest_step_ = message.config->job.stall_timeout;
  name_job(message.config->job.name);
  step_.describe(message);
}

void Worker::handle(const OpenJob& message) {
  if (message.job == job_ && message.generation < generation_) return;
  leave_older_job(message.job);
  job_ = message.job;
  generation_ = message.generation;
  pause_reason_.clear();
  longest_step_ = message.config->job.stall_timeout;
  name_job(message.config->job.name);
  step_.open(message, membership_.self(), membership_.timeouts());
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

// The chief repeats CloseJob with each heartbeat that shows the job, until the step thread has released it.
void Worker::handle(const CloseJob& message) {
  const bool is_own = message.job == job_;
  const auto closing = closing_.find(message.job);
  if (!is_own && closing != closing_.end() && (message.removed || !closing->second)) return;
  if (is_own) {
    log_.set_step(
        step_.board().read().progress.steps);  // done here too, because a short job may end between two heartbeats
    log_.info(name_of_job(message.job) + ": closed" + (message.reason.empty() ? "" : " (" + message.reason + ")"));
    log_.set_job("");
    job_ = JobId();
    generation_ = Generation();
  }
  step_.close(message);
  // An older job was released when the newer one began, so the thread may be at work for the newer one.
  if (!is_own && closing == closing_.end()) return;
  closing_[message.job] = message.removed;
  // If the job goes on without this worker, nothing waits for the end of its step.
  release_.begin(message.removed ? std::max(daemon::kReleasePatience, longest_step_) : daemon::kReleasePatience);
}

void Worker::handle(const MarkChannels& message) {
  if (is_ours(message.job, message.generation))
    step_.feed(message.job, message.generation, MarkRequested{message.attempt});
}

void Worker::handle(const PauseJob& message) {
  if (!is_ours(message.job, message.generation)) return;
  // The chief also tells a worker that has just joined whether the job is paused. If it isn't, the worker logs nothing.
  const bool is_news = message.paused || !pause_reason_.empty();
  pause_reason_ = message.paused ? message.reason : "";
  if (is_news) log_.info(name_of_job(message.job) + (message.paused ? ": pauses: " : ": goes on: ") + message.reason);
  step_.feed(message.job, message.generation, Paused{message.paused});
}

// ---- the worker's end, and its reports to systemd ----

void Worker::name_job(const std::string& name) {
  job_name_ = name;
  log_.set_job(job_name_);
}

void Worker::leave() {
  membership_.leave(membership_.timeouts().leave, job_ == JobId() ? "" : "its step");
}

std::vector<daemon::WatchedLoop> Worker::loops() {
  // The watchdog allows this long for one computation or for reading one piece of data.
  constexpr Duration kLongestTurn = std::chrono::minutes(10);
  return {{"step", [this](std::function<void()> task) { step_.post(std::move(task)); },
           [this] { return step_.turns(); }, kLongestTurn}};
}

daemon::ServiceState Worker::state() const {
  return membership_.state(job_text());
}

std::string Worker::job_text() const {
  if (job_ == JobId()) return "";
  const BoardEntry entry = step_.board().read();
  const std::string text = "job " + job_name_ + ", step " + std::to_string(entry.progress.steps);
  if (!pause_reason_.empty()) return text + ", pauses: " + pause_reason_;
  const std::string waits = waited_for(entry);
  return text + (waits.empty() ? "" : ", ") + waits;
}

void Worker::change(const ClusterConfig& cluster) {
  membership_.change(cluster);
  startup_.cluster = cluster;
}

Heartbeat Worker::make_heartbeat() const {
  const BoardEntry entry = step_.board().read();
  Heartbeat heartbeat;
  heartbeat.job = entry.job;
  heartbeat.generation = entry.generation;
  heartbeat.phase = entry.progress.phase;
  heartbeat.in_phase = entry.job == JobId() ? Duration::zero() : daemon::now() - entry.progress.since;
  heartbeat.steps = entry.progress.steps;
  heartbeat.work = step_.work();
  heartbeat.examples = entry.progress.examples;
  heartbeat.loss = entry.progress.loss;
  heartbeat.wires = entry.wires;
  const StepMetrics newest = step_.metrics().read();
  if (!newest.accumulators.empty()) heartbeat.metrics = metric_values(newest.metrics, newest.accumulators);
  heartbeat.phase_times.assign(entry.progress.times.begin(), entry.progress.times.end());
  heartbeat.phase_times[static_cast<std::size_t>(entry.progress.phase)] += heartbeat.in_phase;
  if (entry.job != JobId()) heartbeat.data_times = step_.figures().read().stages;
  return heartbeat;
}

}  // namespace disttrain::workerd
