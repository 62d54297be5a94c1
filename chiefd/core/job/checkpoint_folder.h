// A job's checkpoint folder. The chief opens it and finds the newest checkpoint that verifies, and retries each second
// while that fails. The shell does the work (FolderWork); one answer at a time is awaited, by StageWait::ticket().
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
  // Why the folder can't be opened or read. "": it can.
  const std::string& error() const { return error_; }
  // The newest checkpoint that is known, whichever chief took it.
  const std::optional<CheckpointRecord>& newest() const { return newest_; }
  void set_newest(std::optional<CheckpointRecord> newest) { newest_ = std::move(newest); }
  // The newest generation with a checkpoint in the folder, readable or not.
  Generation newest_generation() const { return newest_generation_; }
  // The number in the folder. A ps that finds the same number has the same folder mounted.
  std::uint64_t mark() const { return mark_; }

  // Asks for the newest checkpoint; opens the folder first if it isn't open yet.
  void ask_newest(Turn& turn);
  void on_newest(Turn& turn, const Result<FolderAnswer>& answer);
  // At each tick: retries, a second after the folder couldn't be opened or read.
  void review(Turn& turn);
  void stop_asking() { ask_again_.reset(); }
  // A ps found the checkpoint damaged: sets it aside and looks for the newest of the others.
  void set_aside(Turn& turn, const std::string& damage);
  // The job ends: drops the folder's lock.
  void close(Turn& turn);

  // Why the folder hasn't been read, at a deadline. `within`: " for 120 s". An earlier error doesn't explain a request
  // that hangs, so the text names both.
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
  FinalCheckpoint& final_checkpoint_;
  Ending& ending_;

  bool is_open_ = false;
  std::optional<Instant> ask_again_;  // set after a failure
  Instant asked_;
  std::string error_;
  Generation newest_generation_;
  std::uint64_t mark_ = 0;
  std::optional<CheckpointRecord> newest_;
  std::string damage_;  // what a ps reported about the checkpoint set aside last
};

}  // namespace disttrain::chiefd
