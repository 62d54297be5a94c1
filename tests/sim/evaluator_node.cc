#include "tests/sim/evaluator_node.h"

#include "common/checkpoint/shard_file.h"

namespace disttrain::sim {

Hello EvaluatorNode::make_hello() {
  TaskHello task = task_hello();
  task.address = address_of(jobs_.cluster, self().task);
  task.job = core_.job();
  task.generation = core_.generation();
  Hello hello;
  hello.who = task;
  return hello;
}

Heartbeat EvaluatorNode::make_heartbeat() {
  Heartbeat beat;
  beat.job = core_.job();
  beat.generation = core_.generation();
  beat.work = work_;
  beat.phase = core_.is_evaluating() ? Phase::kEvaluate : Phase::kIdle;
  return beat;
}

void EvaluatorNode::on_order(const wire::ControlMessage& message) {
  if (const auto* order = std::get_if<EvaluateCheckpoint>(&message)) carry_out(core_.on_order(*order));
  if (const auto* close = std::get_if<CloseJob>(&message)) carry_out(core_.on_close(close->job));
}

void EvaluatorNode::carry_out(const workerd::EvaluatorActions& actions) {
  for (const workerd::EvaluatorAction& action : actions) {
    if (std::holds_alternative<workerd::AbandonEvaluation>(action)) {
      running_ = workerd::EvaluationTicket();
      lock_.reset();
    }
    if (const auto* begin = std::get_if<workerd::BeginEvaluation>(&action)) this->begin(*begin);
    if (const auto* answer = std::get_if<workerd::AnswerChief>(&action))
      std::visit([this](const auto& m) { tell_chief(m); }, answer->message);
  }
}

void EvaluatorNode::begin(const workerd::BeginEvaluation& action) {
  running_ = action.ticket;
  tell("evaluates " + action.order.path);
  after(world_.between(std::chrono::microseconds(100), jobs_.disk->slowest), [this, action] {
    if (running_ == action.ticket) read(action);
  });
}

// The files are read at one moment, and locked until the evaluation ends. The real evaluator holds the lock for a
// shorter time.
void EvaluatorNode::read(const workerd::BeginEvaluation& action) {
  ++work_;
  auto open = checkpoint::open_checkpoint(jobs_.disk->files(), action.order.path);
  if (!open) return carry_out(core_.on_failed(action.ticket, open.error()));
  if (Status good = checkpoint::verify_files(jobs_.disk->files(), action.order.path, open->manifest); !good)
    return carry_out(core_.on_failed(action.ticket, good.error()));
  lock_ = std::move(open->lock);
  after(world_.between(std::chrono::microseconds(100), slowest_), [this, action, step = open->manifest.step] {
    if (running_ == action.ticket) end(action, step);
  });
}

void EvaluatorNode::end(const workerd::BeginEvaluation& action, Step step) {
  ++work_;
  lock_.reset();
  Evaluated evaluated;
  evaluated.step = step;
  evaluated.examples = 10;
  evaluated.loss = static_cast<double>((step.value * 37 + action.order.generation.value * 11) % 17);
  running_ = workerd::EvaluationTicket();
  laws_.evaluated(action.order.job, action.order.path, step);
  carry_out(core_.on_done(action.ticket, evaluated));
}

}  // namespace disttrain::sim
