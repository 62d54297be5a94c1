// What a rule decides. A rule is a pure function of the facts, the tasks, the time, and in some cases an event. It
// changes nothing: the flow carries its verdict out (carry_out() of chiefd/core/job/flow/flow.h). No rule calls
// another.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "chiefd/core/job/facts/generation.h"
#include "chiefd/core/job/loss.h"
#include "chiefd/core/job/turn.h"
#include "chiefd/core/links.h"
#include "common/result.h"

namespace disttrain::chiefd {

// Nothing follows.
struct Stay {};

// ---- the job's stage

struct Fail {
  Error error;
  std::optional<TaskId> root{};  // the task to blame
};
// The job has lost what it can't go on without. chiefd/core/job/rules/recovery.h decides what follows.
struct Recover {
  Cause cause;
  Loss loss = Loss::kCounts;
};
// The next generation begins.
struct RollBack {
  Cause cause;
  Loss loss = Loss::kCounts;
};
// The job gathers its tasks again. It has no shards yet.
struct StartOver {};
struct Close {
  JobState end = JobState::kStopped;
  std::string reason;
};
// A job that is in the queue ends. No task holds anything of it.
struct Release {
  std::string reason;
};
// The workers end their steps, and then the job ends. `ends_by_itself`: they have done so, or will be told later.
struct StopSteps {
  std::string reason;
  bool ends_by_itself = false;
};
// The job is being stopped, and these workers don't end their steps.
struct StopWithout {
  std::vector<Member> workers;
  std::string why;
};
// All workers have finished, so the pacer sends its last report.
struct Settle {};
// Workers have finished, but records of lost workers are left. `roster`: the workers that haven't finished, which do
// the rest. Empty: all have, so all leave and come back as other members.
struct ShareRest {
  std::vector<Member> roster;
};
// In stage kEvaluate: the job waits for no evaluator any more.
struct FinishEvaluation {};
// The stage waits until this time, because somebody makes progress.
struct Extend {
  Instant until;
};
// The stage begins its wait again.
struct WaitAgain {
  Instant until;
};

// ---- pauses: all workers wait

// For this ps, which owns shards and is silent.
struct PauseForPs {
  Member ps;
  std::string reason;
};
// For workers, of which too few are left.
struct PauseForWorkers {
  std::string reason;
};
// Enough workers are there again.
struct EndShortage {
  std::string why;
};
// For the chief's own disk, which has written nothing for long.
struct PauseForDisk {
  std::string reason;
};
// The disk writes again. `why`: "" if the workers needn't hear of it at this stage.
struct EndDiskPause {
  std::string why;
};

// ---- the start

// The job waits for tasks. `is_enough`: those that it needs are there.
struct Await {
  std::string reason;
  bool is_enough = false;
};
// The job begins with these workers, of which one describes the model and the data.
struct Describe {
  std::vector<Member> workers;
  std::string warning{};  // "": none
};
// These workers of the new roster are asked to describe the model and the data, too.
struct AskOthers {
  std::vector<Member> roster;
  std::vector<Member> unasked;
};
// All workers of the roster have opened the job.
struct SetFirstRoster {};
// Some couldn't (StartFacts::could_not_open). The job rolls back, and begins again without them if it can.
struct StartWithOthers {
  Cause cause;
  Loss loss = Loss::kSpared;
};
// The job has lost a task before it had a generation. `counts`: for job.max_restarts.
struct GatherAgain {
  Cause cause;
  bool counts = false;
};

// ---- the next generation of a job that rolls back

// The same ps tasks own the shards, with the processes that are connected now. `forgets_links`: the broken links
// between them are tried again.
struct KeepOwners {
  bool forgets_links = false;
};
// Other ps tasks own the shards.
struct PlaceAnew {
  GenerationPlan::Placed placed;
};
// A ps is missing. `why`: why others can't take its shards; "" while the job waits for it anyway.
struct LackPs {
  std::string why{};
};
// The worker is asked to read the data and to build the model.
struct Invite {
  Member worker;
};
// These workers are in the next generation.
struct ChooseRoster {
  std::vector<Member> roster;
};
// The shards have memory for so many workers.
struct MakePlaces {
  std::uint32_t places = 0;
};
// The next generation can't begin yet. `lacks_memory`: the ps tasks that are there can't take the shards.
struct AwaitTasks {
  std::string shortage;
  bool lacks_memory = false;
};
// All that the next generation needs is there.
struct BeginNext {};

// ---- a worker

// The job goes on without this worker, which was in the roster.
struct Lose {
  Member worker;
  std::string why;
  Loss loss = Loss::kCounts;
};
// After the last step: the job ends without this worker.
struct EndWithout {
  Member worker;
  Loss loss = Loss::kCounts;
};
// In stage kReclaim: the job goes on with the tasks that are back.
struct Reclaim {};
// In stage kReclaim: this worker had come back, and is gone again.
struct AwaitAgain {
  Member worker;
};
// The worker's process stays out of the job.
struct LeaveOut {
  Member worker;
  std::string why;
};
// The worker doesn't join as long as this reason holds.
struct KeepOut {
  TaskId worker;
  std::string why;
};
// The worker may take part, but not yet.
struct LetIn {
  TaskId worker;
};
struct Join {
  Member worker;
};
// Another task may be the cause of the worker's failure to join, so it may try again.
struct Refuse {
  Member worker;
  std::string why;
};
// The job needs this worker, so it is asked again.
struct AskAgain {
  Member worker;
  std::string why;
};
// In stage kDescribe: these workers can't describe the model and the data.
struct DescribeWithout {
  std::vector<Member> workers;
  Error error;
};
// In stage kOpen: these workers can't take part in this start. `is_process`: their processes are to blame.
struct StartWithout {
  std::vector<Member> workers;
  Error error;
  bool is_process = false;
};
// The job rolls back at its start, and begins again without this worker if it can.
struct StartAgainWithout {
  Member worker;
  std::string why;
  Loss loss = Loss::kSpared;
};
// In stage kEvaluate: another worker evaluates. `error`: the worker's own program has failed; otherwise a link of it is
// broken.
struct EvaluateWithout {
  Member worker;
  std::optional<Error> error{};
};

// ---- checkpoints

// The shards cut at this step. Step 0: at once.
struct TakeCheckpoint {
  Step at;
};
// After the last step.
struct TakeLastCheckpoint {};
// There is no last checkpoint to take any more, so the parameters of the last step are evaluated.
struct EvaluateLast {};
// The attempt that is under way is given up, and the next one might fail for the same reason.
struct GiveUpAttempt {
  std::string why;
};
// The shards' files make a checkpoint.
struct Commit {};

// ---- other tasks

// Another task may be the cause of the failure. So the others are probed before this one is blamed.
struct Suspect {
  Member from;
  Error error;
};
// Most workers can't reach this ps. The job waits for their links.
struct WaitForLinks {
  TaskId ps;
};
// The job no longer waits for evaluators.
struct GiveUpEvaluators {
  std::string why;
};
// The checkpoint that the generation begins with is damaged.
struct SetCheckpointAside {
  std::string damage;
};
// The tasks that haven't released the job in time are left behind.
struct LeaveBehind {};

using Verdict =
    std::variant<Stay, Fail, Recover, RollBack, StartOver, Close, Release, StopSteps, StopWithout, Settle, ShareRest,
                 FinishEvaluation, Extend, WaitAgain, PauseForPs, PauseForWorkers, EndShortage, PauseForDisk,
                 EndDiskPause, Await, Describe, AskOthers, SetFirstRoster, StartWithOthers, GatherAgain, KeepOwners,
                 PlaceAnew, LackPs, Invite, ChooseRoster, MakePlaces, AwaitTasks, BeginNext, TakeCheckpoint,
                 TakeLastCheckpoint, EvaluateLast, GiveUpAttempt, Commit, Lose, EndWithout, Reclaim, AwaitAgain,
                 LeaveOut, KeepOut, LetIn, Join, Refuse, AskAgain, DescribeWithout, StartWithout, StartAgainWithout,
                 EvaluateWithout, Suspect, WaitForLinks, GiveUpEvaluators, SetCheckpointAside, LeaveBehind>;

}  // namespace disttrain::chiefd
