// EvaluatorCore: an evaluator's rules. It gets the chief's orders, and says which checkpoint to evaluate and what to
// answer. It does no I/O: the shell (workerd/evaluator) evaluates, and the simulator runs the same core.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "common/messages/control.h"

namespace disttrain::workerd {

// The number of an evaluation: 1 for the first, 2 for the second and so on.
using EvaluationTicket = StrongId<struct EvaluationTicketTag, std::uint64_t>;

// ---- actions: the shell carries them out in order

// Ends the evaluation that is under way, as soon as possible. The shell may still report its end; the core ignores it.
struct AbandonEvaluation {};
// Frees the memory of the job that was evaluated last.
struct ReleaseJob {};
struct BeginEvaluation {
  EvaluationTicket ticket;
  EvaluateCheckpoint order;
};
struct AnswerChief {
  std::variant<Evaluated, EvaluationFailed, JobClosed> message;
};
using EvaluatorAction = std::variant<AbandonEvaluation, ReleaseJob, BeginEvaluation, AnswerChief>;
using EvaluatorActions = std::vector<EvaluatorAction>;

class EvaluatorCore {
 public:
  // An order for the checkpoint that is being evaluated changes nothing. If the checkpoint is the one that was
  // evaluated last, the core repeats its answer, because the chief may not have got it. Any other order replaces the
  // current one.
  EvaluatorActions on_order(const EvaluateCheckpoint& order);
  // The chief closes the job, or the evaluator drops it because the chief doesn't know it.
  EvaluatorActions on_close(JobId job);
  EvaluatorActions on_drop();
  // The evaluation has ended. Job, generation and path of the result are filled in here. A failure isn't remembered, so
  // that the chief can repeat the order to try again.
  EvaluatorActions on_done(EvaluationTicket ticket, Evaluated evaluated);
  EvaluatorActions on_failed(EvaluationTicket ticket, const Error& error);

  // The job that the evaluator works for, and the generation of its checkpoint. 0: none.
  JobId job() const { return job_; }
  Generation generation() const { return generation_; }
  bool is_evaluating() const { return current_.has_value(); }

 private:
  void leave_job(EvaluatorActions& out);

  JobId job_;
  Generation generation_;
  EvaluationTicket last_;                      // of the newest evaluation
  std::optional<EvaluateCheckpoint> current_;  // the order that is being carried out
  std::optional<Evaluated> answer_;            // to the last order, if that wasn't a failure
};

}  // namespace disttrain::workerd
