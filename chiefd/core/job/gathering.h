// Starts a job, up to its first generation. The job waits for its tasks to connect, and one worker describes the model
// and the data. Then the chief opens the checkpoint folder, finds the first parameters, and places the model on the ps
// tasks.
#pragma once

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "chiefd/core/awaited.h"
#include "chiefd/core/job/turn.h"
#include "common/result.h"

namespace disttrain::chiefd {

class Candidates;
class CheckpointFolder;
class Condition;
class Ending;
class EventLog;
class GenerationPlan;
class Launch;
class Reachability;
class Recovery;
class StageWait;
class StartFailures;
class Workers;
struct JobParts;
struct JobSetup;

class Gathering {
 public:
  explicit Gathering(JobParts& parts);

  // Called when the job's turn has come.
  void begin(Turn& turn);
  // Called after a restart of the chief, if the job was gathering its tasks before. Begins again.
  void begin_again(Turn& turn);
  // Goes back to stage kGather. Call this only while the job has no shards.
  void resume(Turn& turn);
  // In stage kGather: goes on to kDescribe if enough tasks are connected.
  void gather(Turn& turn);
  // In stage kDescribe: a task has joined or is lost.
  void on_finding(Turn& turn, const Finding& finding);
  // In stage kDescribe: the worker has described the model and the data.
  void on_described(Turn& turn, const Member& from, const JobDescribed& described);
  // In stage kDescribe: the awaited worker can't describe the model and the data. Asks the other workers. If none of
  // them can, or too few of them are left, the job fails.
  void on_describe_failed(Turn& turn, const Member& from, const Error& error);
  // In stage kDescribe: the awaited workers have stood still for too long.
  void give_up_on_awaited(Turn& turn, const Error& error);
  // Called when the checkpoint folder was read.
  void find_init(Turn& turn);
  // In stage kInit: the shell has found the first parameters, or has failed.
  void on_init(Turn& turn, const Result<FolderAnswer>& answer);

  // True if the job can't begin because tasks of this role (kPs or kWorker) are absent.
  bool lacks(const Tasks& tasks, Role role) const;
  // Returns the absent tasks that the job waits for: tasks of the cluster file, and tasks that hold a fixed rank
  // (job.on_worker_loss = "wait") even if the file doesn't name them. If all of these are connected, but
  // job.min_workers asks for more workers, returns one entry for all missing workers, with their number.
  std::vector<Awaited> missing(const Tasks& tasks) const;

 private:
  std::vector<Member> workers_there(const Tasks& tasks) const;
  std::vector<Member> newcomers(const Tasks& tasks, std::size_t others) const;
  void describe(Turn& turn, std::vector<Member> workers);
  void ask_to_describe(Turn& turn, const std::vector<Member>& workers);
  std::size_t left_out_workers(const Tasks& tasks) const;
  void ask_folder(Turn& turn);
  void place_model(Turn& turn);

  const JobSetup& setup_;
  StageWait& stage_;
  Condition& condition_;
  EventLog& events_;
  GenerationPlan& generation_;
  Workers& workers_;
  Candidates& candidates_;
  const Reachability& reachability_;
  CheckpointFolder& folder_;
  Launch& launch_;
  Recovery& recovery_;
  StartFailures& start_failures_;
  Ending& ending_;

  Instant since_;                              // when the job began to gather its tasks
  std::optional<Instant> complete_enough_at_;  // since when the job has enough tasks to start
  // The workers that couldn't describe the model and the data, in the order of their answers. Each is left out as soon
  // as another worker has described them.
  std::vector<std::pair<Member, Error>> failures_;
};

}  // namespace disttrain::chiefd
