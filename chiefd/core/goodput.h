// Measures what a job's time is used for. Each call of look() assigns the time since the previous call to one of these
// uses:
//
//   init         The job hasn't made its first step yet.
//   restore      The job has had a loss, or another chief has started, and no step has followed yet.
//   checkpoint   All workers wait for a checkpoint: the last one of the job, or the one before a ps leaves. Other
//                checkpoints are taken while the job trains. The time that workers wait for those counts as sync.
//   stall        The job is paused, or for longer than `patience` it has made no step and no worker has computed, read
//                data or evaluated.
//   train, input, sync
//                All other time is divided into these three, in proportion to the time that all workers together have
//                spent in their phases. The phases compute and evaluate count as train, input as input, and pull, push
//                and wait as sync. The final evaluation counts as train.
//
// The uses add up to the time from the job's begin to its end. Workers report the times of their phases with
// heartbeats. So look() keeps the time of training until the next report, and divides it then.
#pragma once

#include <array>
#include <map>
#include <optional>

#include "chiefd/core/status.h"
#include "common/time.h"

namespace disttrain::chiefd {

enum class Use : std::uint8_t { kTrain, kInput, kSync, kCheckpoint, kRestore, kStall, kInit };
inline constexpr std::size_t kUses = 7;
// "train", "input", ...
const char* to_string(Use use);

// The uses of one job's time.
class Goodput {
 public:
  // Call this in the order of time. `patience` is the heartbeat timeout.
  void look(Instant now, const JobStatus& status, Duration patience);
  Duration of(Use use) const { return times_[static_cast<std::size_t>(use)]; }

 private:
  // The time that all workers together have spent on each use since the previous look().
  struct Shares {
    Duration train{};
    Duration input{};
    Duration sync{};
  };
  Shares shares_since(const JobStatus& status);
  void divide(const Shares& shares);
  Duration& at(Use use) { return times_[static_cast<std::size_t>(use)]; }

  std::array<Duration, kUses> times_{};
  std::optional<Instant> last_;
  // When look() last saw a worker compute, read data or evaluate. Before that, the time of the first look().
  std::optional<Instant> worked_;
  Duration undivided_{};  // the time of training that isn't divided yet
  std::map<TaskId, PhaseTimes> before_;
};

}  // namespace disttrain::chiefd
