// A job's checkpoint folder. The chief opens the folder and finds the newest checkpoint that is complete and undamaged.
// If the folder can't be opened or read, the chief tries again after a second. The shell does the slow work
// (FolderWork).
#include "chiefd/core/job/flow/flow.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "chiefd/core/job/rules/checkpoints.h"
#include "chiefd/core/job/views/checkpoints.h"

namespace disttrain::chiefd::flow {
namespace {

void on_folder_failure(JobFacts& job, Turn& turn, const Error& error, bool is_waited_for) {
  const Verdict verdict = rules::folder_failed(job, error);
  if (!std::holds_alternative<Stay>(verdict)) return carry_out(job, turn, verdict);
  const bool is_restore = job.stage.is(Stage::kFolder) || job.stage.is(Stage::kFind);
  if (!is_restore) job.stats.note_failure();
  job.folder.ask_again = turn.now + std::chrono::seconds(1);
  const bool is_new = std::exchange(job.folder.error, error.message) != error.message;
  if (is_waited_for) job.condition.explain("waits for its checkpoint folder: " + error.message);
  if (!is_new) return;
  tell(job, turn, "checkpoint_failed", 2,
       (is_waited_for ? "the job waits for its checkpoint folder: " : "no checkpoints can be taken: ") + error.message);
}

void note_broken(JobFacts& job, Turn& turn, const std::vector<std::string>& broken) {
  for (const std::string& what : broken) {
    job.warnings.add("a checkpoint can't be used: " + what);
    tell(job, turn, "checkpoint_broken", 3, "a checkpoint can't be used: " + what);
  }
}

}  // namespace

void ask_newest(JobFacts& job, Turn& turn) {
  job.folder.ask_again.reset();
  job.folder.asked = turn.now;
  job.stage.set_ticket(turn.next_ticket());
  const std::string committed = job.folder.newest ? job.folder.newest->path : "";
  const std::string columns = job.generation.described() ? job.generation.described()->columns : "";
  if (job.folder.is_open)
    return turn.folder_work(job.setup.id, job.stage.ticket(), FindNewest{job.generation.mark(), committed, columns});
  const bool must_be_empty =
      job.setup.config().checkpoint.restore == Restore::kNone && job.generation.number().value == 0;
  turn.folder_work(job.setup.id, job.stage.ticket(),
                   OpenFolder{job.setup.config().checkpoint.directory, job.setup.name(), must_be_empty,
                              job.generation.mark(), committed, job.setup.config().model.program, columns});
}

void on_newest(JobFacts& job, Turn& turn, const Result<FolderAnswer>& answer) {
  if (job.stage.traits().has_closed || job.condition.has_ended()) return;
  const bool is_waited_for =
      job.stage.is(Stage::kFolder) || job.stage.is(Stage::kFind) || job.stage.is(Stage::kFinalCut);
  if (!answer) return on_folder_failure(job, turn, answer.error(), is_waited_for);
  job.folder.is_open = true;
  job.folder.error.clear();
  job.folder.mark = answer->mark;
  job.folder.newest_generation = std::max(job.folder.newest_generation, answer->newest_generation);
  note_broken(job, turn, answer->broken);
  if (!answer->program_warning.empty()) tell(job, turn, "checkpoint_program", 2, answer->program_warning);
  if (answer->newest) job.stats.note_bytes(answer->newest->bytes);
  if (!answer->warning.empty()) job.warnings.add(answer->warning);
  resume_evaluations(job, turn, *answer);
  on_kept(job, turn, *answer);
  if (!is_waited_for) return;
  job.stage.clear_deadline();
  if (job.stage.is(Stage::kFinalCut)) return end_last_step(job, turn);
  begin_with_newest(job, turn, *answer);
}

void review_folder(JobFacts& job, Turn& turn) {
  if (job.folder.ask_again && turn.now >= *job.folder.ask_again) ask_newest(job, turn);
}

void set_aside(JobFacts& job, Turn& turn, const std::string& damage) {
  job.folder.damage = damage;
  note_broken(job, turn, {job.folder.damage});
  job.stage.enter(Stage::kFind);
  job.stage.await_nobody();
  job.stage.set_deadline(turn.now + job.setup.timeouts.setup);
  job.stage.set_ticket(turn.next_ticket());
  turn.folder_work(job.setup.id, job.stage.ticket(), SetAside{job.generation.restore()->path, job.generation.mark()});
}

void close_folder(JobFacts& job, Turn& turn) {
  // The chief sends CloseFolder even if the folder isn't open yet, because an order to open it may be under way.
  if (job.setup.takes_checkpoints() || job.setup.has_init()) turn.actions.push_back(CloseFolder{job.setup.id});
  job.folder.is_open = false;
  job.folder.ask_again.reset();
}

}  // namespace disttrain::chiefd::flow
