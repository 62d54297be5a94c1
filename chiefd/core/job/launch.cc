#include "chiefd/core/job/launch.h"

#include <algorithm>
#include <utility>

#include "chiefd/core/job/parts.h"
#include "chiefd/core/job/step_targets.h"
#include "common/format_duration.h"
#include "common/mutant.h"

namespace disttrain::chiefd {
namespace {}  // namespace

Launch::Launch(JobParts& parts)
    : setup_(parts.setup),
      stage_(parts.stage),
      condition_(parts.condition),
      events_(parts.events),
      progress_(parts.progress),
      rollbacks_(parts.rollbacks),
      generation_(parts.generation),
      workers_(parts.workers),
      candidates_(parts.candidates),
      links_(parts.links),
      folder_(parts.folder),
      schedule_(parts.schedule),
      stats_(parts.stats),
      loans_(parts.loans),
      invitations_(parts.invitations),
      report_(parts.report) {}

void Launch::begin_generation(Turn& turn) {
  generation_.begin(folder_.newest_generation());
  workers_.begin_generation();
  loans_.forbid();
  const std::optional<RestorePoint>& restore = generation_.restore();
  progress_.begin(restore ? restore->pacer : PacerReport());
  stage_.enter(Stage::kGeneration);
  condition_.explain("the job waits for the chief's own disk");
  stage_.set_deadline(turn.now + setup_.timeouts.setup);
  stage_.set_ticket(turn.persist(GenerationRecord{
      setup_.id, generation_.number(), generation_.mark(), generation_.owners(), workers_.roster(),
      restore ? restore->path : "", generation_.first_step(), rollbacks_.count(), progress_.before(),
      generation_.init_path(), generation_.places(), generation_.placed().bucket_size == BucketSize::kSmall}));
  if (DISTTRAIN_MUTANT(kGenerationNotDurable)) create_shards(turn);
}

void Launch::create_shards(Turn& turn) {
  stage_.enter(Stage::kCreate);
  create_began_ = turn.now;
  condition_.explain("the ps tasks create " + std::to_string(generation_.layout().shards) +
                     (generation_.layout().shards == 1 ? " shard" : " shards") +
                     (generation_.restore() || !generation_.init_path().empty()
                          ? " from " + (generation_.restore() ? generation_.restore()->path : generation_.init_path())
                          : ""));
  stage_.await(turn.now, generation_.holders(), turn.now + setup_.timeouts.setup);
  for (const Member& ps : generation_.holders()) ask_to_create(turn, ps);
}

void Launch::ask_to_create(Turn& turn, const Member& ps) {
  turn.send(ps.task, CreateShards{.job = setup_.id,
                                  .generation = generation_.number(),
                                  .token = generation_.token(),
                                  .config = resolved_config(setup_, generation_),
                                  .layout = generation_.layout(),
                                  .owners = generation_.owners(),
                                  .roster = workers_.roster(),
                                  .warmup_steps = setup_.submission.warmup_steps,
                                  .train_records = generation_.described()->train_records,
                                  .places = generation_.places(),
                                  .checkpoint_folder = setup_.takes_checkpoints()
                                                           ? setup_.config().checkpoint.directory + "/" + setup_.name()
                                                           : "",
                                  .checkpoint_mark = folder_.mark(),
                                  .restore_path = generation_.restore() ? generation_.restore()->path : "",
                                  .init_path = generation_.restore() ? "" : generation_.init_path()});
}

void Launch::open(Turn& turn) {
  if (generation_.restore()) stats_.note_restored(turn.now - create_began_);
  stage_.enter(Stage::kOpen);
  condition_.explain("the workers open the job");
  workers_.let_evaluate(workers_.roster().members.front());
  stage_.await(turn.now, workers_.roster().members, turn.now + setup_.timeouts.setup);
  for (const Member& worker : workers_.roster().members) ask_to_open(turn, worker);
}

void Launch::set_roster(Turn& turn) {
  stage_.enter(Stage::kRoster);
  stage_.await(turn.now, {generation_.pacer()}, turn.now + setup_.timeouts.setup);
  turn.send(generation_.pacer().task, SetRoster{setup_.id, generation_.number(), workers_.roster()});
}

// Returns the start value of the worker's clock, which counts the worker's own steps. In async, if data.sharding is
// "none", each worker goes through the whole data set. So the worker continues where the earlier process of its task
// was. In ssp the worker begins at the step of the slowest worker. In all other cases it begins at the global step.
Step Launch::clock_of(const Member& worker) const {
  const bool has_own_order = setup_.config().data.sharding == Sharding::kNone;
  if (has_own_order && setup_.config().train.mode == Mode::kAsync) {
    if (stage_.is(Stage::kTrain)) {
      const auto lost = workers_.lost_clocks().find(worker.task);
      return lost == workers_.lost_clocks().end() ? Step() : lost->second;
    }
    if (!generation_.restore()) return Step();
    const auto clock = generation_.restore()->worker_clocks.find(worker.task);
    return clock == generation_.restore()->worker_clocks.end() ? Step() : clock->second;
  }
  if (setup_.config().train.mode == Mode::kSsp)
    return std::max(progress_.report().slowest_clock, generation_.restore() ? generation_.restore()->step : Step());
  return progress_.step();
}

OpenJob Launch::order_to_open(const Member& worker) const {
  return OpenJob{.job = setup_.id,
                 .generation = generation_.number(),
                 .token = generation_.token(),
                 .config = resolved_config(setup_, generation_),
                 .layout = generation_.layout(),
                 .owners = generation_.owners(),
                 .roster = workers_.roster(),
                 .train_records = generation_.described()->train_records,
                 .train_hash = generation_.described()->train_hash,
                 .evaluates = workers_.evaluator() == worker && !setup_.uses_evaluators(),
                 .clock = clock_of(worker)};
}

void Launch::ask_to_open(Turn& turn, const Member& worker) {
  turn.send(worker.task, order_to_open(worker));
}

void Launch::start_training(Turn& turn) {
  stage_.enter(Stage::kTrain);
  links_.forget_peers();  // all shards have connected to each other
  condition_.note_opened();
  stage_.clear_deadline();
  workers_.begin_training();
  for (const Member& worker : workers_.living()) candidates_.note_trains(worker.task);
  progress_.moved(turn.now);
  loans_.begin(turn.term);
  if (!schedule_.has_begun()) schedule_.begin(turn.now);
  schedule_.set_next_due(progress_.step());
  if (rollbacks_.current())
    end_rollback(turn);
  else
    tell_start(turn);
  // The TrainingRecord is written after the event that ends the rollback. So a restarted chief that finds the record
  // knows that the rollback has ended.
  turn.persist(TrainingRecord{setup_.id, generation_.number()});
  condition_.set(turn, JobState::kRunning, report_.training_reason(turn.now));
  turn.send_to(workers_.living(), StartJob{setup_.id, generation_.number()});
  loans_.lend(turn);
  invitations_.invite_all(turn);
}

void Launch::tell_start(Turn& turn) {
  if (const auto& restore = generation_.restore())
    events_.tell(
        turn, "restored", 1,
        "the job begins at step " + std::to_string(restore->step.value) + " of the checkpoint " + restore->path);
  else if (!generation_.init_path().empty())
    events_.tell(turn, "warm_start", 1, "the job begins with the parameters of " + generation_.init_path());
}

void Launch::end_rollback(Turn& turn) {
  const Rollback rollback = *rollbacks_.end();
  const std::uint64_t from = generation_.first_step().value;
  const std::uint64_t lost = rollback.step.value > from ? rollback.step.value - from : 0;
  rollbacks_.lose_steps(lost);
  const std::string known = std::to_string(lost) + " steps are lost; ";
  const std::string unknown = std::string("the later steps are lost (") +
                              (lost > 0 ? "at least " + std::to_string(lost) : "how many isn't known") +
                              ", because the chief was away); ";
  events_.tell(turn, kRolledBack, 2,
               "generation " + std::to_string(generation_.number().value) + " goes on at step " + std::to_string(from) +
                   " (" + (generation_.restore() ? generation_.restore()->path : "initial values") + "), " +
                   (rollback.is_step_known ? known : unknown) + "the rollback took " +
                   format_duration(turn.now - rollback.began) + "; cause: " + to_string(rollback.cause),
               rollback.cause.task, rollback.cause.reason);
}

}  // namespace disttrain::chiefd
