// Rolls a job back: the job starts again with the next generation. The connected ps tasks make all shards anew from one
// checkpoint, and the workers open the job again. Messages that carry the number of the earlier generation are refused.
// The same ps tasks as before own the shards again, even if their processes are new. But if one of these ps tasks stays
// away, the shards are placed on any connected ps tasks.
#include "chiefd/core/job/flow/flow.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "chiefd/core/job/rules/recovery.h"
#include "chiefd/core/job/rules/workers.h"
#include "chiefd/core/job/views/fitness.h"
#include "chiefd/core/job/views/links.h"
#include "chiefd/core/job/views/recovery.h"
#include "chiefd/core/job/views/workers.h"
#include "chiefd/core/restarts.h"

namespace disttrain::chiefd::flow {
namespace {

// Drops all state of the generation.
void drop_generation(JobFacts& job, Turn& turn) {
  abandon_attempt(job, turn, "the job rolls back");
  job.folder.ask_again.reset();
  job.held.drop_sends();
  job.progress.drop_generation();
  job.stage.await_nobody();
  job.fences.all.clear();
  job.pauses.drop_generation();
  job.suspicions.clear();
  settle_start_failures(job, turn);
  job.schedule.drop_generation();
  job.loans.drop_generation();
  job.workers.drop_generation();
}

void explain_shortage(JobFacts& job, const std::string& shortage) {
  job.rollbacks.explain(shortage);
  job.condition.explain(to_string(job.rollbacks.current()->cause) + "; " + shortage);
}

// Takes the same ps tasks as before, with the processes that are connected now. If some of them are still missing after
// Timeouts::silent_ps, places the shards on any ps tasks.
bool regather_ps(JobFacts& job, Turn& turn, std::string& problem) {
  const auto take_them = [&] {
    job.generation.keep_owners(turn.tasks);
    return true;
  };
  const std::vector<Awaited> missing = views::missing_ps(job, turn.tasks);
  if (missing.empty()) return take_them();
  if (turn.now - job.rollbacks.current()->gathers_since < job.setup.timeouts.silent_ps) return false;
  const GenerationPlan::Placed before = job.generation.placed();
  const auto is_avoided = [&](TaskId ps) { return views::is_avoided(job, turn.tasks, ps); };
  const Status placed =
      job.generation.place(turn.tasks, is_avoided, views::fewest_workers(job), job.workers.roster().members.size());
  if (placed) return true;
  job.generation.put_back(before);
  const bool are_there = std::all_of(missing.begin(), missing.end(),
                                     [](const Awaited& awaited) { return awaited.what == AwaitedFor::kLink; });
  // If the link between two ps tasks broke, they connect to each other again only in another generation. So the chief
  // forgets the broken link, and lets the next generation try it again.
  const bool lack_peers = are_there && std::none_of(missing.begin(), missing.end(), [&](const Awaited& awaited) {
                            return views::is_cut_off(job, turn.tasks, *awaited.task);
                          });
  if (lack_peers) {
    job.links.forget_peers();
    return take_them();
  }
  // Most workers can't reach a ps, and no other ps can take its shards. So the job goes on with the workers that reach
  // this ps.
  if (are_there && views::can_train_with(job, turn.tasks, turn.now)) return take_them();
  problem = placed.error().message;
  return false;
}

bool regather_workers(JobFacts& job, Turn& turn) {
  std::map<TaskId, Member> ready;
  std::map<TaskId, Member> spared;  // ready, but lost when the generation before started
  for (const auto& [id, task] : turn.tasks.all()) {
    if (id.role != Role::kWorker || !views::is_available(job, task)) continue;
    if (job.worker_losses.is_too_often(id, turn.now) && !job.setup.waits_for_lost()) {
      keep_out(job, turn, id, views::lost_too_often(job, id, turn.now));
    } else if (!views::reaches_owners(job, id)) {
      // invite_again() asks the prepared workers again. Any other worker is invited here, and its answer
      // says which ps tasks it can't reach.
      if (!job.candidates.is_prepared(task.member) && job.candidates.may_be_asked(id, turn.now))
        invite(job, turn, task.member);
    } else if (job.candidates.is_prepared(task.member)) {
      job.candidates.let_in(id);
      (job.candidates.was_lost_at_start(id) && !job.setup.waits_for_lost() ? spared : ready).emplace(id, task.member);
    } else {
      invite(job, turn, task.member);
    }
  }
  if (!views::missing_workers(job, turn.tasks, turn.now).empty()) return false;
  if (ready.size() < job.setup.least_workers()) ready.merge(spared);
  std::vector<Member> roster;
  if (job.setup.waits_for_lost())
    for (const TaskId rank : job.workers.ranks()) roster.push_back(ready.at(rank));
  else
    for (const auto& [id, member] : ready) roster.push_back(member);
  job.workers.choose_members(std::move(roster));
  return true;
}

// A ps may be back with less memory than before, and there may be more workers than before. If the memory doesn't
// suffice for all workers, the workers at the end of the roster stay out.
bool regather_memory(JobFacts& job, Turn& turn) {
  std::vector<Member> roster = job.workers.roster().members;
  if (const Status placed = job.generation.make_places(turn.tasks, views::fewest_workers(job), roster.size());
      !placed) {
    job.start.lacks_memory = true;
    explain_shortage(job, "waiting for memory: " + placed.error().message);
    return false;
  }
  while (roster.size() > job.generation.places()) {
    keep_out(job, turn, roster.back().task, views::no_place_for(job, turn.tasks, roster.size()));
    roster.pop_back();
  }
  job.workers.choose_members(std::move(roster));
  return true;
}

void find_restore(JobFacts& job, Turn& turn) {
  job.workers.use_roster();
  job.generation.draw_numbers(turn.term);
  if (!job.setup.takes_checkpoints()) {
    job.generation.restore_from(std::nullopt);
    return begin_generation(job, turn);
  }
  job.stage.enter(Stage::kFind);
  job.stage.set_deadline(turn.now + job.setup.timeouts.setup);
  ask_newest(job, turn);
}

}  // namespace

void recover(JobFacts& job, Turn& turn, const Cause& cause, Loss loss) {
  const Verdict after = rules::after_loss(job, cause, loss);
  if (!std::holds_alternative<Recover>(after)) return carry_out(job, turn, after);
  // A job that finishes early finishes when it trains again.
  if (job.condition.finishes_early()) job.condition.end_stopping();
  const bool is_placed = !job.generation.owners().empty();
  const bool counts = loss == Loss::kCounts;
  const std::size_t losses = counts ? count_loss(job, turn, is_placed ? kLossCounted : kLostAtStart, cause) : 0;
  carry_out(job, turn, rules::recovery(job, cause, loss, losses));
}

void begin_rollback(JobFacts& job, Turn& turn, const Cause& cause, Loss loss) {
  if (loss != Loss::kCounts)
    tell(job, turn, kRollsBack, loss == Loss::kLeft ? 1 : 2,
         std::string(loss == Loss::kLink     ? "a link failed"
                     : loss == Loss::kSpared ? "the job starts again without a worker"
                                             : "a task was told to end") +
             ", which doesn't count as a loss: " + to_string(cause),
         cause.task, cause.reason);
  // If a second loss comes during a rollback, the rollback keeps the step that the job had reached before the first
  // loss.
  const std::optional<Rollback>& before = job.rollbacks.current();
  job.rollbacks.begin(Rollback{cause, before ? before->began : turn.now, before ? before->gathers_since : turn.now,
                               turn.now + back_off(job.rollbacks.fruitless()),
                               std::max(job.progress.step(), before ? before->step : Step()),
                               job.progress.has_heard_pacer() && (!before || before->is_step_known)});
  roll_back(job, turn, loss);
}

void roll_back(JobFacts& job, Turn& turn, Loss loss) {
  job.rollbacks.count_one(loss);
  drop_generation(job, turn);
  tell_pause(job, turn, true, to_string(job.rollbacks.current()->cause));
  job.stage.enter(Stage::kRegather);
  job.stage.set_deadline(turn.now + job.setup.timeouts.setup);
  set_state(job, turn, JobState::kPaused, to_string(job.rollbacks.current()->cause) + "; the job recovers");
  regather(job, turn);
}

// After a restart of the chief, recall() counts losses by this event.
std::size_t count_loss(JobFacts& job, Turn& turn, const std::string& kind, const Cause& cause) {
  const std::size_t times = job.rollbacks.note_loss(turn.now, job.setup.config().job.restart_window);
  tell(job, turn, kind, 2,
       "this is loss number " + std::to_string(times) + " within job.restart_window (job.max_restarts is " +
           std::to_string(job.setup.config().job.max_restarts) + "): " + to_string(cause),
       cause.task, cause.reason);
  return times;
}

void regather(JobFacts& job, Turn& turn) {
  job.start.lacks_memory = false;
  std::string problem;
  const bool has_ps = regather_ps(job, turn, problem);
  const bool has_workers = regather_workers(job, turn);
  if (!has_workers) {
    const Verdict verdict = rules::without_hope(job, turn.tasks, turn.now);
    if (!std::holds_alternative<Stay>(verdict)) return carry_out(job, turn, verdict);
  }
  if (!has_ps || !has_workers) {
    std::vector<Awaited> missing = views::missing_ps(job, turn.tasks);
    for (Awaited& worker : views::missing_workers(job, turn.tasks, turn.now)) missing.push_back(std::move(worker));
    std::string shortage = "waiting for " + to_string(missing);
    if (!has_ps && !problem.empty()) shortage += " (the other ps tasks can't take the shards: " + problem + ")";
    if (!has_workers)
      for (const auto& [task, why] : job.candidates.kept_out()) shortage += "; " + to_string(task) + " " + why;
    if (const std::string links = views::broken_links_text(job, turn.now); !links.empty()) shortage += "; " + links;
    return explain_shortage(job, shortage);
  }
  if (!regather_memory(job, turn)) return;
  if (turn.now < job.rollbacks.current()->not_before) return;
  if (const std::vector<Awaited> late = views::late_workers(job, turn.tasks, turn.now); !late.empty())
    return explain_shortage(job, "waiting for " + to_string(late) + " after a restart of the chief");
  find_restore(job, turn);
}

}  // namespace disttrain::chiefd::flow
