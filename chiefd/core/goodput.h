// What a job's time is used for. Each look() assigns the time since the previous one to what the job is doing:
//
//   init         until its first step
//   restore      from a loss, or another chief's start, to the first step after it
//   checkpoint   the last checkpoint and the one before a ps leaves, which all wait for; the others are cut while it
//                trains: what workers wait for them is sync
//   stall        paused; or for longer than `patience` neither a step nor a worker that computes, reads or evaluates
//   train, input, sync
//                the rest, in the proportion of what its workers spent since: of all their time together, compute and
//                evaluate are train; input is input; pull, push and wait are sync. The final evaluation is train.
//
// The uses add up to the time from the job's begin to its end. Workers report their phases with heartbeats. Training
// time that no report covers yet is kept, and divided at the next report.
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
  // Call in order of time. `patience`: [heartbeat] timeout.
  void look(Instant now, const JobStatus& status, Duration patience);
  Duration of(Use use) const { return times_[static_cast<std::size_t>(use)]; }

 private:
  // The workers' time since the previous look, by use.
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
  std::optional<Instant> worked_;  // when a worker was last seen to compute, read or evaluate, or the first look
  Duration undivided_{};
  std::map<TaskId, PhaseTimes> before_;
};

}  // namespace disttrain::chiefd
