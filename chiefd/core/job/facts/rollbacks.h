// Stores the rollback that a job is in, and the number of its rollbacks. A rollback begins when a generation can't go
// on, for example after the loss of a ps. The rollback ends when the next generation trains. This class decides
// nothing. chiefd/core/job/rules/recovery.h decides.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "chiefd/core/job/loss.h"
#include "chiefd/core/restarts.h"
#include "common/messages/control.h"
#include "common/time.h"

namespace disttrain::chiefd {

struct Rollback {
  Cause cause;
  Instant began;
  Instant gathers_since;      // when this chief began to gather tasks
  Instant not_before;         // the next generation doesn't begin earlier (back-off)
  Step step;                  // the last step that the job had reached
  bool is_step_known = true;  // false: the job may have reached a later step
  std::string shortage{};     // why the next generation hasn't begun: "waiting for ps/0"
};

class Rollbacks {
 public:
  // The rollback that the job is in. None if the job isn't rolling back.
  const std::optional<Rollback>& current() const { return current_; }
  void begin(Rollback rollback) { current_ = std::move(rollback); }
  void explain(std::string shortage) { current_->shortage = std::move(shortage); }
  std::optional<Rollback> end() { return std::exchange(current_, std::nullopt); }

  // The number of all rollbacks of the job, also of those before a restart of the chief. The record of the generation
  // contains this number.
  std::uint32_t count() const { return count_; }
  void set_count(std::uint32_t count) { count_ = count; }
  // Counts a rollback. If its cause isn't a task that was told to end, the back-off of the next rollback is longer,
  // until note_advance() is called.
  void count_one(Loss loss) {
    ++count_;
    if (loss != Loss::kLeft) ++fruitless_;
    if (loss == Loss::kCounts || loss == Loss::kSpared) ++fruitless_losses_;
  }
  // The number of fruitless rollbacks since the job last advanced. A job advances when it passes its furthest step, or
  // when it takes a checkpoint of a later step than any before.
  std::uint32_t fruitless() const { return fruitless_; }
  // Those of them that a task has caused, and not a link.
  std::uint32_t fruitless_losses() const { return fruitless_losses_; }
  void note_advance() { fruitless_ = fruitless_losses_ = 0; }

  // Notes a loss that counts for job.max_restarts. Returns the number of losses within the window, this one included.
  std::size_t note_loss(Instant at, Duration window) { return losses_.note(at, window); }

  std::uint64_t steps_lost() const { return steps_lost_; }
  void lose_steps(std::uint64_t steps) { steps_lost_ += steps; }

 private:
  std::optional<Rollback> current_;
  Restarts losses_;
  std::uint32_t count_ = 0;
  std::uint32_t fruitless_ = 0;
  std::uint32_t fruitless_losses_ = 0;
  std::uint64_t steps_lost_ = 0;
};

}  // namespace disttrain::chiefd
