#include "workerd/evaluator/evaluation_thread.h"

#include <asio/post.hpp>
#include <utility>

#include "common/daemon/threads.h"

namespace disttrain::workerd {

EvaluationThread::EvaluationThread(WorkerConfig settings, EngineFactory make_engine, daemon::Log& log,
                                   std::function<void(EvaluationTicket, Result<Evaluated>)> done)
    : settings_(std::move(settings)),
      make_engine_(std::move(make_engine)),
      log_(log),
      done_(std::move(done)),
      guard_(asio::make_work_guard(commands_)),
      thread_([this] { run(); }) {}

EvaluationThread::~EvaluationThread() {
  abandon();
  guard_.reset();
  commands_.stop();
  thread_.join();
}

void EvaluationThread::run() {
  daemon::name_thread("evaluation");
  if (Status ok = daemon::pin_thread(settings_.cores); !ok) log_.warn(ok.error().message);
  commands_.run();
  evaluation_.reset();
}

void EvaluationThread::post(std::function<void()> task) {
  asio::post(commands_, std::move(task));
}

void EvaluationThread::begin(EvaluationTicket ticket, EvaluateCheckpoint order) {
  wanted_ = ticket.value;
  post([this, ticket, order = std::move(order)] { evaluate(ticket, order); });
}

void EvaluationThread::release() {
  ++releases_;
  post([this] {
    evaluation_.reset();
    --releases_;
  });
}

// ---- on the thread

bool EvaluationThread::is_cancelled() const {
  ++work_;  // long work calls this function regularly
  return wanted_ != running_;
}

void EvaluationThread::evaluate(EvaluationTicket ticket, const EvaluateCheckpoint& order) {
  running_ = ticket.value;
  if (is_cancelled()) return;
  if (!evaluation_ || evaluation_->job() != order.job)
    if (Status ready = prepare(ticket, order); !ready) {
      if (!is_cancelled()) done_(ticket, tl::unexpected(ready.error()));
      return;
    }
  const Result<Evaluated> evaluated = evaluation_->run(
      order.path, [this] { return is_cancelled(); }, [this] { return releases_ > 0; });
  if (evaluated)
    if (const std::string notice = evaluation_->take_notice_of_unknown(); !notice.empty()) log_.warn(notice);
  if (!is_cancelled()) done_(ticket, evaluated);
}

Status EvaluationThread::prepare(EvaluationTicket, const EvaluateCheckpoint& order) {
  evaluation_.reset();
  is_reading_ = true;
  const EngineWorld world{
      .loop = engine_loop_,
      .threads = settings_.threads,
      .is_cancelled = [this] { return is_cancelled(); },
      .on_line = [this](const std::string& line) { log_.info("trainer: " + line); },
      .on_checkpoint = [] {},
      .worker_count = [] { return 1u; },
  };
  Result<std::unique_ptr<CheckpointEvaluation>> made =
      CheckpointEvaluation::make(order.job, *order.config, order.path, make_engine_, world);
  is_reading_ = false;
  if (!made) return tl::unexpected(made.error());
  evaluation_ = std::move(*made);
  log_.info("job " + std::to_string(order.job.value) + ": " + std::to_string(evaluation_->records()) +
            " evaluation records");
  return {};
}

}  // namespace disttrain::workerd
