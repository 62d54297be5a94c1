// When a job's next checkpoint is due: by time, by steps, because a client asks, or because a ps leaves. Pure
// bookkeeping and decisions; checkpointing.h takes the checkpoints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "chiefd/core/job/progress.h"
#include "chiefd/core/job/setup.h"
#include "common/time.h"

namespace disttrain::chiefd {

class CheckpointSchedule {
 public:
  explicit CheckpointSchedule(const JobSetup& setup) : setup_(setup) {}

  // The step at which a checkpoint is due; 0: now; none: no checkpoint is due. `is_wanted`: a client asks for one.
  std::optional<Step> due(Instant now, const Progress& progress, bool is_wanted) const;
  // The next checkpoint by steps is due at the first multiple of checkpoint.every_steps after this step.
  void set_next_due(Step after);
  // When the newest checkpoint was taken, or training began. Instant(): neither has happened.
  Instant newest_at() const { return newest_at_; }
  bool has_begun() const { return newest_at_.time_since_epoch().count() != 0; }
  void begin(Instant now) { newest_at_ = now; }

  // False: the pause after the last attempt isn't over.
  bool may_try(Instant now) const { return now >= next_try_; }
  void try_at(Instant when) { next_try_ = when; }
  void note_taken(Instant began, Step step);
  void note_abandoned(Instant now);
  // `holds`: the attempt was for a ps that leaves. Each failure in a row makes the pause before the next attempt
  // longer.
  void note_failed(const std::string& why, bool holds);
  void forget_failures() { failed_attempts_ = 0; }
  // The newest failure since the last checkpoint was taken. "": there was none.
  const std::string& error() const { return error_; }

  // The shards of this generation have applied nothing since the newest checkpoint.
  bool is_saved() const { return is_saved_; }
  void set_saved(bool is_saved) { is_saved_ = is_saved; }
  // Failed attempts of this generation to reach that.
  std::uint32_t failed_saves() const { return failed_saves_; }
  void drop_generation();

 private:
  const JobSetup& setup_;
  Instant newest_at_;
  std::uint64_t next_due_ = 0;  // global step
  Instant next_try_;
  std::uint32_t failed_attempts_ = 0;  // in a row
  std::string error_;
  bool is_saved_ = false;
  std::uint32_t failed_saves_ = 0;
};

}  // namespace disttrain::chiefd
