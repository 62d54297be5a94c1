// Takes a job's checkpoints, one attempt at a time. chiefd/core/job/facts/checkpoint_schedule.h says when an attempt is
// due.
//
//   1. The chief makes the folder of the attempt.
//   2. Each ps reserves the space for its files.
//   3. Each shard cuts: it copies its parameters.
//   4. Each ps writes the files of its shards.
//   5. The chief writes the manifest. Without a manifest the files aren't a checkpoint.
//
// The checkpoint after the last step is tried again for some minutes if it fails. During this time the ps tasks keep
// the parameters in memory.
#include "chiefd/core/job/flow/flow.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "chiefd/core/job/rules/checkpoints.h"
#include "chiefd/core/job/rules/end.h"
#include "chiefd/core/job/views/checkpoints.h"
#include "chiefd/core/job/views/end.h"
#include "chiefd/core/job/views/evaluations.h"
#include "common/mutant.h"

namespace disttrain::chiefd::flow {
namespace {

// The limit for a whole attempt. It is long because a disk may be slow.
constexpr int kLongestAttempt = 600;  // heartbeat timeouts

// If no attempt begins within this time, the chief refuses the client's request.
constexpr int kLongestWait = 20;  // heartbeat timeouts

// If the disk is full, the chief waits for this many setup timeouts, so that the operator can make room.
constexpr int kPatience = 5;

void answer_savers(JobFacts& job, Turn& turn, const CheckpointSaved& saved);

// In async and ssp, the cut waits until every joining worker has opened its channels. Before that a worker can't mark
// its channels, and the shards would wait for its marks.
void order_cut(JobFacts& job, Turn& turn) {
  if (job.attempts.current->phase != Attempt::Phase::kPrepare || !job.attempts.current->owed.empty()) return;
  if (!job.setup.is_sync() && !job.workers.joining().empty()) return;
  job.attempts.current->phase = Attempt::Phase::kCut;
  if (job.setup.is_sync())
    turn.send(job.generation.pacer().task,
              TakeCut{job.setup.id, job.generation.number(), job.attempts.current->number, job.attempts.current->at});
  else
    turn.send_to(job.workers.living(),
                 MarkChannels{job.setup.id, job.generation.number(), job.attempts.current->number});
  carry_out(job, turn, rules::written(job));
}

void on_committed(JobFacts& job, Turn& turn, const FolderAnswer& answer) {
  const Attempt attempt = std::move(*job.attempts.current);
  job.attempts.current.reset();
  const Step step = attempt.written.begin()->second.entry.version;
  if (!job.folder.newest || step > job.folder.newest->step) job.rollbacks.note_advance();
  const CheckpointRecord record{job.setup.id, job.generation.number(), step, answer.path};
  job.folder.newest = record;
  turn.persist(record);
  job.schedule.note_taken(attempt.began, step);
  job.stats.note_committed(attempt, turn.now);
  tell(job, turn, kCheckpointTaken, 1,
       "checkpoint of step " + std::to_string(step.value) + ": " + answer.path + ", " +
           describe_costs(attempt, turn.now));
  if (!answer.warning.empty()) tell(job, turn, "checkpoint_retention", 2, answer.warning);
  if (!answer.program_warning.empty()) tell(job, turn, "checkpoint_program", 2, answer.program_warning);
  answer_savers(job, turn, CheckpointSaved{answer.path, step});
  on_kept(job, turn, answer);
  advance_evaluations(job, turn);
  if (job.stage.is(Stage::kFinalCut)) return end_last_step(job, turn);
  job.schedule.set_saved(attempt.holds);
  join_prepared(job, turn);
}

// The old connection may have lost the message that ended the previous attempt (AbandonCheckpoint). Without this
// message a shard that holds would never apply a push again. So the chief sends the message again.
void repeat_checkpoint_to_ps(JobFacts& job, Turn& turn, const Member& ps) {
  const auto send_end_of = [&](std::uint64_t number) {
    turn.send(ps.task, AbandonCheckpoint{job.setup.id, job.generation.number(), number});
  };
  if (!job.attempts.current) {
    if (!job.schedule.is_saved()) send_end_of(std::max(job.attempts.last_number, turn.term.value << 32));
    return;
  }
  switch (job.attempts.current->phase) {
    case Attempt::Phase::kBegin:
      return send_end_of(job.attempts.current->number - 1);
    case Attempt::Phase::kPrepare:
      if (job.attempts.current->owed.count(ps) != 0)
        turn.send(ps.task, PrepareCheckpoint{job.setup.id, job.generation.number(), job.attempts.current->number,
                                             job.attempts.current->folder, job.attempts.current->holds});
      return;
    case Attempt::Phase::kCut:
      if (job.setup.is_sync() && ps == job.generation.pacer())
        turn.send(ps.task, TakeCut{job.setup.id, job.generation.number(), job.attempts.current->number,
                                   job.attempts.current->at});
      return;
    case Attempt::Phase::kCommit:
      if (!job.attempts.current->holds) send_end_of(job.attempts.current->number);
      return;
  }
}

// Called in stage kFinalCut when an attempt was given up. `fails`: see abandon_attempt().
void on_final_abandoned(JobFacts& job, Turn& turn, const std::string& why, bool fails) {
  if (!fails) return;
  job.condition.explain(views::why_it_ends(job) + "the job waits to take the last checkpoint: " + why);
  if (turn.now >= job.attempts.final_until) fail_job(job, turn, views::no_final_checkpoint(job, why), std::nullopt);
}

void answer_savers(JobFacts& job, Turn& turn, const CheckpointSaved& saved) {
  job.savers.is_worker_waiting = false;
  for (const ClientId client : std::exchange(job.savers.clients, {}))
    turn.actions.push_back(AnswerClient{client, saved});
}

}  // namespace

void advance_checkpoint(JobFacts& job, Turn& turn) {
  const bool is_under_way = job.attempts.current.has_value();
  const Verdict verdict = rules::next_attempt(job, turn.tasks, turn.now);
  carry_out(job, turn, verdict);
  if (!is_under_way || !std::holds_alternative<Stay>(verdict)) return;
  if (job.workers.unfinished().empty()) cut_now(job, turn);
  order_cut(job, turn);
}

// Begins an attempt. In sync, `at` is the step at which the shards cut. Step 0 means that they cut at once.
void begin_attempt(JobFacts& job, Turn& turn, Step at) {
  job.attempts.last_number = std::max(job.attempts.last_number, turn.term.value << 32) + 1;
  Attempt attempt;
  attempt.number = job.attempts.last_number;
  attempt.at = at;
  attempt.holds = views::leaving_owner(job, turn.tasks).has_value();
  attempt.ticket = turn.next_ticket();
  attempt.began = turn.now;
  attempt.deadline = turn.now + job.setup.timeouts.silent * kLongestAttempt;
  job.attempts.current = std::move(attempt);
  turn.folder_work(job.setup.id, job.attempts.current->ticket,
                   BeginAttempt{job.generation.number(), job.attempts.current->number});
}

void on_attempt_folder(JobFacts& job, Turn& turn, const FolderDone& done) {
  if (!job.attempts.current || done.ticket != job.attempts.current->ticket) return;
  if (!done.answer) return abandon_attempt(job, turn, done.answer.error().message, true);
  if (job.attempts.current->phase == Attempt::Phase::kCommit) return on_committed(job, turn, *done.answer);
  job.attempts.current->phase = Attempt::Phase::kPrepare;
  job.attempts.current->folder = done.answer->path;
  for (const Member& ps : job.generation.holders()) {
    job.attempts.current->owed.insert(ps);
    turn.send(ps.task, PrepareCheckpoint{job.setup.id, job.generation.number(), job.attempts.current->number,
                                         job.attempts.current->folder, job.attempts.current->holds});
  }
}

void commit_attempt(JobFacts& job, Turn& turn) {
  job.attempts.current->phase = Attempt::Phase::kCommit;
  job.attempts.current->commit_began = turn.now;
  job.attempts.current->ticket = turn.next_ticket();
  CommitAttempt commit{job.setup.config(),
                       job.setup.submission.toml,
                       job.generation.layout(),
                       job.generation.described()->train_records,
                       job.generation.number(),
                       job.attempts.current->number,
                       {},
                       views::pinned(job),
                       job.generation.described()->columns};
  for (const auto& [shard, entry] : job.attempts.current->written) commit.shards.push_back(entry);
  if (DISTTRAIN_MUTANT(kCursorOfAnotherStep)) commit.shards.front().pacer = job.progress.report();
  turn.folder_work(job.setup.id, job.attempts.current->ticket, std::move(commit));
}

void cut_now(JobFacts& job, Turn& turn) {
  if (job.attempts.current->at == Step()) return;
  job.attempts.current->at = Step();
  if (job.setup.is_sync() && job.attempts.current->phase == Attempt::Phase::kCut)
    turn.send(job.generation.pacer().task,
              TakeCut{job.setup.id, job.generation.number(), job.attempts.current->number, job.attempts.current->at});
}

void on_prepared(JobFacts& job, Turn& turn, const Member& from, const CheckpointPrepared& prepared) {
  if (!job.attempts.current || job.attempts.current->phase != Attempt::Phase::kPrepare ||
      prepared.attempt != job.attempts.current->number)
    return;
  job.attempts.current->owed.erase(from);
  order_cut(job, turn);
}

void on_written(JobFacts& job, Turn& turn, const ShardWritten& written) {
  if (!job.attempts.current || written.attempt != job.attempts.current->number) return;
  job.attempts.current->written[written.shard] = written;
  carry_out(job, turn, rules::written(job));
}

void on_checkpoint_failed(JobFacts& job, Turn& turn, const Member& from, const CheckpointFailed& failed) {
  if (job.attempts.current && failed.attempt == job.attempts.current->number)
    abandon_attempt(job, turn, to_string(from.task) + ": " + failed.reason, true);
}

// Repeats only the chief's requests. The task itself repeats its answers.
void repeat_checkpoint(JobFacts& job, Turn& turn, const Member& member) {
  const bool trains = job.stage.is(Stage::kTrain) || job.stage.is(Stage::kSettle) || job.stage.is(Stage::kFinalCut);
  if (!trains || !job.setup.takes_checkpoints()) return;
  if (job.generation.is_owner(member)) return repeat_checkpoint_to_ps(job, turn, member);
  if (job.attempts.is_cutting() && !job.setup.is_sync() && job.workers.is_in_roster(member))
    turn.send(member.task, MarkChannels{job.setup.id, job.generation.number(), job.attempts.current->number});
}

void interrupt_attempt(JobFacts& job, Turn& turn, const std::string& why) {
  if (!job.attempts.current) return;
  if (job.attempts.current->phase != Attempt::Phase::kCommit) return abandon_attempt(job, turn, why);
  job.attempts.current->holds = false;
  for (const Member& ps : job.generation.holders())
    turn.send(ps.task, AbandonCheckpoint{job.setup.id, job.generation.number(), job.attempts.current->number});
}

void abandon_attempt(JobFacts& job, Turn& turn, const std::string& why, bool fails) {
  if (!job.attempts.current) return;
  const Attempt attempt = std::move(*job.attempts.current);
  job.attempts.current.reset();
  for (const Member& ps : job.generation.holders())
    turn.send(ps.task, AbandonCheckpoint{job.setup.id, job.generation.number(), attempt.number});
  if (fails) {
    job.stats.note_failure();
    job.schedule.note_failed(why, attempt.holds);
  }
  job.schedule.note_abandoned(turn.now);
  tell(job, turn, "checkpoint_failed", 2, "a checkpoint was given up: " + why + "; the previous checkpoint stays");
  refuse_savers(job, turn, ErrorCode::kFailed, "the checkpoint was given up: " + why);
  if (job.stage.is(Stage::kFinalCut)) on_final_abandoned(job, turn, why, fails);
}

void end_last_step(JobFacts& job, Turn& turn) {
  carry_out(job, turn, rules::after_last_step(job));
}

void take_last_checkpoint(JobFacts& job, Turn& turn) {
  if (!job.stage.is(Stage::kFinalCut)) {
    job.stage.enter(Stage::kFinalCut);
    job.schedule.forget_failures();
    job.attempts.final_until = turn.now + kPatience * job.setup.timeouts.setup;
    job.stage.clear_deadline();
    job.condition.explain(views::why_it_ends(job) + "the job takes the last checkpoint");
    // An attempt is already under way. When it ends, end_last_step() is called again, whose rule sees whether the
    // attempt was of the last step.
    if (job.attempts.current.has_value()) return cut_now(job, turn);
  }
  if (job.folder.is_open) return begin_attempt(job, turn, Step());
  job.stage.set_deadline(job.attempts.final_until);
  ask_newest(job, turn);
}

void save(JobFacts& job, Turn& turn, ClientId client) {
  const std::string& directory = job.setup.config().checkpoint.directory;
  const auto refuse = [&](ErrorCode code, const std::string& why) {
    turn.actions.push_back(AnswerClient{client, Refused{code, "job " + job.setup.name() + ": " + why}});
  };
  if (!job.setup.takes_checkpoints())
    return refuse(ErrorCode::kConfig, "it takes no checkpoints, because checkpoint.directory isn't set");
  if (!job.stage.is(Stage::kTrain) || job.condition.state() != JobState::kRunning)
    return refuse(ErrorCode::kTemporary,
                  "it is " + std::string(to_string(job.condition.state())) + ": " + job.condition.reason());
  if (!job.folder.is_open)
    return refuse(ErrorCode::kTemporary, job.folder.error.empty() ? directory + " is still being opened"
                                                                  : directory + " can't be used: " + job.folder.error);
  if (!job.savers.is_any()) job.savers.until = turn.now + job.setup.timeouts.silent * kLongestWait;
  job.savers.clients.push_back(client);
  job.schedule.try_at(turn.now);
  advance_checkpoint(job, turn);
}

void save_for_worker(JobFacts& job, Turn& turn) {
  if (!job.setup.takes_checkpoints() || !job.stage.is(Stage::kTrain) || !job.folder.is_open) return;
  if (!job.savers.is_any()) job.savers.until = turn.now + job.setup.timeouts.silent * kLongestWait;
  job.savers.is_worker_waiting = true;
  job.schedule.try_at(turn.now);
  advance_checkpoint(job, turn);
}

void review_savers(JobFacts& job, Turn& turn) {
  if (job.attempts.current.has_value()) job.savers.until = turn.now + job.setup.timeouts.silent * kLongestWait;
  if (turn.now < job.savers.until || !job.savers.is_any()) return;
  refuse_savers(job, turn, ErrorCode::kTemporary,
                "job " + job.setup.name() + ": no checkpoint could begin; the job is " +
                    std::string(to_string(job.condition.state())) + ": " + job.condition.reason());
}

void refuse_savers(JobFacts& job, Turn& turn, ErrorCode code, const std::string& why) {
  job.savers.is_worker_waiting = false;
  for (const ClientId client : std::exchange(job.savers.clients, {}))
    turn.actions.push_back(AnswerClient{client, Refused{code, why}});
}

}  // namespace disttrain::chiefd::flow
