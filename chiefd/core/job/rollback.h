// The rollback that a job is in, and how many it has had. A rollback begins with a loss and ends when the next
// generation trains. Pure bookkeeping: recovery.h and regathering.h decide.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "chiefd/core/restarts.h"
#include "common/messages/control.h"
#include "common/time.h"

namespace disttrain::chiefd {

struct Rollback {
  Cause cause;
  Instant began;
  Instant gathers_since;      // since when this chief gathers tasks
  Instant not_before;         // back-off
  Step step;                  // that the job had reached
  bool is_step_known = true;  // false: the job may have been further
  std::string shortage{};     // "waiting for ps/0": why the next generation hasn't begun
};

class Rollbacks {
 public:
  // The rollback that the job is in.
  const std::optional<Rollback>& current() const { return current_; }
  void begin(Rollback rollback) { current_ = std::move(rollback); }
  void explain(std::string shortage) { current_->shortage = std::move(shortage); }
  std::optional<Rollback> end() { return std::exchange(current_, std::nullopt); }

  // All rollbacks of the job, former chiefs' included. Part of the generation's record.
  std::uint32_t count() const { return count_; }
  void set_count(std::uint32_t count) { count_ = count; }
  // `fruitless`: this rollback lengthens the back-off of the next one, until note_advance().
  void count_one(bool fruitless) {
    ++count_;
    if (fruitless) ++fruitless_;
  }
  // Fruitless rollbacks since the last step or checkpoint that was further than all before.
  std::uint32_t fruitless() const { return fruitless_; }
  void note_advance() { fruitless_ = 0; }

  // Losses that count for job.max_restarts. Returns the losses within the window, this one included.
  std::size_t note_loss(Instant at, Duration window) { return losses_.note(at, window); }

  std::uint64_t steps_lost() const { return steps_lost_; }
  void lose_steps(std::uint64_t steps) { steps_lost_ += steps; }

 private:
  std::optional<Rollback> current_;
  Restarts losses_;
  std::uint32_t count_ = 0;
  std::uint32_t fruitless_ = 0;
  std::uint64_t steps_lost_ = 0;
};

}  // namespace disttrain::chiefd
