// Decides when a job's next checkpoint is due: by time, by steps, or because a client asks. It also stores which
// attempts have failed, and whether the newest checkpoint was taken for a ps that leaves.
// chiefd/core/job/flow/checkpoints.cc takes the checkpoints.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "chiefd/core/job/facts/progress.h"
#include "chiefd/core/job/setup.h"
#include "common/time.h"

namespace disttrain::chiefd {

class CheckpointSchedule {
 public:
  explicit CheckpointSchedule(const JobSetup& setup) : setup_(setup) {}

  // If a checkpoint is due, returns the step at which the shards cut. Step 0 means that they cut at once. If no
  // checkpoint is due, returns none. `is_wanted` is true if a client asks for a checkpoint.
  std::optional<Step> due(Instant now, const Progress& progress, bool is_wanted) const;
  // Sets when the next checkpoint by steps is due: at the first multiple of checkpoint.every_steps that is above
  // `after`.
  void set_next_due(Step after);
  // When the newest checkpoint was taken. Before the first checkpoint: when training began. Before training: Instant().
  Instant newest_at() const { return newest_at_; }
  bool has_begun() const { return newest_at_.time_since_epoch().count() != 0; }
  void begin(Instant now) { newest_at_ = now; }

  // A pause follows each attempt that was given up. Returns false during this pause.
  bool may_try(Instant now) const { return now >= next_try_; }
  void try_at(Instant when) { next_try_ = when; }
  void note_taken(Instant began, Step step);
  void note_abandoned(Instant now);
  // Notes a failed attempt. Each failure in a row makes the pause before the next attempt longer. `holds` is true if
  // the attempt was for a ps that leaves.
  void note_failed(const std::string& why, bool holds);
  void forget_failures() { failed_attempts_ = 0; }
  // Why the newest attempt failed. Empty if no attempt has failed since the last checkpoint was taken.
  const std::string& error() const { return error_; }

  // True if the newest checkpoint was taken for a ps that leaves. The shards have applied nothing since then.
  bool is_saved() const { return is_saved_; }
  void set_saved(bool is_saved) { is_saved_ = is_saved; }
  // How many attempts for a ps that leaves have failed in this generation.
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
