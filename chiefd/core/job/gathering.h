// The start of a job, up to its first generation: its tasks gather, one worker describes what it trains, the checkpoint
// folder is opened, the first parameters are found, the model is placed.
#pragma once

#include <optional>
#include <vector>

#include "chiefd/core/awaited.h"
#include "chiefd/core/job/turn.h"

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
class Workers;
struct JobParts;
struct JobSetup;

class Gathering {
 public:
  explicit Gathering(JobParts& parts);

  // The job's turn has come.
  void begin(Turn& turn);
  // A chief before was at it: anew, with a limit of its own.
  void begin_again(Turn& turn);
  // Goes back to it within the limit that began before: nothing was placed yet.
  void resume(Turn& turn);
  // kGather: looks who is there, and goes on when that is enough.
  void gather(Turn& turn);
  // kDescribe: a member was found or lost.
  void on_finding(Turn& turn, const Finding& finding);
  // kDescribe.
  void on_described(Turn& turn, const Member& from, const JobDescribed& described);
  // The checkpoint folder was read.
  void find_init(Turn& turn);
  // kInit.
  void on_init(Turn& turn, const Result<FolderAnswer>& answer);

  // A description takes longer: so may the gathering after it.
  void extend(Instant until);
  // All tasks of the cluster file, and each rank: a rank may be of a task that the file doesn't name. If these are
  // there and job.min_workers asks for more, so many.
  std::vector<Awaited> missing(const Tasks& tasks) const;

 private:
  void describe(Turn& turn, const std::vector<Member>& workers);
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
  Ending& ending_;

  Instant until_;                              // then it doesn't begin again with others
  std::optional<Instant> complete_enough_at_;  // since when there are tasks enough to start
};

}  // namespace disttrain::chiefd
