#include "workerd/core/evaluator_core.h"

#include <utility>

namespace disttrain::workerd {

EvaluatorActions EvaluatorCore::on_order(const EvaluateCheckpoint& order) {
  EvaluatorActions out;
  const bool is_same_job = order.job == job_;
  if (is_same_job && current_ && current_->path == order.path) return out;
  if (is_same_job && !current_ && answer_ && answer_->path == order.path) {
    out.push_back(AnswerChief{*answer_});
    return out;
  }
  if (!is_same_job && job_.value != 0) leave_job(out);
  if (current_) out.push_back(AbandonEvaluation{});
  answer_.reset();
  job_ = order.job;
  generation_ = order.generation;
  current_ = order;
  last_ = last_.next();
  out.push_back(BeginEvaluation{last_, order});
  return out;
}

void EvaluatorCore::leave_job(EvaluatorActions& out) {
  // push_back() would move a variant, for which g++ 12 gives a false warning of an uninitialized value.
  if (current_) out.emplace_back(AbandonEvaluation{});
  out.emplace_back(ReleaseJob{});
  current_.reset();
  answer_.reset();
  job_ = JobId();
  generation_ = Generation();
}

EvaluatorActions EvaluatorCore::on_close(JobId job) {
  EvaluatorActions out;
  if (job == job_) leave_job(out);
  out.push_back(AnswerChief{JobClosed{job}});
  return out;
}

EvaluatorActions EvaluatorCore::on_drop() {
  EvaluatorActions out;
  if (job_.value != 0) leave_job(out);
  return out;
}

EvaluatorActions EvaluatorCore::on_done(EvaluationTicket ticket, Evaluated evaluated) {
  EvaluatorActions out;
  if (!current_ || ticket != last_) return out;
  evaluated.job = current_->job;
  evaluated.generation = current_->generation;
  evaluated.path = current_->path;
  current_.reset();
  answer_ = std::move(evaluated);
  out.push_back(AnswerChief{*answer_});
  return out;
}

EvaluatorActions EvaluatorCore::on_failed(EvaluationTicket ticket, const Error& error) {
  EvaluatorActions out;
  if (!current_ || ticket != last_) return out;
  out.push_back(
      AnswerChief{EvaluationFailed{current_->job, current_->generation, current_->path, error.code, error.message}});
  current_.reset();
  return out;
}

}  // namespace disttrain::workerd
