// Lets the cluster's evaluators evaluate a job's checkpoints while the job trains. Also notes the results of all
// evaluations, those of workers too, and draws the conclusions: the job finishes early, or a checkpoint is one of the
// best (evaluation_book.h). The checkpoints are evaluated in their order, the oldest first. An evaluator gets one order
// at a time. Its loss doesn't count for job.max_restarts: the checkpoint waits for the next free evaluator. An
// evaluation that fails is repeated kMostEvaluationFailures times, and then given up with a warning.
//
// When the job has done all its steps, it waits until all checkpoints in the folder are evaluated. If no evaluator
// makes progress any more, a worker evaluates the final parameters, as in a cluster without evaluators.
#include "chiefd/core/job/flow/flow.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "chiefd/core/job/rules/evaluations.h"
#include "chiefd/core/job/views/evaluations.h"
#include "chiefd/core/restarts.h"
#include "common/format_duration.h"
#include "common/mutant.h"

namespace disttrain::chiefd::flow {
namespace {

// If the checkpoints in the folder couldn't be listed, the chief tries again after this time.
constexpr Duration kListingPause = std::chrono::seconds(1);

// The shortest text that is read as this number.
std::string exact_text(double number) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), number).ptr};
}

EvaluationStatus status_of(const Evaluated& evaluated) {
  return {evaluated.step,     evaluated.loss,  evaluated.metrics,
          evaluated.examples, evaluated.final, evaluated.parameters_hash};
}

void list_folder(JobFacts& job, Turn& turn, const std::string& best);
void drop_order(JobFacts& job, Turn& turn, TaskId task, const std::string& why);
void on_evaluation_order_failed(JobFacts& job, Turn& turn, TaskId task, const KeptCheckpoint& checkpoint,
                                const std::string& why);
void show_evaluation(JobFacts& job, Turn& turn, const EvaluationStatus& evaluation);

void persist_evaluations(JobFacts& job, Turn& turn) {
  job.evaluations.is_kept = false;
  EvaluationsRecord record = job.evaluations.book.record();
  record.job = job.setup.id;
  turn.persist(std::move(record));
}

void note_listed(JobFacts& job, Turn& turn, bool is_listed) {
  job.evaluations.is_listed = is_listed;
  if (!is_listed) job.evaluations.list_again = turn.now + kListingPause;
}

// Exports the best checkpoint, if best.safetensors is of another one. Lets the folder keep the book if it has changed.
void keep_best(JobFacts& job, Turn& turn) {
  const std::vector<BestCheckpoint>& best = job.evaluations.book.record().best;
  const bool is_exported = best.empty() || best.front().checkpoint.path == job.evaluations.book.record().exported;
  if (is_exported && job.evaluations.is_kept) return;
  list_folder(job, turn, is_exported ? "" : best.front().checkpoint.path);
}

void list_folder(JobFacts& job, Turn& turn, const std::string& best) {
  if (job.evaluations.listing || !job.folder.is_open) return;
  KeepBest work{best, job.setup.config().evaluate.average > 0.0, {}};
  if (!best.empty()) {
    const BestCheckpoint& first = job.evaluations.book.record().best.front();
    work.metadata = {{"disttrain.job", job.setup.name()},
                     {"disttrain.checkpoint", first.checkpoint.path},
                     {"disttrain.step", std::to_string(first.checkpoint.step.value)},
                     {"disttrain.metric", job.setup.config().evaluate.metric},
                     {"disttrain.better", views::rules_of(job).is_higher_better ? "higher" : "lower"},
                     {"disttrain.value", exact_text(first.value)}};
  }
  work.evaluations = job.evaluations.book.kept(views::rules_of(job));
  job.evaluations.is_kept = true;
  job.evaluations.listing = turn.next_ticket();
  turn.folder_work(job.setup.id, *job.evaluations.listing, std::move(work));
}

void order_evaluations(JobFacts& job, Turn& turn) {
  for (const auto& [evaluator, checkpoint] : rules::new_orders(job, turn.tasks, turn.now)) {
    job.evaluations.orders[evaluator] = EvaluationFacts::Order{checkpoint, turn.now};
    send_order(job, turn, evaluator);
    if (DISTTRAIN_MUTANT(kEvaluatedWhenOrdered)) job.evaluations.book.skip(checkpoint);
  }
}

void end_late_orders(JobFacts& job, Turn& turn) {
  const Duration patience = rules::patience_with_evaluator(job);
  for (const auto& [member, order] : std::map(job.evaluations.orders)) {
    const Task* task = turn.tasks.find(member.task);
    if (!turn.tasks.is_current(member)) {
      drop_order(job, turn, member.task, "its process is gone");
      continue;
    }
    const Instant worked = task->heartbeat.job == job.setup.id ? task->worked : Instant();
    if (turn.now - std::max(worked, order.since) < patience) continue;
    const KeptCheckpoint late = order.checkpoint;
    job.evaluations.orders.erase(member);
    on_evaluation_order_failed(job, turn, member.task, late,
                               "it has made no progress for " + format_duration(patience));
  }
}

void drop_order(JobFacts& job, Turn& turn, TaskId task, const std::string& why) {
  for (auto order = job.evaluations.orders.begin(); order != job.evaluations.orders.end();) {
    if (order->first.task != task) {
      ++order;
      continue;
    }
    tell(job, turn, "evaluation_interrupted", 2,
         to_string(task) + " evaluated " + order->second.checkpoint.path + ", but " + why +
             ": the checkpoint waits for the next free evaluator",
         task);
    if (job.evaluations.awaits_all) ++job.evaluations.lost_at_end;
    order = job.evaluations.orders.erase(order);
  }
}

void on_evaluation_order_failed(JobFacts& job, Turn& turn, TaskId task, const KeptCheckpoint& checkpoint,
                                const std::string& why) {
  EvaluationFacts::Failures& failures = job.evaluations.failures[checkpoint.path];
  ++failures.count;
  failures.next_try = turn.now + std::max<Duration>(std::chrono::seconds(1), back_off(failures.count));
  const std::string text = to_string(task) + " couldn't evaluate " + checkpoint.path + ": " + why;
  if (failures.count < rules::kMostEvaluationFailures) return tell(job, turn, "evaluation_failed", 2, text, task);
  job.warnings.add(text);
  tell(job, turn, "evaluation_failed", 3, text + "; the job goes on without this evaluation", task);
  job.evaluations.book.skip(checkpoint);
  persist_evaluations(job, turn);
}

void on_evaluated_checkpoint(JobFacts& job, Turn& turn, const Evaluated& evaluated) {
  const KeptCheckpoint* checkpoint = views::find_kept(job, evaluated.path);
  if (checkpoint == nullptr || checkpoint->step != evaluated.step) return;
  if (!views::is_waiting(job, *checkpoint) && !DISTTRAIN_MUTANT(kEvaluationCountedAgain)) return;
  job.evaluations.failures.erase(evaluated.path);
  // A trainer without evaluation data evaluates nothing.
  if (evaluated.examples == 0) {
    job.evaluations.book.skip(*checkpoint);
    return persist_evaluations(job, turn);
  }
  EvaluationStatus status = status_of(evaluated);
  status.final = job.stage.is(Stage::kEvaluate) && evaluated.step == job.progress.step();
  job.evaluations.book.note(status, checkpoint, views::rules_of(job));
  show_evaluation(job, turn, status);
}

// Each evaluation of the same records has the same notice. The description of the job has it too, if the worker knew
// the records then.
void warn_once(JobFacts& job, const std::string& notice) {
  const std::vector<std::string>& told = job.warnings.all();
  if (notice.empty() || std::any_of(told.begin(), told.end(), [&notice](const std::string& warning) {
        return warning.find(notice) != std::string::npos;
      }))
    return;
  job.warnings.add(notice);
}

// With several evaluators the results may come in another order than the checkpoints.
void show_evaluation(JobFacts& job, Turn& turn, const EvaluationStatus& evaluation) {
  const std::optional<EvaluationStatus>& shown = job.progress.evaluation();
  if (!shown || shown->step <= evaluation.step) {
    job.progress.show_evaluation(evaluation);
    job.evaluations.book.show(evaluation);
  }
  persist_evaluations(job, turn);
  keep_best(job, turn);
}

void check_final_evaluations(JobFacts& job, Turn& turn) {
  const Verdict verdict = rules::evaluators_at_end(job, turn.tasks, turn.now);
  if (std::holds_alternative<FinishEvaluation>(verdict)) job.evaluations.awaits_all = false;
  carry_out(job, turn, verdict);
}

}  // namespace

void take_up_evaluations(JobFacts& job, const std::optional<EvaluationsRecord>& record) {
  if (!record) return;
  job.evaluations.book.take_up(*record);
  if (record->newest) job.progress.recall_evaluation(*record->newest);
}

void resume_evaluations(JobFacts& job, Turn& turn, const FolderAnswer& answer) {
  // Without a checkpoint the job begins anew, so the evaluations are of another training.
  const bool is_new = job.evaluations.book.record() == EvaluationsRecord();
  if (!is_new || !answer.evaluations || !answer.newest || !views::is_at_work(job)) return;
  if (!job.evaluations.book.resume(*answer.evaluations, views::rules_of(job)))
    return job.warnings.add(
        "the job compares its evaluations anew: those of the earlier job in its folder were compared by " +
        answer.evaluations->metric + " (evaluate.metric, evaluate.better)");
  persist_evaluations(job, turn);
}

void on_kept(JobFacts& job, Turn& turn, const FolderAnswer& answer) {
  note_listed(job, turn, answer.kept.has_value());
  if (!answer.kept) return;
  job.evaluations.kept = *answer.kept;
  if (!job.evaluations.inherited) {
    job.evaluations.inherited.emplace();
    for (const KeptCheckpoint& kept : job.evaluations.kept) job.evaluations.inherited->insert(kept.path);
  }
  job.evaluations.book.keep_only(job.evaluations.kept);
  std::erase_if(job.evaluations.failures,
                [&job](const auto& failure) { return views::find_kept(job, failure.first) == nullptr; });
  if (!views::is_at_work(job)) return;
  // The worker may have evaluated these parameters before the checkpoint was committed.
  if (job.evaluations.by_worker)
    for (const KeptCheckpoint& kept : job.evaluations.kept)
      if (kept.generation == job.evaluations.by_worker->first && kept.step == job.evaluations.by_worker->second.step &&
          views::is_waiting(job, kept)) {
        job.evaluations.book.rank(kept, job.evaluations.by_worker->second, views::rules_of(job));
        persist_evaluations(job, turn);
      }
  keep_best(job, turn);
}

bool on_listing(JobFacts& job, Turn& turn, const FolderDone& done) {
  if (done.ticket != job.evaluations.listing) return false;
  job.evaluations.listing.reset();
  if (!views::is_at_work(job)) return true;
  const std::string warning = done.answer ? done.answer->warning : done.answer.error().message;
  if (done.answer && !done.answer->exported.empty()) {
    job.evaluations.book.set_exported(done.answer->exported);
    tell(job, turn, "best_exported", 1,
         "the best checkpoint so far is " + done.answer->exported + ": exported as best.safetensors");
  }
  if (!warning.empty()) job.evaluations.is_kept = false;
  // A folder that can't be listed is asked again and again.
  const bool is_news = std::exchange(job.evaluations.folder_problem, warning) != warning;
  if (is_news && !warning.empty())
    tell(job, turn, "best_export_failed", 2,
         "the best checkpoint couldn't be exported, or the folder couldn't keep what the evaluations found; the "
         "job tries again: " +
             warning);
  if (done.answer && warning.empty())
    on_kept(job, turn, *done.answer);
  else if (done.answer && done.answer->kept)
    job.evaluations.kept = *done.answer->kept;
  if (done.answer) note_listed(job, turn, done.answer->kept.has_value());
  const bool is_kept = job.evaluations.is_kept;
  if (done.answer) persist_evaluations(job, turn);
  job.evaluations.is_kept = is_kept;  // the folder has the name of the exported checkpoint already
  check_final_evaluations(job, turn);
  return true;
}

void advance_evaluations(JobFacts& job, Turn& turn) {
  if (!views::is_at_work(job)) return;
  if (!job.evaluations.book.record().early_end.empty()) stop_early(job, turn, job.evaluations.book.record().early_end);
  if (!job.setup.uses_evaluators()) return;
  if (!job.stage.is(Stage::kEvaluate)) job.evaluations.awaits_all = false;
  end_late_orders(job, turn);
  if (!job.evaluations.is_listed && turn.now >= job.evaluations.list_again) list_folder(job, turn, "");
  order_evaluations(job, turn);
  check_final_evaluations(job, turn);
}

// Sends the evaluator its order, for the first time or again.
void send_order(JobFacts& job, Turn& turn, const Member& member) {
  const auto order = job.evaluations.orders.find(member);
  if (order == job.evaluations.orders.end() || !views::is_at_work(job)) return;
  const KeptCheckpoint& checkpoint = order->second.checkpoint;
  turn.send(member.task,
            EvaluateCheckpoint{job.setup.id, checkpoint.generation, job.setup.shared_config(), checkpoint.path});
}

void on_evaluator_finding(JobFacts& job, Turn& turn, const Finding& finding) {
  const bool is_back = finding.what == Finding::What::kJoined || finding.what == Finding::What::kReturned;
  if (!is_back) drop_order(job, turn, finding.member.task, finding.why);
  advance_evaluations(job, turn);
}

void on_evaluator_message(JobFacts& job, Turn& turn, const Member& from, const FromTask& message) {
  if (!views::is_at_work(job)) return;
  if (const auto* evaluated = std::get_if<Evaluated>(&message)) {
    job.evaluations.orders.erase(from);
    warn_once(job, evaluated->notice);
    on_evaluated_checkpoint(job, turn, *evaluated);
  } else if (const auto* failed = std::get_if<EvaluationFailed>(&message)) {
    const auto order = job.evaluations.orders.find(from);
    if (order == job.evaluations.orders.end() || order->second.checkpoint.path != failed->path) return;
    const KeptCheckpoint checkpoint = order->second.checkpoint;
    job.evaluations.orders.erase(order);
    // The checkpoint may have been removed since the folder was listed last.
    if (failed->code == ErrorCode::kNoInput) list_folder(job, turn, "");
    on_evaluation_order_failed(job, turn, from.task, checkpoint, failed->reason);
  } else {
    return;
  }
  advance_evaluations(job, turn);
}

void on_evaluated_by_worker(JobFacts& job, Turn& turn, const Evaluated& evaluated) {
  if (evaluated.examples == 0 || !views::is_at_work(job)) return;
  warn_once(job, evaluated.notice);
  const EvaluationStatus status = status_of(evaluated);
  // In sync, and after the last step, all shards have the same version. So the parameters are those of a checkpoint of
  // this step.
  const bool is_of_one_step = job.setup.is_sync() || evaluated.final;
  const KeptCheckpoint* checkpoint = nullptr;
  for (const KeptCheckpoint& kept : job.evaluations.kept)
    if (is_of_one_step && kept.generation == evaluated.generation && kept.step == evaluated.step) checkpoint = &kept;
  job.evaluations.by_worker.reset();
  if (is_of_one_step && checkpoint == nullptr) job.evaluations.by_worker.emplace(evaluated.generation, status);
  job.evaluations.book.note(status, checkpoint, views::rules_of(job));
  show_evaluation(job, turn, status);
}

bool await_evaluations(JobFacts& job, Turn& turn) {
  if (!job.setup.uses_evaluators() || job.evaluations.is_given_up || views::are_all_evaluated(job)) return false;
  job.evaluations.awaits_all = true;
  job.evaluations.awaits_since = turn.now;
  job.evaluations.lost_at_end = 0;
  set_state(job, turn, JobState::kEvaluating, "the job waits until its checkpoints are evaluated");
  job.stage.await(turn.now, {}, turn.now + job.setup.timeouts.setup + job.setup.config().job.stall_timeout);
  order_evaluations(job, turn);
  return true;
}

void give_up_evaluators(JobFacts& job, Turn& turn, const std::string& why) {
  const std::string text = (job.evaluations.is_listed ? std::to_string(views::waiting(job)) : "some") +
                           " checkpoints weren't evaluated: " + why +
                           (job.evaluations.is_listed ? "" : ", and the checkpoint folder couldn't be listed") +
                           "; a worker evaluates the final parameters";
  job.warnings.add(text);
  tell(job, turn, "evaluation_failed", 3, text);
  job.evaluations.awaits_all = false;
  job.evaluations.is_given_up = true;
  job.evaluations.orders.clear();
  finish_evaluation(job, turn);
}

void keep_last(JobFacts& job, Turn& turn) {
  if (job.evaluations.is_kept || !job.generation.described()) return;
  job.evaluations.listing.reset();  // the folder may still work on the one before
  keep_best(job, turn);
}

void close_evaluators(JobFacts& job, Turn& turn) {
  for (const auto& [id, task] : turn.tasks.all()) {
    const bool holds_it = job.evaluations.has_order(task.member) || task.heartbeat.job == job.setup.id;
    if (id.role == Role::kEvaluator && holds_it)
      turn.send(id, CloseJob{job.setup.id, job.generation.number(), job.condition.end_reason()});
  }
  job.evaluations.orders.clear();
}

}  // namespace disttrain::chiefd::flow
