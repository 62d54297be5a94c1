#include "chiefd/core/job/facts/progress.h"

#include <algorithm>
#include <utility>

#include "common/bounds.h"

namespace disttrain::chiefd {
namespace {

// Peers report each of these times, so the sum may be longer than the journal takes. REQUIRES: each is at most
// kMaxDuration.
Duration sum(Duration a, Duration b) {
  return std::min(a + b, kMaxDuration);
}

}  // namespace

bool Progress::note(Instant now, const PacerReport& report, Step first) {
  if (report.global_step < report_.global_step) return false;
  if (report.global_step > report_.global_step) {
    moved_at_ = now;
    first_loss_at_.reset();
    // The time of training has the evaluation only if a step that is measured has followed it.
    const Duration grown = std::max(report.training - report_.training, Duration::zero());
    evaluation_time_ = sum(evaluation_time_, std::min(std::exchange(unfollowed_, Duration::zero()), grown));
  }
  // The first report after a restart of the chief is only the baseline, because its examples were applied before the
  // restart.
  if (examples_reported_ && report.examples > *examples_reported_)
    examples_heard_ += report.examples - *examples_reported_;
  examples_reported_ = report.examples;
  report_ = report;
  has_heard_pacer_ = true;
  // Before the first step of a generation the pacer doesn't know the loss.
  if (has_stepped(first)) loss_ = report.loss;
  return true;
}

void Progress::excuse_loss(Instant now, Duration limit) {
  if (!first_loss_at_) first_loss_at_ = now;
  if (now - *first_loss_at_ < limit) moved_at_ = now;
}

bool Progress::note_furthest() {
  if (report_.global_step <= furthest_) return false;
  furthest_ = report_.global_step;
  return true;
}

void Progress::begin(const PacerReport& report) {
  report_ = report;
  examples_reported_ = report_.examples;
  // If a rollback has thrown away the parameters that were evaluated, the evaluation is dropped too.
  if (evaluation_ && evaluation_->step > report_.global_step) evaluation_.reset();
}

void Progress::drop_generation() {
  before_.time = sum(before_.time, report_.training);
  before_.steps += report_.measured_steps;
  before_.examples += report_.measured_examples;
  report_ = PacerReport();
  unfollowed_ = Duration::zero();
  has_heard_pacer_ = true;  // the chief knows at which step the next generation begins
}

void Progress::take_up(Step at_least, const Training& before) {
  before_ = before;
  has_heard_pacer_ = false;
  report_.global_step = at_least;
}

void Progress::recall(const EndRecord& end) {
  report_.global_step = end.step;
  report_.examples = end.examples;
  report_.training = end.training.time;
  report_.measured_steps = end.training.steps;
  report_.measured_examples = end.training.examples;
  report_.complete_epochs = end.epochs;
  report_.late = end.late;
  report_.skipped = end.skipped;
  report_.staleness = end.staleness;
  loss_ = end.loss;
  steps_at_end_ = end.steps_target;
  metrics_at_end_ = end.metrics;
  evaluation_ = end.evaluation;
}

Training Progress::training() const {
  Training all = before_;
  all.time = std::max(sum(all.time, report_.training) - evaluation_time_, Duration::zero());
  all.steps += report_.measured_steps;
  all.examples += report_.measured_examples;
  return all;
}

double Progress::training_seconds() const {
  return to_seconds(training().time);
}

void Progress::note_stalled(const Evaluated& evaluated) {
  if (evaluated.stalled_training) unfollowed_ = sum(unfollowed_, evaluated.took);
}

}  // namespace disttrain::chiefd
