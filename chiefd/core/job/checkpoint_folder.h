// A job's checkpoint folder. The chief opens the folder and finds the newest checkpoint that is complete and undamaged.
// If the folder can't be opened or read, the chief tries again after a second. The shell does the slow work
// (FolderWork). This class waits for only one answer at a time: the answer that carries StageWait::ticket().
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "chiefd/core/job/turn.h"
#include "common/result.h"

namespace disttrain::chiefd {

class CheckpointStats;
class Condition;
class Ending;
class Evaluators;
class EventLog;
class FinalCheckpoint;
class Gathering;
class GenerationPlan;
class Launch;
class StageWait;
struct JobParts;
struct JobSetup;

class CheckpointFolder {
 public:
  explicit CheckpointFolder(JobParts& parts);

  bool is_open() const { return is_open_; }
  // Why the folder can't be opened or read. Empty if it can.
  const std::string& error() const { return error_; }
  // The newest checkpoint that the chief knows of. It may be from a time before the chief was restarted.
  const std::optional<CheckpointRecord>& newest() const { return newest_; }
  void set_newest(std::optional<CheckpointRecord> newest) { newest_ = std::move(newest); }
  // The newest generation that has a checkpoint in the folder, even if that checkpoint can't be read.
  Generation newest_generation() const { return newest_generation_; }
  // The number that the chief wrote into the folder. A ps that reads the same number has the same folder mounted.
  std::uint64_t mark() const { return mark_; }

  // Asks the shell for the newest checkpoint. If the folder isn't open yet, the shell opens it first.
  void ask_newest(Turn& turn);
  void on_newest(Turn& turn, const Result<FolderAnswer>& answer);
  // Called at each tick. If the folder couldn't be opened or read, asks the shell again after one second.
  void review(Turn& turn);
  void stop_asking() { ask_again_.reset(); }
  // Called when a ps has found the checkpoint damaged. Sets that checkpoint aside and looks for the newest of the other
  // checkpoints.
  void set_aside(Turn& turn, const std::string& damage);
  // Called when the job ends. Releases the lock on the folder.
  void close(Turn& turn);

  // Called at a deadline. Returns why the folder hasn't been read yet. `within` goes into that text, for example
  // " for 120 s". If the last request to the shell hangs, the text first says so. Then it gives the error of the
  // previous request.
  std::string problem(Instant now, const std::string& within) const;

 private:
  void on_failure(Turn& turn, const Error& error, bool is_waited_for);
  void begin_with(Turn& turn, const FolderAnswer& answer);
  void note_broken(Turn& turn, const std::vector<std::string>& broken);
  Error nothing_left(const FolderAnswer& answer) const;

  const JobSetup& setup_;
  StageWait& stage_;
  EventLog& events_;
  Condition& condition_;
  GenerationPlan& generation_;
  CheckpointStats& stats_;
  Gathering& gathering_;
  Launch& launch_;
  Evaluators& evaluators_;
  FinalCheckpoint& final_checkpoint_;
  Ending& ending_;

  bool is_open_ = false;
  std::optional<Instant> ask_again_;  // set after a failure
  Instant asked_;
  std::string error_;
  Generation newest_generation_;
  std::uint64_t mark_ = 0;
  std::optional<CheckpointRecord> newest_;
  std::string damage_;  // a ps's report about the checkpoint that was set aside last
};

}  // namespace disttrain::chiefd
