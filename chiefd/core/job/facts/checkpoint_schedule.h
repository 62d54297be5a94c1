// Stores when a job's newest checkpoint was taken, at which step the next one is due, which attempts have failed, and
// whether the newest checkpoint was taken for a ps that leaves. chiefd/core/job/rules/checkpoints.h decides when one is
// taken.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "chiefd/core/job/setup.h"
#include "common/time.h"

namespace disttrain::chiefd {

class CheckpointSchedule {
 public:
  explicit CheckpointSchedule(const JobSetup& setup) : setup_(setup) {}

  // Where the next checkpoint by steps is due. Step 0 if checkpoint.every_steps is 0.
  Step next_due() const { return next_due_; }
  // Sets it to the first multiple of checkpoint.every_steps that is above `after`.
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
  Step next_due_;
  Instant next_try_;
  std::uint32_t failed_attempts_ = 0;  // in a row
  std::string error_;
  bool is_saved_ = false;
  std::uint32_t failed_saves_ = 0;
};

}  // namespace disttrain::chiefd
