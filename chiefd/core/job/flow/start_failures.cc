// A worker can't take part in the job's start: it fails or is lost before its generation trains. If enough other
// workers are there, the job starts without this worker. An example with job.min_workers = 1:
//
//   1. The chief tells worker/0, worker/1 and worker/2 to open the job. worker/1 has too little memory, and fails.
//   2. worker/0 and worker/2 open the job. Nobody is awaited any more.
//   3. The job rolls back and starts again with worker/0 and worker/2. It loses no step, because this generation hasn't
//      trained. worker/1 is left out until its process is another one.
//
// The chief waits in step 2, so that one rollback is enough if several workers fail.
#include "chiefd/core/job/flow/flow.h"

#include <string>
#include <utility>
#include <vector>

namespace disttrain::chiefd::flow {

void note_start_failure(JobFacts& job, Turn& turn, const Member& worker, const Error& error, bool is_process) {
  job.start.could_not_open[worker] = StartFacts::Failure{error, is_process};
  job.workers.mark_lost(worker);
  if (job.stage.answered(worker)) advance_open(job, turn);
}

void start_with_others(JobFacts& job, Turn& turn, const StartWithOthers& verdict) {
  settle_start_failures(job, turn);
  recover(job, turn, verdict.cause, verdict.loss);
}

// Even if another process of the task joins at once, the next generation starts without it if it can.
void settle_start_failures(JobFacts& job, Turn& turn) {
  for (const auto& [worker, failure] : std::exchange(job.start.could_not_open, {})) {
    job.candidates.note_lost_at_start(worker.task);
    if (failure.is_process)
      leave_out(job, turn, worker, failure.error.message);
    else
      tell_loss(job, turn, worker, failure.error.message, Loss::kCounts);
  }
}

// A worker that has failed may still hold memory of the job, and one that hangs ends its process.
void leave_out(JobFacts& job, Turn& turn, const Member& worker, const std::string& why) {
  const Task* task = turn.tasks.find(worker.task);
  if (task == nullptr || task->member != worker) return;
  job.candidates.leave_out(*task, "can't take part in the job until its process is another one: " + why);
  tell(job, turn, "worker_refused", 2, to_string(worker.task) + " can't take part: " + why, worker.task);
  job.warnings.add("goes on without " + to_string(worker.task) + ": " + why);
  if (turn.tasks.is_current(worker))
    turn.send(worker.task,
              CloseJob{job.setup.id, job.generation.number(), "the job goes on without this task: " + why, true});
}

}  // namespace disttrain::chiefd::flow
