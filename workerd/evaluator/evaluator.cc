#include "workerd/evaluator/evaluator.h"

#include <algorithm>
#include <asio/post.hpp>
#include <utility>

#include "common/daemon/clock.h"
#include "common/format_duration.h"
#include "common/metrics/families.h"
#include "transport/control_link.h"

namespace disttrain::workerd {

Evaluator::Evaluator(asio::io_context& loop, transport::Transport& transport, daemon::Log& log, daemon::Startup startup,
                     EngineFactory make_engine, std::function<void(const Error&)> on_refused,
                     std::function<void()> on_hung)
    : loop_(loop),
      log_(log),
      startup_(std::move(startup)),
      on_refused_(std::move(on_refused)),
      on_hung_(std::move(on_hung)),
      transport_(transport),
      alive_(std::make_shared<bool>(true)),
      requests_({"Hello", "EvaluateCheckpoint", "CloseJob", "HeartbeatAnswer", "LeaveGranted"}),
      membership_(loop, transport, log, startup_, requests_, membership_handlers()),
      thread_(compute_config_of(startup_.cluster, startup_.task), std::move(make_engine), log,
              [this, alive = alive_](EvaluationTicket ticket, Result<Evaluated> result) {
                asio::post(loop_, [this, alive, ticket, result = std::move(result)] {
                  if (*alive) on_done(ticket, result);
                });
              }),
      release_(loop,
               {.post = [this](std::function<void()> task) { thread_.post(std::move(task)); },
                .turns = [this] { return thread_.work(); }},
               [this](const std::string& missed) { this->on_hung(missed); }) {}

Evaluator::~Evaluator() {
  *alive_ = false;
  membership_.close();  // done first, because the end of the thread may take as long as a computation
}

Status Evaluator::start() {
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

void Evaluator::collect(metrics::Page& page) const {
  const std::string task = to_string(startup_.task);
  requests_.collect(page, task);
  page.set(metrics::kEvaluatorEvaluations, {task, "evaluated"}, static_cast<double>(evaluated_));
  page.set(metrics::kEvaluatorEvaluations, {task, "failed"}, static_cast<double>(failed_));
}

task::Handlers Evaluator::membership_handlers() {
  return {.make_hello = [this] { return make_hello(); },
          .make_heartbeat = [this] { return make_heartbeat(); },
          .on_order = [this](const wire::ControlMessage& message) { on_order(message); },
          .on_other_journal = [this] { carry_out(core_.on_drop()); },
          .on_refused = on_refused_,
          .without_chief =
              [this] { return std::string(core_.is_evaluating() ? "the evaluation of its checkpoint goes on" : ""); },
          .end = [this] { loop_.stop(); }};
}

// Refuses a connection. Either the chief probes the evaluator, or the other side dialled the wrong address.
void Evaluator::on_arrival(std::unique_ptr<transport::Arrival> arrival) {
  const Instant begin = daemon::now();
  const Result<Hello> hello = transport::hello_of(*arrival);
  const std::string why =
      hello ? to_string(startup_.task) + " takes no connections; the chief is at " + startup_.cluster.chief.address
            : hello.error().message;
  transport::refuse(loop_, *arrival, Refused{ErrorCode::kConfig, why, false, membership_.self()});
  requests_.of("Hello").note(metrics::RpcCode::kRefused, daemon::now() - begin);
}

TaskHello Evaluator::make_hello() const {
  TaskHello hello;
  const WorkerConfig& settings = compute_config_of(startup_.cluster, startup_.task);
  hello.threads = settings.threads;
  hello.device = settings.device;
  hello.job = core_.job();
  hello.generation = core_.generation();
  return hello;
}

Heartbeat Evaluator::make_heartbeat() const {
  Heartbeat heartbeat;
  heartbeat.job = core_.job();
  heartbeat.generation = core_.generation();
  heartbeat.work = thread_.work();
  if (!core_.is_evaluating()) return heartbeat;
  heartbeat.phase = thread_.is_reading() ? Phase::kInput : Phase::kEvaluate;
  heartbeat.in_phase = daemon::now() - since_;
  return heartbeat;
}

void Evaluator::on_order(const wire::ControlMessage& message) {
  if (const auto* order = std::get_if<EvaluateCheckpoint>(&message)) {
    job_name_ = order->config->job.name;
    longest_batch_ = order->config->job.stall_timeout;
    log_.set_job(job_name_);
    carry_out(core_.on_order(*order));
  } else if (const auto* close = std::get_if<CloseJob>(&message)) {
    carry_out(core_.on_close(close->job));
  }
}

void Evaluator::on_done(EvaluationTicket ticket, const Result<Evaluated>& result) {
  const EvaluatorActions actions = result ? core_.on_done(ticket, *result) : core_.on_failed(ticket, result.error());
  if (actions.empty()) return;
  ++(result ? evaluated_ : failed_);
  if (result)
    log_.info("evaluated the checkpoint of step " + std::to_string(result->step.value) + " in " +
              format_duration(result->took));
  else
    log_.error("can't evaluate: " + result.error().message);
  carry_out(actions);
}

void Evaluator::carry_out(const EvaluatorActions& actions) {
  for (const EvaluatorAction& action : actions) {
    if (std::holds_alternative<AbandonEvaluation>(action)) {
      thread_.abandon();
      release_.begin(std::max(daemon::kReleasePatience, longest_batch_));
    } else if (std::holds_alternative<ReleaseJob>(action)) {
      log_.info("releases job " + job_name_);
      log_.set_job("");
      thread_.release();
      // Data ends soon when it is read, and a trainer's batch is cut short. Other engines compute their batch to its
      // end.
      release_.begin(thread_.is_reading() ? daemon::kReleasePatience
                                          : std::max(daemon::kReleasePatience, longest_batch_));
    } else if (const auto* begin = std::get_if<BeginEvaluation>(&action)) {
      since_ = daemon::now();
      log_.set_job(job_name_);
      log_.info("evaluates " + begin->order.path);
      thread_.begin(begin->ticket, begin->order);
    } else if (const auto* answer = std::get_if<AnswerChief>(&action)) {
      std::visit([this](const auto& message) { membership_.tell(message); }, answer->message);
    }
  }
}

// See Worker::on_hung().
void Evaluator::on_hung(const std::string& missed) {
  log_.error("the evaluation of a checkpoint of job " + job_name_ +
             " isn't wanted any more, but its program, trainer or data still keeps the evaluation thread, which " +
             missed + ": ending this process with exit code " + std::to_string(daemon::kHungCode) +
             ", so that it is started again without the job");
  asio::post(loop_, [this, alive = alive_] {
    if (!*alive) return;
    membership_.close();
    on_hung_();
  });
}

void Evaluator::leave() {
  membership_.leave(membership_.timeouts().leave, "");
}

std::vector<daemon::WatchedLoop> Evaluator::loops() {
  // The watchdog allows this long for one computation or for reading one piece of data.
  constexpr Duration kLongestTurn = std::chrono::minutes(10);
  return {{"evaluation", [this](std::function<void()> task) { thread_.post(std::move(task)); },
           [this] { return thread_.work(); }, kLongestTurn}};
}

std::string Evaluator::job_text() const {
  if (core_.job().value == 0) return "";
  return "job " + job_name_ + (core_.is_evaluating() ? ", evaluates a checkpoint" : ", waits for a checkpoint");
}

void Evaluator::change(const ClusterConfig& cluster) {
  membership_.change(cluster);
  startup_.cluster = cluster;
}

}  // namespace disttrain::workerd
