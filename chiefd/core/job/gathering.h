// The start of a job, up to its first generation: its tasks gather, one worker describes the model and the data, the
// checkpoint folder is opened, the first parameters are found, and the model is placed on the ps tasks.
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
  // A former chief was gathering: begins again, with a new time limit.
  void begin_again(Turn& turn);
  // Goes back to kGather within the same time limit. Nothing may be placed yet.
  void resume(Turn& turn);
  // kGather: goes on when enough tasks are connected.
  void gather(Turn& turn);
  // kDescribe: a member was found or lost.
  void on_finding(Turn& turn, const Finding& finding);
  // kDescribe.
  void on_described(Turn& turn, const Member& from, const JobDescribed& described);
  // The checkpoint folder was read.
  void find_init(Turn& turn);
  // kInit.
  void on_init(Turn& turn, const Result<FolderAnswer>& answer);

  // A description takes longer, so a gathering after it may take until then, too.
  void extend(Instant until);
  // The absent tasks among those of the cluster file and those that hold a rank; the file needn't name the latter. If
  // all these are connected and job.min_workers asks for more workers: the number of those.
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

  Instant until_;                              // after this it doesn't gather again
  std::optional<Instant> complete_enough_at_;  // since when the tasks suffice to start
};

}  // namespace disttrain::chiefd
