// WorkerFigures: the counts of a worker for its current job, which its metrics show. The step thread updates them and
// publishes a copy up to ten times a second.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>

#include "common/histogram.h"
#include "common/messages/control.h"
#include "common/time.h"

namespace disttrain::workerd {

// A step has five phases, Phase::kInput to Phase::kWait. step_phase(i) is the phase with index i.
inline constexpr std::size_t kStepPhases = 5;
constexpr Phase step_phase(std::size_t i) {
  return static_cast<Phase>(static_cast<std::size_t>(Phase::kInput) + i);
}

enum class DataProblem : std::uint8_t { kMissing, kPermission, kCorrupt, kUnfit };
inline constexpr std::size_t kDataProblems = 4;

struct WorkerFigures {
  std::string job;  // the job's name; "" before the first job
  std::uint64_t steps = 0;
  std::uint64_t examples = 0;
  std::uint64_t nonfinite = 0;  // steps that a shard skipped because this worker's loss or gradient wasn't finite
  std::array<SecondsHistogram, kStepPhases> phases;
  double loss = std::numeric_limits<double>::quiet_NaN();  // NaN before the first step

  std::uint64_t records = 0;
  std::uint64_t bytes_read = 0;
  std::array<std::uint64_t, kDataProblems> data_errors{};
  std::uint64_t batches_ready = 0;
  Duration stalled{};
  DataTimes stages;  // empty for a data set in memory
};

}  // namespace disttrain::workerd
