#include "chiefd/core/job/invariants.h"

#include <algorithm>
#include <initializer_list>
#include <set>
#include <variant>

#include "chiefd/core/job/facts/job_facts.h"

namespace disttrain::chiefd {
namespace {

// Each function returns the problem that it found. An empty text means that the invariant holds.
using Problem = std::string;

// A list and no set, because the simulator checks all invariants after each event.
template <typename T>
bool is_one_of(T one, std::initializer_list<T> some) {
  return std::find(some.begin(), some.end(), one) != some.end();
}

// ---- state and stage

Problem state_fits_stage(const JobFacts& job) {
  const JobState state = job.condition.state();
  const auto is_any = [state](std::initializer_list<JobState> states) { return is_one_of(state, states); };
  const bool is_at_work = is_any({JobState::kRunning, JobState::kPaused, JobState::kStopping});
  bool fits = true;
  switch (job.stage.at()) {
    case Stage::kQueued:
      fits = state == JobState::kQueued;
      break;
    case Stage::kGather:
    case Stage::kDescribe:
    case Stage::kFolder:
    case Stage::kInit:
      fits = state == JobState::kStarting;
      break;
    case Stage::kRegather:
      fits = state == JobState::kPaused;
      break;
    case Stage::kFind:
    case Stage::kGeneration:
    case Stage::kCreate:
    case Stage::kOpen:
    case Stage::kRoster:
      fits = is_any({JobState::kStarting, JobState::kPaused});
      break;
    case Stage::kReclaim:
    case Stage::kTrain:
    case Stage::kSettle:
    case Stage::kFinalCut:
      // After a restart the chief shows the state that the journal has. This is kEvaluating if the chief was killed
      // during the last evaluation. If the chief was killed before it wrote that the job runs, the state is kStarting
      // until the tasks are back.
      fits = is_at_work || state == JobState::kEvaluating ||
             (state == JobState::kStarting && job.stage.is(Stage::kReclaim));
      break;
    case Stage::kEvaluate:
      fits = is_any({JobState::kEvaluating, JobState::kPaused});
      break;
    case Stage::kClose:
      fits = state != JobState::kQueued;
      break;
    case Stage::kReleased:
      fits = is_final(state);
      break;
  }
  return fits ? ""
              : std::string("the state is ") + to_string(state) + " at stage " + std::to_string(int(job.stage.at()));
}

Problem ended_is_closed(const JobFacts& job) {
  return job.condition.has_ended() && !job.stage.traits().has_closed ? "the job has ended, but doesn't close" : "";
}

Problem stopping_shows(const JobFacts& job) {
  const JobState state = job.condition.state();
  const bool shows = state == JobState::kStopping || is_final(state);
  return job.condition.is_stopping() && !shows
             ? std::string("the job is being stopped, but its state is ") + to_string(state)
             : "";
}

Problem wait_has_deadline(const JobFacts& job) {
  const bool waits = is_one_of(job.stage.at(), {Stage::kGather, Stage::kDescribe, Stage::kFolder, Stage::kInit,
                                                Stage::kRegather, Stage::kFind, Stage::kGeneration, Stage::kCreate,
                                                Stage::kOpen, Stage::kRoster, Stage::kSettle, Stage::kEvaluate});
  return (waits || job.stage.awaits_anyone()) && !job.stage.deadline() ? "the job waits without a deadline" : "";
}

Problem rollback_has_its_stages(const JobFacts& job) {
  if (job.stage.is(Stage::kRegather) && !job.rollbacks.current()) return "the job is in kRegather without a rollback";
  const bool may_have = is_one_of(job.stage.at(), {Stage::kRegather, Stage::kFind, Stage::kGeneration, Stage::kCreate,
                                                   Stage::kOpen, Stage::kRoster});
  return job.rollbacks.current() && !may_have ? "a rollback is open, but the job isn't in a stage of a rollback" : "";
}

// ---- the generation

Problem shards_have_owners(const JobFacts& job) {
  if (!job.stage.traits().has_generation) return "";
  if (job.generation.number().value == 0) return "the generation has no number";
  if (!job.generation.described()) return "the model isn't known";
  const std::size_t owners = job.generation.owners().size();
  if (owners == job.generation.layout().shards && owners > 0) return "";
  return std::to_string(owners) + " owners for " + std::to_string(job.generation.layout().shards) + " shards";
}

Problem channels_have_secret(const JobFacts& job) {
  const bool needs = job.stage.traits().has_generation && !job.stage.is(Stage::kReclaim);
  return needs && job.generation.token() == 0 ? "the chief doesn't know the channels' secret" : "";
}

Problem roster_fits_memory(const JobFacts& job) {
  const std::size_t workers = job.workers.roster().members.size();
  if (!job.stage.traits().has_generation || workers <= job.generation.places()) return "";
  return std::to_string(workers) + " workers are in the roster, but the shards have memory only for " +
         std::to_string(job.generation.places());
}

Problem steps_are_not_behind_start(const JobFacts& job) {
  return job.stage.traits().has_trained && job.progress.step() < job.generation.first_step()
             ? "the job's step is before the first step of its generation"
             : "";
}

// ---- workers

Problem places_are_taken_once(const JobFacts& job) {
  std::set<TaskId> tasks;
  for (const Member& worker : job.workers.roster().members)
    if (!tasks.insert(worker.task).second) return to_string(worker.task) + " is twice in the roster";
  return "";
}

// With job.on_worker_loss = "wait" a lost worker stays in the roster until the next process of its task joins.
Problem lost_is_out_of_roster(const JobFacts& job) {
  if (job.setup.waits_for_lost() || !job.stage.traits().has_trained || job.stage.is(Stage::kEvaluate)) return "";
  for (const Member& worker : job.workers.roster().members)
    if (job.workers.is_lost(worker)) return to_string(worker.task) + " is lost, but is in the roster";
  return "";
}

Problem unfinished_take_part(const JobFacts& job) {
  if (!job.stage.traits().has_trained) return "";
  for (const Member& worker : job.workers.unfinished())
    if (!job.workers.is_in_roster(worker) || !job.workers.is_taking_part(worker))
      return to_string(worker.task) + " hasn't finished, but takes no part";
  const bool is_done = !job.stage.is(Stage::kTrain) && !job.stage.is(Stage::kReclaim);
  return is_done && !job.workers.unfinished().empty() ? "all steps are done, but a worker hasn't finished" : "";
}

Problem joining_is_unfinished(const JobFacts& job) {
  if (!job.stage.traits().has_trained) return "";
  for (const auto& [worker, since] : job.workers.joining())
    if (!job.workers.is_unfinished(worker)) return to_string(worker.task) + " joins, but has already finished";
  return "";
}

Problem evaluator_lives(const JobFacts& job) {
  const std::optional<Member>& evaluator = job.workers.evaluator();
  if (!job.stage.is(Stage::kTrain) || job.workers.unfinished().empty()) return "";
  return !evaluator || job.workers.is_lost(*evaluator) ? "the job trains, but no living worker is chosen to evaluate"
                                                       : "";
}

Problem kept_out_is_out(const JobFacts& job) {
  if (!job.stage.is(Stage::kTrain)) return "";
  for (const Member& worker : job.workers.living())
    if (job.candidates.kept_out().count(worker.task) != 0)
      return to_string(worker.task) + " is kept out of the job, but takes part";
  return "";
}

Problem fenced_is_gone(const JobFacts& job) {
  for (const Fence& fence : job.fences.all) {
    const std::string name = to_string(fence.worker.task);
    if (!job.stage.traits().has_trained && !job.stage.traits().has_closed)
      return name + " is still being fenced, but its generation is over";
    if (job.workers.is_taking_part(fence.worker)) return name + " is fenced, but takes part";
    for (const ShardId shard : fence.owed)
      if (shard.value >= job.generation.owners().size())
        return name + ": its fence waits for a shard that doesn't exist";
  }
  return "";
}

// ---- data

Problem lends_only_in_training(const JobFacts& job) {
  const bool may = job.stage.traits().has_closed || (job.stage.traits().has_trained && !job.stage.is(Stage::kReclaim));
  return job.loans.is_allowed && !may ? "the job lends records, but its generation doesn't train" : "";
}

// ---- pauses

Problem silent_ps_is_owner(const JobFacts& job) {
  for (const auto& [ps, silence] : job.pauses.silent_ps()) {
    if (!job.stage.traits().has_trained)
      return to_string(ps) + ": the job waits for this silent ps, but training hasn't begun in this generation";
    const std::vector<Member> owners = job.generation.holders();
    const auto owns = [ps = ps](const Member& owner) { return owner.task == ps; };
    if (std::none_of(owners.begin(), owners.end(), owns))
      return to_string(ps) + ": the job waits for this silent ps, but the ps owns no shard";
  }
  return "";
}

Problem short_only_in_training(const JobFacts& job) {
  return job.pauses.is_short() && !job.stage.is(Stage::kTrain) && !job.stage.traits().has_closed
             ? "the job pauses for missing workers, but doesn't train"
             : "";
}

Problem paused_is_not_running(const JobFacts& job) {
  const bool runs = job.stage.is(Stage::kTrain) && job.condition.state() == JobState::kRunning;
  return runs && job.pauses.is_any() ? "the job runs, but there is a reason for a pause" : "";
}

// ---- what is held

template <typename Message>
constexpr bool kHasGeneration = requires(const Message& message) {
  message.generation;
};

Problem held_is_of_generation(const JobFacts& job) {
  for (const auto& [ticket, actions] : job.held.all())
    for (const Action& action : actions) {
      const Send* send = std::get_if<Send>(&action);
      if (send == nullptr) continue;
      const bool is_of_another = std::visit(
          [&job]<typename Message>(const Message& message) {
            if constexpr (kHasGeneration<Message>) return message.generation != job.generation.number();
            return false;
          },
          send->message);
      if (is_of_another)
        return "a message to " + to_string(send->task) + ", which waits for a journal record, is of another generation";
    }
  return "";
}

// Checks that no lease of a lost worker goes to the next process of the same task.
Problem held_lease_has_borrower(const JobFacts& job) {
  if (!job.stage.is(Stage::kTrain)) return "";
  const std::vector<Member> living = job.workers.living();
  for (const auto& [ticket, actions] : job.held.all())
    for (const Action& action : actions) {
      const Send* send = std::get_if<Send>(&action);
      if (send == nullptr || !std::holds_alternative<LeaseGrant>(send->message)) continue;
      const auto is_it = [send](const Member& worker) { return worker.task == send->task; };
      if (std::none_of(living.begin(), living.end(), is_it))
        return "a lease is held for " + to_string(send->task) + ", which is lost or not in the roster";
    }
  return "";
}

// ---- checkpoints

Problem attempt_has_its_stages(const JobFacts& job) {
  const std::optional<Attempt>& attempt = job.attempts.current;
  if (!attempt) return "";
  if (!job.setup.takes_checkpoints() || !job.folder.is_open) return "a checkpoint is taken without a folder";
  if (!job.stage.traits().has_trained || job.stage.is(Stage::kReclaim))
    return "a checkpoint is taken, but training hasn't begun in this generation";
  if (attempt->phase != Attempt::Phase::kPrepare && !attempt->owed.empty() && attempt->phase != Attempt::Phase::kBegin)
    return "shards cut, but a ps hasn't reserved its space yet";
  for (const auto& [shard, written] : attempt->written)
    if (shard.value >= job.generation.owners().size()) return "a shard that doesn't exist has written a file";
  return "";
}

Problem hold_is_for_leaver(const JobFacts& job) {
  const bool may_hold = job.stage.is(Stage::kTrain) && !job.condition.is_stopping();
  return job.attempts.is_holding() && !may_hold ? "the shards hold after a cut, but no ps may leave now" : "";
}

Problem saved_is_of_generation(const JobFacts& job) {
  if (!job.schedule.is_saved()) return "";
  const std::optional<CheckpointRecord>& newest = job.folder.newest;
  return !newest || newest->generation != job.generation.number()
             ? "the shards count as saved for a ps that leaves, but the newest checkpoint is of another generation"
             : "";
}

Problem savers_can_be_served(const JobFacts& job) {
  const bool can_be = job.setup.takes_checkpoints() && job.condition.has_begun() && !job.stage.traits().has_closed;
  return job.savers.is_any() && !can_be ? "a client waits for a checkpoint that the job can't take" : "";
}

Problem retries_are_kept_out(const JobFacts& job) {
  for (const Member& worker : job.candidates.retries()) {
    if (job.candidates.is_prepared(worker)) return to_string(worker.task) + " is asked again, but is prepared";
    if (job.candidates.kept_out().count(worker.task) == 0)
      return to_string(worker.task) + " is asked again, but isn't kept out";
  }
  return "";
}

Problem left_out_is_kept_out(const JobFacts& job) {
  for (const TaskId task : job.candidates.left_out())
    if (job.candidates.kept_out().count(task) == 0) return to_string(task) + " is left out, but isn't kept out";
  return "";
}

struct Invariant {
  const char* name;
  const char* what;
  Problem (*check)(const JobFacts&);
};

constexpr Invariant kInvariants[] = {
    {"J1", "the state fits the stage", state_fits_stage},
    {"J2", "if a job has ended, its tasks are closing it or have closed it", ended_is_closed},
    {"J3", "a job that is being stopped shows this in its state, because a restarted chief knows only the state",
     stopping_shows},
    {"J4", "every wait has a deadline", wait_has_deadline},
    {"J5", "a rollback is open only from its beginning until the next generation trains", rollback_has_its_stages},
    {"J6", "a generation has an owner for every shard of its layout", shards_have_owners},
    {"J7", "the chief knows the channels' secret as soon as shards are created", channels_have_secret},
    {"J8", "the shards have memory for every worker of the roster", roster_fits_memory},
    {"J9", "the job's step is never before the first step of its generation", steps_are_not_behind_start},
    {"J10", "a roster has at most one process of each task", places_are_taken_once},
    {"J11", "a lost worker isn't in the roster, unless its rank waits for the next process", lost_is_out_of_roster},
    {"J12", "a worker that hasn't finished is in the roster and isn't lost", unfinished_take_part},
    {"J13", "a worker that joins hasn't finished", joining_is_unfinished},
    {"J14", "while workers train, the worker that evaluates isn't lost", evaluator_lives},
    {"J15", "a worker that is kept out takes no part", kept_out_is_out},
    {"J16", "a fenced worker takes no part, and its fence waits only for shards that exist", fenced_is_gone},
    {"J17", "records are lent only by a generation that trains", lends_only_in_training},
    {"J18",
     "a job waits for a silent ps only if this ps owns a shard, and only after training began in this generation",
     silent_ps_is_owner},
    {"J19", "a job pauses for missing workers only in training", short_only_in_training},
    {"J20", "a job with a reason for a pause isn't running", paused_is_not_running},
    {"J21", "a message that waits for a journal record is of the current generation", held_is_of_generation},
    {"J22", "a lease is held only for a worker of the roster that isn't lost", held_lease_has_borrower},
    {"J23",
     "a checkpoint is under way only if the checkpoint folder is open, and only after training began in this "
     "generation",
     attempt_has_its_stages},
    {"J24", "shards hold after a cut only for a ps that leaves", hold_is_for_leaver},
    {"J25", "the shards count as saved for a ps that leaves only if the newest checkpoint is of this generation",
     saved_is_of_generation},
    {"J26", "a client waits for a checkpoint only while the job can take one", savers_can_be_served},
    {"J27", "a worker that is asked again later has nothing prepared and is kept out", retries_are_kept_out},
    {"J28", "a worker whose process can't take part is kept out", left_out_is_kept_out},
};

}  // namespace

std::optional<std::string> broken_invariant(const JobFacts& job) {
  for (const Invariant& invariant : kInvariants)
    if (const Problem problem = invariant.check(job); !problem.empty())
      return std::string(invariant.name) + ": job " + std::to_string(job.setup.id.value) + ": " + problem + " (" +
             invariant.what + ")";
  return std::nullopt;
}

}  // namespace disttrain::chiefd
