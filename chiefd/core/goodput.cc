#include "chiefd/core/goodput.h"

#include <algorithm>
#include <utility>

namespace disttrain::chiefd {

namespace {

// Returns true if a worker computes, reads data or evaluates. If one does, the job isn't stalled, even if a step takes
// long.
bool any_works(const JobStatus& status) {
  return std::any_of(status.tasks.begin(), status.tasks.end(), [](const TaskStatus& task) {
    const bool works = task.phase == Phase::kCompute || task.phase == Phase::kInput || task.phase == Phase::kEvaluate;
    return works && task.state == TaskState::kRunning;
  });
}

// Returns the use to which look() assigns the time since its previous call. kTrain stands for train, input and sync
// together. None: the job waits for its turn or is ending, so its time isn't counted.
std::optional<Use> use_of(const JobStatus& status, bool is_late) {
  switch (status.part) {
    case JobPart::kNone:
      return std::nullopt;
    case JobPart::kInit:
      return Use::kInit;
    case JobPart::kRestore:
      return Use::kRestore;
    case JobPart::kCheckpoint:
      return Use::kCheckpoint;
    case JobPart::kEvaluate:
      return Use::kTrain;
    case JobPart::kTrain:
      break;
  }
  return status.state == JobState::kPaused || is_late ? Use::kStall : Use::kTrain;
}

}  // namespace

const char* to_string(Use use) {
  constexpr std::array<const char*, kUses> kNames = {"train",   "input", "sync", "checkpoint",
                                                     "restore", "stall", "init"};
  return kNames[static_cast<std::size_t>(use)];
}

void Goodput::look(Instant now, const JobStatus& status, Duration patience) {
  const Duration elapsed = last_ ? now - *last_ : Duration::zero();
  last_ = now;
  if (!worked_ || any_works(status)) worked_ = now;
  // Count `patience` only from the end of the workers' last work, because a computation may take longer than
  // `patience`, and the exchange after it needs time too.
  const bool is_late = status.progress_age && *status.progress_age > patience && now - *worked_ > patience;
  const Shares shares = shares_since(status);
  const std::optional<Use> use = use_of(status, is_late);
  if (use == Use::kTrain && status.part == JobPart::kTrain)
    undivided_ += elapsed;
  else if (use)
    at(*use) += elapsed;
  divide(shares);
  // The job has ended, so no other report will come. Count the time that isn't divided yet as train.
  if (!use) at(Use::kTrain) += std::exchange(undivided_, Duration::zero());
}

// The time that the workers have spent on each use since the previous call. A worker's phase times start at 0 again
// with each process and with each generation, so a phase time that has become smaller counts as unchanged.
Goodput::Shares Goodput::shares_since(const JobStatus& status) {
  Shares shares;
  for (const TaskStatus& task : status.tasks) {
    if (task.figures.phase_times.size() < static_cast<std::size_t>(kPhases)) continue;
    const PhaseTimes before = before_[task.task];
    const auto since = [&](Phase phase) {
      const auto i = static_cast<std::size_t>(phase);
      const Duration known = i < before.size() ? before[i] : Duration::zero();
      return task.figures.phase_times[i] >= known ? task.figures.phase_times[i] - known : Duration::zero();
    };
    shares.train += since(Phase::kCompute) + since(Phase::kEvaluate);
    shares.input += since(Phase::kInput);
    shares.sync += since(Phase::kPull) + since(Phase::kPush) + since(Phase::kWait);
    before_[task.task] = task.figures.phase_times;
  }
  return shares;
}

void Goodput::divide(const Shares& shares) {
  const double all = to_seconds(shares.train + shares.input + shares.sync);
  if (all <= 0.0) return;
  const auto part = [this, all](Duration share) {
    const double nanoseconds = static_cast<double>(undivided_.count()) * to_seconds(share) / all;
    return Duration(static_cast<Duration::rep>(nanoseconds));
  };
  const Duration input = part(shares.input);
  const Duration sync = part(shares.sync);
  at(Use::kInput) += input;
  at(Use::kSync) += sync;
  at(Use::kTrain) += undivided_ - input - sync;
  undivided_ = Duration::zero();
}

}  // namespace disttrain::chiefd
