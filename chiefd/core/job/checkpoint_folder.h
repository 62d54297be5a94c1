// A job's checkpoint folder: opened, read for the newest checkpoint that verifies, and asked again while it can't be.
// The shell does the work (FolderWork); one answer at a time is awaited, by StageWait::ticket().
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
  // Why, since it last could be opened and read. "": it can.
  const std::string& error() const { return error_; }
  // The newest that is known of, by whatever chief.
  const std::optional<CheckpointRecord>& newest() const { return newest_; }
  void set_newest(std::optional<CheckpointRecord> newest) { newest_ = std::move(newest); }
  // The newest generation in it, readable or not.
  Generation newest_generation() const { return newest_generation_; }
  // The number in it, for the ps tasks to find.
  std::uint64_t mark() const { return mark_; }

  // Asks what is in it; opens it first where it isn't open yet.
  void ask_newest(Turn& turn);
  void on_newest(Turn& turn, const Result<FolderAnswer>& answer);
  // At each tick: asks again, a second after it couldn't be opened or read.
  void review(Turn& turn);
  void stop_asking() { ask_again_.reset(); }
  // A ps found the checkpoint damaged: it is set aside, and the next one is looked for.
  void set_aside(Turn& turn, const std::string& damage);
  // The job ends: drops the folder's lock.
  void close(Turn& turn);

  // Why it hasn't been read, at a deadline. `within`: " for 120 s". An error of before says nothing of a request that
  // doesn't come back.
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
  std::optional<Instant> ask_again_;  // it couldn't be opened or read
  Instant asked_;
  std::string error_;
  Generation newest_generation_;
  std::uint64_t mark_ = 0;
  std::optional<CheckpointRecord> newest_;
  std::string damage_;  // what a ps said of the checkpoint that was set aside last
};

}  // namespace disttrain::chiefd
