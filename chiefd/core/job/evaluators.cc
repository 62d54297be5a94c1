#include "chiefd/core/job/evaluators.h"

#include <algorithm>
#include <utility>

#include "chiefd/core/job/parts.h"
#include "chiefd/core/restarts.h"
#include "common/format_duration.h"
#include "common/mutant.h"

namespace disttrain::chiefd {
namespace {

// How often the evaluation of a checkpoint may fail, and how many evaluators with an order may be lost while the job
// waits for them at its end.
constexpr std::uint32_t kMostFailures = 3;
// If the checkpoints in the folder couldn't be listed, the chief tries again after this time.
constexpr Duration kListingPause = std::chrono::seconds(1);
// If no evaluator is connected at the job's end, the job waits for one for this many heartbeat timeouts.
constexpr int kPatienceWithNone = 30;

EvaluationStatus status_of(const Evaluated& evaluated) {
  return {evaluated.step,     evaluated.loss,  evaluated.metrics,
          evaluated.examples, evaluated.final, evaluated.parameters_hash};
}

}  // namespace

Evaluators::Evaluators(JobParts& parts)
    : setup_(parts.setup),
      stage_(parts.stage),
      events_(parts.events),
      condition_(parts.condition),
      progress_(parts.progress),
      generation_(parts.generation),
      folder_(parts.folder),
      ending_(parts.ending) {}

// ---- what is known

// True if the job may give orders and take results.
bool Evaluators::is_at_work() const {
  const bool has_ended = stage_.is(Stage::kClose) || stage_.is(Stage::kReleased) || stage_.is(Stage::kQueued);
  return !has_ended && !condition_.has_ended() && generation_.described().has_value();
}

EvaluationRules Evaluators::rules() const {
  // Gathering has checked the rules of the model. A journal of another version may have another model.
  EvaluationRules rules = evaluation_rules(setup_.config().evaluate, generation_.described()->model.metrics)
                              .value_or(EvaluationRules{"loss", false, 0, 0});
  // A job that has done all its steps can't finish early any more.
  if (stage_.is(Stage::kSettle) || stage_.is(Stage::kFinalCut) || stage_.is(Stage::kEvaluate)) rules.stop_after = 0;
  return rules;
}

const KeptCheckpoint* Evaluators::find(const std::string& path) const {
  const auto found =
      std::find_if(kept_.begin(), kept_.end(), [&path](const KeptCheckpoint& kept) { return kept.path == path; });
  return found == kept_.end() ? nullptr : &*found;
}

bool Evaluators::is_waiting(const KeptCheckpoint& checkpoint) const {
  return !book_.has_evaluated(checkpoint);
}

std::size_t Evaluators::waiting() const {
  if (!setup_.uses_evaluators()) return 0;
  return static_cast<std::size_t>(
      std::count_if(kept_.begin(), kept_.end(), [this](const KeptCheckpoint& kept) { return is_waiting(kept); }));
}

// Checkpoints of an earlier job in the same folder may be among the best. So those that were there are kept until they
// are evaluated.
std::vector<std::string> Evaluators::pinned() const {
  std::vector<std::string> paths;
  if (setup_.config().evaluate.keep_best == 0 || DISTTRAIN_MUTANT(kPinForgotten)) return paths;
  for (const BestCheckpoint& best : book_.record().best) paths.push_back(best.checkpoint.path);
  if (!setup_.uses_evaluators() || !inherited_) return paths;
  for (const KeptCheckpoint& kept : kept_)
    if (inherited_->count(kept.path) != 0 && is_waiting(kept)) paths.push_back(kept.path);
  return paths;
}

bool Evaluators::has_order(const Member& member) const {
  return orders_.count(member) != 0;
}

void Evaluators::take_up(const std::optional<EvaluationsRecord>& record) {
  if (!record) return;
  book_.take_up(*record);
  if (record->newest) progress_.recall_evaluation(*record->newest);
}

void Evaluators::persist(Turn& turn) {
  is_kept_ = false;
  EvaluationsRecord record = book_.record();
  record.job = setup_.id;
  turn.persist(std::move(record));
}

// ---- the folder

void Evaluators::resume(Turn& turn, const FolderAnswer& answer) {
  // Without a checkpoint the job begins anew, so the evaluations are of another training.
  const bool is_new = book_.record() == EvaluationsRecord();
  if (!is_new || !answer.evaluations || !answer.newest || !is_at_work()) return;
  if (!book_.resume(*answer.evaluations, rules()))
    return events_.warn(
        "the job compares its evaluations anew: those of the earlier job in its folder were compared by " +
        answer.evaluations->metric + " (evaluate.metric, evaluate.better)");
  persist(turn);
}

void Evaluators::on_kept(Turn& turn, const FolderAnswer& answer) {
  note_listed(turn, answer.kept.has_value());
  if (!answer.kept) return;
  kept_ = *answer.kept;
  if (!inherited_) {
    inherited_.emplace();
    for (const KeptCheckpoint& kept : kept_) inherited_->insert(kept.path);
  }
  book_.keep_only(kept_);
  std::erase_if(failures_, [this](const auto& failure) { return find(failure.first) == nullptr; });
  if (!is_at_work()) return;
  // The worker may have evaluated these parameters before the checkpoint was committed.
  if (by_worker_)
    for (const KeptCheckpoint& kept : kept_)
      if (kept.generation == by_worker_->first && kept.step == by_worker_->second.step && is_waiting(kept)) {
        book_.rank(kept, by_worker_->second, rules());
        persist(turn);
      }
  keep_best(turn);
}

void Evaluators::note_listed(Turn& turn, bool is_listed) {
  is_listed_ = is_listed;
  if (!is_listed) list_again_ = turn.now + kListingPause;
}

// Exports the best checkpoint, if best.safetensors is of another one. Lets the folder keep the book if it has changed.
void Evaluators::keep_best(Turn& turn) {
  const std::vector<BestCheckpoint>& best = book_.record().best;
  const bool is_exported = best.empty() || best.front().checkpoint.path == book_.record().exported;
  if (is_exported && is_kept_) return;
  list_folder(turn, is_exported ? "" : best.front().checkpoint.path);
}

void Evaluators::list_folder(Turn& turn, const std::string& best) {
  if (listing_ || !folder_.is_open()) return;
  KeepBest work{best, setup_.config().evaluate.average > 0.0, {}};
  if (!best.empty()) {
    const BestCheckpoint& first = book_.record().best.front();
    work.metadata = {{"disttrain.job", setup_.name()},
                     {"disttrain.checkpoint", first.checkpoint.path},
                     {"disttrain.step", std::to_string(first.checkpoint.step.value)},
                     {"disttrain.metric", setup_.config().evaluate.metric},
                     {"disttrain.value", std::to_string(first.value)}};
  }
  work.evaluations = book_.kept(rules());
  is_kept_ = true;
  listing_ = turn.next_ticket();
  turn.folder_work(setup_.id, *listing_, std::move(work));
}

bool Evaluators::on_folder(Turn& turn, const FolderDone& done) {
  if (done.ticket != listing_) return false;
  listing_.reset();
  if (!is_at_work()) return true;
  const std::string warning = done.answer ? done.answer->warning : done.answer.error().message;
  if (done.answer && !done.answer->exported.empty()) {
    book_.set_exported(done.answer->exported);
    events_.tell(turn, "best_exported", 1,
                 "the best checkpoint so far is " + done.answer->exported + ": exported as best.safetensors");
  }
  if (!warning.empty()) is_kept_ = false;
  // A folder that can't be listed is asked again and again.
  const bool is_news = std::exchange(folder_problem_, warning) != warning;
  if (is_news && !warning.empty())
    events_.tell(
        turn, "best_export_failed", 2,
        "the best checkpoint couldn't be exported, or the folder couldn't keep what the evaluations found; the "
        "job tries again: " +
            warning);
  if (done.answer && warning.empty())
    on_kept(turn, *done.answer);
  else if (done.answer && done.answer->kept)
    kept_ = *done.answer->kept;
  if (done.answer) note_listed(turn, done.answer->kept.has_value());
  const bool is_kept = is_kept_;
  if (done.answer) persist(turn);
  is_kept_ = is_kept;  // the folder has the name of the exported checkpoint already
  check_final(turn);
  return true;
}

// ---- orders

void Evaluators::advance(Turn& turn) {
  if (!is_at_work()) return;
  if (!book_.record().early_end.empty()) ending_.stop_early(turn, book_.record().early_end);
  if (!setup_.uses_evaluators()) return;
  if (!stage_.is(Stage::kEvaluate)) awaits_all_ = false;
  end_late_orders(turn);
  if (!is_listed_ && turn.now >= list_again_) list_folder(turn, "");
  order(turn);
  check_final(turn);
}

void Evaluators::order(Turn& turn) {
  if (!is_at_work() || !setup_.uses_evaluators()) return;
  std::vector<Member> free;
  for (const auto& [id, task] : turn.tasks.all())
    if (id.role == Role::kEvaluator && task.takes_work() && !has_order(task.member)) free.push_back(task.member);
  for (const KeptCheckpoint& kept : kept_) {
    if (free.empty()) return;
    const bool is_ordered = std::any_of(orders_.begin(), orders_.end(),
                                        [&kept](const auto& order) { return order.second.checkpoint == kept; });
    const auto failed = failures_.find(kept.path);
    const bool may_try = failed == failures_.end() || turn.now >= failed->second.next_try;
    if (!is_waiting(kept) || is_ordered || !may_try) continue;
    const Member evaluator = free.front();
    free.erase(free.begin());
    orders_[evaluator] = Order{kept, turn.now};
    on_reconnect(turn, evaluator);
    if (DISTTRAIN_MUTANT(kEvaluatedWhenOrdered)) book_.skip(kept);
  }
}

// Sends the evaluator its order, for the first time or again.
void Evaluators::on_reconnect(Turn& turn, const Member& member) {
  const auto order = orders_.find(member);
  if (order == orders_.end() || !is_at_work()) return;
  const KeptCheckpoint& checkpoint = order->second.checkpoint;
  turn.send(member.task, EvaluateCheckpoint{setup_.id, checkpoint.generation, setup_.shared_config(), checkpoint.path});
}

void Evaluators::end_late_orders(Turn& turn) {
  const Duration patience = std::max(setup_.timeouts.setup, kEvaluationPatience * setup_.config().job.stall_timeout);
  for (const auto& [member, order] : std::map(orders_)) {
    const Task* task = turn.tasks.find(member.task);
    if (!turn.tasks.is_current(member)) {
      drop_order(turn, member.task, "its process is gone");
      continue;
    }
    const Instant worked = task->heartbeat.job == setup_.id ? task->worked : Instant();
    if (turn.now - std::max(worked, order.since) < patience) continue;
    const KeptCheckpoint late = order.checkpoint;
    orders_.erase(member);
    on_failed(turn, member.task, late, "it has made no progress for " + format_duration(patience));
  }
}

void Evaluators::drop_order(Turn& turn, TaskId task, const std::string& why) {
  for (auto order = orders_.begin(); order != orders_.end();) {
    if (order->first.task != task) {
      ++order;
      continue;
    }
    events_.tell(turn, "evaluation_interrupted", 2,
                 to_string(task) + " evaluated " + order->second.checkpoint.path + ", but " + why +
                     ": the checkpoint waits for the next free evaluator",
                 task);
    if (awaits_all_) ++lost_at_end_;
    order = orders_.erase(order);
  }
}

void Evaluators::on_finding(Turn& turn, const Finding& finding) {
  const bool is_back = finding.what == Finding::What::kJoined || finding.what == Finding::What::kReturned;
  if (!is_back) drop_order(turn, finding.member.task, finding.why);
  advance(turn);
}

void Evaluators::on_message(Turn& turn, const Member& from, const FromTask& message) {
  if (!is_at_work()) return;
  if (const auto* evaluated = std::get_if<Evaluated>(&message)) {
    orders_.erase(from);
    warn_once(evaluated->notice);
    on_evaluated(turn, *evaluated);
  } else if (const auto* failed = std::get_if<EvaluationFailed>(&message)) {
    const auto order = orders_.find(from);
    if (order == orders_.end() || order->second.checkpoint.path != failed->path) return;
    const KeptCheckpoint checkpoint = order->second.checkpoint;
    orders_.erase(order);
    // The checkpoint may have been removed since the folder was listed last.
    if (failed->code == ErrorCode::kNoInput) list_folder(turn, "");
    on_failed(turn, from.task, checkpoint, failed->reason);
  } else {
    return;
  }
  advance(turn);
}

void Evaluators::on_failed(Turn& turn, TaskId task, const KeptCheckpoint& checkpoint, const std::string& why) {
  Failures& failures = failures_[checkpoint.path];
  ++failures.count;
  failures.next_try = turn.now + std::max<Duration>(std::chrono::seconds(1), back_off(failures.count));
  const std::string text = to_string(task) + " couldn't evaluate " + checkpoint.path + ": " + why;
  if (failures.count < kMostFailures) return events_.tell(turn, "evaluation_failed", 2, text, task);
  events_.warn(text);
  events_.tell(turn, "evaluation_failed", 3, text + "; the job goes on without this evaluation", task);
  book_.skip(checkpoint);
  persist(turn);
}

// ---- results

void Evaluators::on_evaluated(Turn& turn, const Evaluated& evaluated) {
  const KeptCheckpoint* checkpoint = find(evaluated.path);
  if (checkpoint == nullptr || checkpoint->step != evaluated.step) return;
  if (!is_waiting(*checkpoint) && !DISTTRAIN_MUTANT(kEvaluationCountedAgain)) return;
  failures_.erase(evaluated.path);
  // A trainer without evaluation data evaluates nothing.
  if (evaluated.examples == 0) {
    book_.skip(*checkpoint);
    return persist(turn);
  }
  EvaluationStatus status = status_of(evaluated);
  status.final = stage_.is(Stage::kEvaluate) && evaluated.step == progress_.step();
  book_.note(status, checkpoint, rules());
  show(turn, status);
}

void Evaluators::on_evaluated_by_worker(Turn& turn, const Evaluated& evaluated) {
  if (evaluated.examples == 0 || !is_at_work()) return;
  warn_once(evaluated.notice);
  const EvaluationStatus status = status_of(evaluated);
  // In sync, and after the last step, all shards have the same version. So the parameters are those of a checkpoint of
  // this step.
  const bool is_of_one_step = setup_.is_sync() || evaluated.final;
  const KeptCheckpoint* checkpoint = nullptr;
  for (const KeptCheckpoint& kept : kept_)
    if (is_of_one_step && kept.generation == evaluated.generation && kept.step == evaluated.step) checkpoint = &kept;
  by_worker_.reset();
  if (is_of_one_step && checkpoint == nullptr) by_worker_.emplace(evaluated.generation, status);
  book_.note(status, checkpoint, rules());
  show(turn, status);
}

// Each evaluation of the same records has the same notice. The description of the job has it too, if the worker knew
// the records then.
void Evaluators::warn_once(const std::string& notice) {
  const std::vector<std::string>& told = events_.warnings();
  if (notice.empty() || std::any_of(told.begin(), told.end(), [&notice](const std::string& warning) {
        return warning.find(notice) != std::string::npos;
      }))
    return;
  events_.warn(notice);
}

// With several evaluators the results may come in another order than the checkpoints.
void Evaluators::show(Turn& turn, const EvaluationStatus& evaluation) {
  const std::optional<EvaluationStatus>& shown = progress_.evaluation();
  if (!shown || shown->step <= evaluation.step) {
    progress_.show_evaluation(evaluation);
    book_.show(evaluation);
  }
  persist(turn);
  keep_best(turn);
}

// ---- the job's end

// After a restart of the chief, the checkpoints aren't known before the folder is open. If the folder couldn't be
// listed after a commit, the new checkpoint isn't known.
bool Evaluators::are_all_evaluated() const {
  return folder_.is_open() && is_listed_ && waiting() == 0;
}

bool Evaluators::await_all(Turn& turn) {
  if (!setup_.uses_evaluators() || are_all_evaluated()) return false;
  awaits_all_ = true;
  awaits_since_ = turn.now;
  lost_at_end_ = 0;
  condition_.set(turn, JobState::kEvaluating, "the job waits until its checkpoints are evaluated");
  stage_.await(turn.now, {}, turn.now + setup_.timeouts.setup + setup_.config().job.stall_timeout);
  order(turn);
  return true;
}

bool Evaluators::is_awaited() const {
  return awaits_all_ && stage_.is(Stage::kEvaluate);
}

std::vector<Member> Evaluators::awaited(const Tasks& tasks) const {
  std::vector<Member> members;
  for (const auto& [id, task] : tasks.all())
    if (is_awaited() && id.role == Role::kEvaluator) members.push_back(task.member);
  return members;
}

Instant Evaluators::newest_work(const Tasks& tasks) const {
  Instant newest;
  for (const Member& member : awaited(tasks)) {
    const Task* task = tasks.find(member.task);
    if (task->heartbeat.job == setup_.id) newest = std::max(newest, task->worked);
  }
  return newest;
}

void Evaluators::check_final(Turn& turn) {
  if (!is_awaited() || listing_) return;
  if (are_all_evaluated()) {
    awaits_all_ = false;
    return ending_.finish_evaluation(turn);
  }
  const std::vector<Member> all = awaited(turn.tasks);
  const bool is_any_there = std::any_of(
      all.begin(), all.end(), [&turn](const Member& member) { return turn.tasks.find(member.task)->is_there(); });
  if (!is_any_there && turn.now - awaits_since_ >= kPatienceWithNone * setup_.timeouts.silent)
    return give_up_waiting(turn, "no evaluator is connected");
  if (lost_at_end_ >= kMostFailures)
    give_up_waiting(turn, "evaluators were lost " + std::to_string(lost_at_end_) + " times");
}

void Evaluators::give_up_waiting(Turn& turn, const std::string& why) {
  const std::string text = (is_listed_ ? std::to_string(waiting()) : "some") +
                           " checkpoints weren't evaluated: " + why +
                           (is_listed_ ? "" : ", and the checkpoint folder couldn't be listed") +
                           "; a worker evaluates the final parameters";
  events_.warn(text);
  events_.tell(turn, "evaluation_failed", 3, text);
  awaits_all_ = false;
  orders_.clear();
  ending_.finish_evaluation(turn);
}

bool Evaluators::has_evaluated_last() const {
  const std::optional<EvaluationStatus>& newest = progress_.evaluation();
  if (!setup_.uses_evaluators() || !newest || newest->step != progress_.step()) return false;
  return newest->final || std::any_of(kept_.begin(), kept_.end(), [this](const KeptCheckpoint& kept) {
           return kept.step == progress_.step() && book_.has_evaluated(kept);
         });
}

void Evaluators::keep_last(Turn& turn) {
  if (is_kept_ || !generation_.described()) return;
  listing_.reset();  // the folder may still work on the one before
  keep_best(turn);
}

void Evaluators::close(Turn& turn) {
  for (const auto& [id, task] : turn.tasks.all()) {
    const bool holds_it = has_order(task.member) || task.heartbeat.job == setup_.id;
    if (id.role == Role::kEvaluator && holds_it)
      turn.send(id, CloseJob{setup_.id, generation_.number(), condition_.end_reason()});
  }
  orders_.clear();
}

}  // namespace disttrain::chiefd
