// Starts a job, and each of its generations.
//
//   gather      The job waits for its tasks to connect.
//   describe    One worker describes the model and the data.
//   folder      The chief opens the checkpoint folder.
//   init        It finds the first parameters, and places the model on the ps tasks.
//   generation  The generation is journaled. A rollback goes on from here, too.
//   create      The ps tasks create their shards.
//   open        The workers open the job.
//   roster      The pacer takes the roster. Then the workers train.
#include "chiefd/core/job/flow/flow.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "chiefd/core/job/report.h"
#include "chiefd/core/job/rules/checkpoints.h"
#include "chiefd/core/job/rules/start.h"
#include "chiefd/core/job/step_targets.h"
#include "chiefd/core/job/views/links.h"
#include "chiefd/core/job/views/orders.h"
#include "chiefd/core/job/views/recovery.h"
#include "chiefd/core/job/views/start.h"
#include "common/format_duration.h"
#include "common/mutant.h"

namespace disttrain::chiefd::flow {
namespace {

void ask_to_describe(JobFacts& job, Turn& turn, const std::vector<Member>& workers) {
  job.stage.enter(Stage::kDescribe);
  std::vector<Member> awaited(job.stage.awaited().begin(), job.stage.awaited().end());
  awaited.insert(awaited.end(), workers.begin(), workers.end());
  job.condition.explain(
      to_string(awaited.front().task) +
      (awaited.size() == 1 ? " reads the data and builds the model" : " and others read the data and build the model") +
      (job.start.could_not_describe.empty()
           ? ""
           : ", because " + to_string(job.start.could_not_describe.front().first.task) + " couldn't"));
  job.stage.await(turn.now, awaited, turn.now + job.setup.timeouts.setup);
  turn.send_to(workers, DescribeJob{job.setup.id, job.setup.shared_config()});
}

void ask_folder(JobFacts& job, Turn& turn) {
  job.stage.enter(Stage::kFolder);
  job.condition.explain("the chief looks for checkpoints in " + job.setup.config().checkpoint.directory);
  job.stage.set_deadline(turn.now + job.setup.timeouts.setup);
  ask_newest(job, turn);
}

void place_model(JobFacts& job, Turn& turn) {
  // If a ps was lost after stage kGather, the job gathers its tasks again.
  if (views::lacks_at_start(job, turn.tasks, Role::kPs)) return gather_again(job, turn);
  if (Status status = job.generation.check_restore(); !status) return fail_job(job, turn, status.error(), std::nullopt);
  const std::size_t workers = job.workers.roster().members.size();
  const auto is_avoided = [&](TaskId ps) { return views::is_avoided(job, turn.tasks, ps); };
  Result<GenerationPlan::Placed> placed = job.generation.plan(turn.tasks, is_avoided, workers);
  if (!placed) return fail_job(job, turn, placed.error(), std::nullopt);
  const Result<std::uint32_t> places = job.generation.plan_places(turn.tasks, *placed, workers, workers);
  if (!places) return fail_job(job, turn, places.error(), std::nullopt);
  job.generation.place(std::move(*placed));
  job.generation.make_places(*places);
  if (job.setup.waits_for_lost() && job.workers.ranks().empty()) job.workers.fix_ranks(job.workers.roster().members);
  begin_generation(job, turn);
}

void tell_start(JobFacts& job, Turn& turn) {
  if (const auto& restore = job.generation.restore())
    tell(job, turn, "restored", 1,
         "the job begins at step " + std::to_string(restore->step.value) + " of the checkpoint " + restore->path);
  else if (!job.generation.init_path().empty())
    tell(job, turn, "warm_start", 1, "the job begins with the parameters of " + job.generation.init_path());
}

void end_rollback(JobFacts& job, Turn& turn) {
  const Rollback rollback = *job.rollbacks.end();
  const std::uint64_t from = job.generation.first_step().value;
  const std::uint64_t lost = rollback.step.value > from ? rollback.step.value - from : 0;
  job.rollbacks.lose_steps(lost);
  const std::string known = std::to_string(lost) + " steps are lost; ";
  const std::string unknown = std::string("the later steps are lost (") +
                              (lost > 0 ? "at least " + std::to_string(lost) : "how many isn't known") +
                              ", because the chief was away); ";
  tell(job, turn, kRolledBack, 2,
       "generation " + std::to_string(job.generation.number().value) + " goes on at step " + std::to_string(from) +
           " (" + (job.generation.restore() ? job.generation.restore()->path : "initial values") + "), " +
           (rollback.is_step_known ? known : unknown) + "the rollback took " +
           format_duration(turn.now - rollback.began) + "; cause: " + to_string(rollback.cause),
       rollback.cause.task, rollback.cause.reason);
}

}  // namespace

void begin_job(JobFacts& job, Turn& turn) {
  job.condition.begin();
  begin_gathering(job, turn);
  set_state(job, turn, JobState::kStarting, "gathers its tasks");
  gather(job, turn);
}

void begin_gathering(JobFacts& job, Turn& turn) {
  job.stage.enter(Stage::kGather);
  job.stage.await_nobody();
  job.start.gathers_since = turn.now;
  job.stage.set_deadline(turn.now + job.setup.timeouts.setup);  // review_absences() sets it anew while tasks are absent
}

void await(JobFacts& job, Turn& turn, const Await& verdict) {
  job.condition.explain(verdict.reason);
  if (!verdict.is_enough) return job.start.complete_enough_at.reset();
  if (!job.start.complete_enough_at) job.start.complete_enough_at = turn.now;
}

void ask_others(JobFacts& job, Turn& turn, const AskOthers& verdict) {
  job.workers.choose_members(verdict.roster);
  job.stage.answered(job.start.could_not_describe.back().first);  // another worker is still asked, or is asked now
  if (!verdict.unasked.empty()) ask_to_describe(job, turn, verdict.unasked);
}

void gather_after_loss(JobFacts& job, Turn& turn, const GatherAgain& verdict) {
  const TaskId task = *verdict.cause.task;
  if (verdict.counts && task.role == Role::kWorker) job.candidates.note_lost_at_start(task);
  const std::size_t losses = verdict.counts ? count_loss(job, turn, kLostAtStart, verdict.cause) : 0;
  carry_out(job, turn, rules::lost_at_describe(job, verdict.cause, losses));
}

void gather_again(JobFacts& job, Turn& turn) {
  begin_gathering(job, turn);
  gather(job, turn);
}

void gather(JobFacts& job, Turn& turn) {
  carry_out(job, turn, rules::gathered(job, turn.tasks, turn.now));
}

void describe(JobFacts& job, Turn& turn, const std::vector<Member>& workers) {
  job.start.could_not_describe.clear();
  job.workers.choose(workers);
  ask_to_describe(job, turn, {workers.front()});
}

void on_describe_failed(JobFacts& job, Turn& turn, const Member& from, const Error& error) {
  job.start.could_not_describe.push_back({from, error});
  carry_out(job, turn, rules::cannot_describe(job, turn.tasks));
}

void on_finding_at_describe(JobFacts& job, Turn& turn, const Finding& finding) {
  carry_out(job, turn, rules::found_at_describe(job, finding));
}

void on_described(JobFacts& job, Turn& turn, const Member& from, const JobDescribed& described) {
  if (!job.stage.awaits(from)) return;
  job.stage.await_nobody();
  for (const auto& [worker, error] : std::exchange(job.start.could_not_describe, {}))
    leave_out(job, turn, worker, error.message);
  const Verdict verdict = rules::described(job, described);
  if (!std::holds_alternative<Stay>(verdict)) return carry_out(job, turn, verdict);
  if (job.setup.evaluators > 0 && job.setup.evaluates() && !job.setup.takes_checkpoints())
    job.warnings.add(
        "an evaluator needs checkpoints, but the job takes none, so a worker evaluates: set "
        "checkpoint.directory in job.toml");
  const EvaluateSection& evaluate = job.setup.config().evaluate;
  if (evaluate.keep_best > 0 && job.setup.evaluators == 0 && job.setup.takes_checkpoints() && !job.setup.is_sync())
    job.warnings.add(
        "evaluate.keep_best knows only checkpoints whose own parameters were evaluated. In async and ssp, without an "
        "evaluator, that is the last one: add an evaluator ([[evaluator]], or `up --evaluators 1`), or train in sync");
  if (!described.notice.empty()) job.warnings.add(described.notice);
  job.generation.describe(described);
  job.candidates.note_prepared(from);
  turn.persist(DescribedRecord{described});
  job.generation.draw_numbers(turn.term);
  job.workers.use_roster();
  if (job.setup.takes_checkpoints()) return ask_folder(job, turn);
  find_init(job, turn);
}

void begin_with_newest(JobFacts& job, Turn& turn, const FolderAnswer& answer) {
  const Verdict verdict = rules::folder_read(job, answer);
  if (!std::holds_alternative<Stay>(verdict)) {
    job.folder.newest.reset();
    return carry_out(job, turn, verdict);
  }
  job.generation.restore_from(answer.newest);
  if (const auto& restore = job.generation.restore())
    job.folder.newest = CheckpointRecord{job.setup.id, restore->generation, restore->step, restore->path};
  if (job.stage.is(Stage::kFolder)) return find_init(job, turn);
  if (Status status = job.generation.check_restore(); !status) return fail_job(job, turn, status.error(), std::nullopt);
  begin_generation(job, turn);
}

// The path is resolved only once, so that all shards and all generations begin with the same parameters.
void find_init(JobFacts& job, Turn& turn) {
  if (job.generation.restore() || !job.setup.has_init() || !job.generation.init_path().empty())
    return place_model(job, turn);
  job.stage.enter(Stage::kInit);
  job.condition.explain("the chief looks for the first parameters in " + job.setup.config().checkpoint.init_from);
  job.stage.set_deadline(turn.now + job.setup.timeouts.setup);
  job.stage.set_ticket(turn.next_ticket());
  const CheckpointSection& checkpoint = job.setup.config().checkpoint;
  turn.folder_work(job.setup.id, job.stage.ticket(),
                   FindInit{checkpoint.init_from, checkpoint.init_map, job.generation.described()->model});
}

void on_init(JobFacts& job, Turn& turn, const Result<FolderAnswer>& answer) {
  job.stage.clear_deadline();
  if (!answer) {
    Error error = answer.error();
    error.message = "checkpoint.init_from: " + error.message;
    return fail_job(job, turn, std::move(error), std::nullopt);
  }
  if (!answer->ignored.empty()) job.warnings.add(answer->ignored);
  job.generation.init_from(answer->path);
  place_model(job, turn);
}

void begin_generation(JobFacts& job, Turn& turn) {
  job.generation.begin(job.folder.newest_generation);
  job.workers.begin_generation();
  job.loans.is_allowed = false;
  const std::optional<RestorePoint>& restore = job.generation.restore();
  job.progress.begin(restore ? restore->pacer : PacerReport());
  job.stage.enter(Stage::kGeneration);
  job.condition.explain("the job waits for the chief's own disk");
  job.stage.set_deadline(turn.now + job.setup.timeouts.setup);
  job.stage.set_ticket(turn.persist(GenerationRecord{
      job.setup.id, job.generation.number(), job.generation.mark(), job.generation.owners(), job.workers.roster(),
      restore ? restore->path : "", job.generation.first_step(), job.rollbacks.count(), job.progress.before(),
      job.generation.init_path(), job.generation.places(), job.generation.placed().bucket_size == BucketSize::kSmall}));
  if (DISTTRAIN_MUTANT(kGenerationNotDurable)) create_shards(job, turn);
}

void create_shards(JobFacts& job, Turn& turn) {
  job.stage.enter(Stage::kCreate);
  job.start.create_began = turn.now;
  job.condition.explain(
      "the ps tasks create " + std::to_string(job.generation.layout().shards) +
      (job.generation.layout().shards == 1 ? " shard" : " shards") +
      (job.generation.restore() || !job.generation.init_path().empty()
           ? " from " + (job.generation.restore() ? job.generation.restore()->path : job.generation.init_path())
           : ""));
  job.stage.await(turn.now, job.generation.holders(), turn.now + job.setup.timeouts.setup);
  for (const Member& ps : job.generation.holders()) ask_to_create(job, turn, ps);
}

void ask_to_create(JobFacts& job, Turn& turn, const Member& ps) {
  turn.send(ps.task,
            CreateShards{.job = job.setup.id,
                         .generation = job.generation.number(),
                         .token = job.generation.token(),
                         .config = resolved_config(job.setup, job.generation),
                         .layout = job.generation.layout(),
                         .owners = job.generation.owners(),
                         .roster = job.workers.roster(),
                         .warmup_steps = job.setup.submission.warmup_steps,
                         .train_records = job.generation.described()->train_records,
                         .places = job.generation.places(),
                         .checkpoint_folder = job.setup.takes_checkpoints()
                                                  ? job.setup.config().checkpoint.directory + "/" + job.setup.name()
                                                  : "",
                         .checkpoint_mark = job.folder.mark,
                         .restore_path = job.generation.restore() ? job.generation.restore()->path : "",
                         .init_path = job.generation.restore() ? "" : job.generation.init_path()});
}

void open_job(JobFacts& job, Turn& turn) {
  if (job.generation.restore()) job.stats.note_restored(turn.now - job.start.create_began);
  job.stage.enter(Stage::kOpen);
  job.condition.explain("the workers open the job");
  job.workers.let_evaluate(job.workers.roster().members.front());
  job.stage.await(turn.now, job.workers.roster().members, turn.now + job.setup.timeouts.setup);
  for (const Member& worker : job.workers.roster().members) ask_to_open(job, turn, worker);
}

void ask_to_open(JobFacts& job, Turn& turn, const Member& worker) {
  turn.send(worker.task, views::order_to_open(job, worker));
}

void advance_open(JobFacts& job, Turn& turn) {
  carry_out(job, turn, rules::opened(job));
}

void set_roster(JobFacts& job, Turn& turn) {
  job.stage.enter(Stage::kRoster);
  job.stage.await(turn.now, {job.generation.pacer()}, turn.now + job.setup.timeouts.setup);
  turn.send(job.generation.pacer().task, SetRoster{job.setup.id, job.generation.number(), job.workers.roster()});
}

void start_training(JobFacts& job, Turn& turn) {
  job.stage.enter(Stage::kTrain);
  job.links.forget_peers();  // all shards have connected to each other
  job.condition.note_opened();
  job.stage.clear_deadline();
  job.workers.begin_training();
  for (const Member& worker : job.workers.living()) job.candidates.note_trains(worker.task);
  job.progress.moved(turn.now);
  begin_loans(job, turn.term);
  if (!job.schedule.has_begun()) job.schedule.begin(turn.now);
  job.schedule.set_next_due(job.progress.step());
  if (job.rollbacks.current())
    end_rollback(job, turn);
  else
    tell_start(job, turn);
  // The TrainingRecord is written after the event that ends the rollback. So a restarted chief that finds the record
  // knows that the rollback has ended.
  turn.persist(TrainingRecord{job.setup.id, job.generation.number()});
  set_state(job, turn, JobState::kRunning, report::training_reason(job, turn.now));
  turn.send_to(job.workers.living(), StartJob{job.setup.id, job.generation.number()});
  lend(job, turn);
  invite_all(job, turn);
}

}  // namespace disttrain::chiefd::flow
