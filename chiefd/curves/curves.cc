#include "chiefd/curves/curves.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "common/checkpoint/job_folder.h"

namespace disttrain::chiefd {
namespace {

constexpr Duration kShortestInterval = std::chrono::milliseconds(100);
constexpr Duration kLongestInterval = std::chrono::seconds(1);

template <typename Point>
void thin_out(std::vector<Point>& points) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < points.size(); i += 2) points[kept++] = points[i];
  points.resize(kept);
}

std::uint64_t step_of(const CurvePoint& point) {
  return point.step;
}
std::uint64_t step_of(const EvaluationStatus& evaluation) {
  return evaluation.step.value;
}

template <typename Point>
void drop_after(std::vector<Point>& points, std::uint64_t step) {
  std::erase_if(points, [step](const Point& point) { return step_of(point) > step; });
}

void add_metrics(std::vector<Scalar>& scalars, const std::string& prefix, const std::vector<MetricValue>& metrics) {
  for (const MetricValue& metric : metrics)
    if (std::isfinite(metric.value)) scalars.push_back({prefix + metric.name, metric.value});
}

}  // namespace

void Curves::look(Instant now, std::int64_t wall_nanoseconds, const JobStatus& status) {
  if (job_ != status.job) begin(now, status);
  next_ = now + std::clamp<Duration>((now - began_) / 100, kShortestInterval, kLongestInterval);
  // Take no point while the job doesn't train. Its status then shows the step that it will begin with, or the newest
  // step that this chief knows of.
  if (status.part == JobPart::kInit || status.part == JobPart::kRestore) return;
  // A lower step than before means that the job has rolled back, even if no event said so.
  if (status.global_step < recorded_) take_back(wall_nanoseconds, status.global_step);
  if (status.global_step > recorded_) add_point(now, wall_nanoseconds, status);
  last_ = Seen{now, status.global_step, status.examples};
  if (status.evaluation) look_at(wall_nanoseconds, *status.evaluation);
  if (is_final(status.state) && std::exchange(is_file_open_, false)) writer_->close();
}

void Curves::look_at(std::int64_t wall_nanoseconds, const EvaluationStatus& newest) {
  const bool is_known = !evaluations_.empty() && evaluations_.back().step == newest.step &&
                        evaluations_.back().parameters_hash == newest.parameters_hash &&
                        evaluations_.back().final == newest.final;
  if (!is_known) add_evaluation(wall_nanoseconds, newest);
}

void Curves::hear(const EventRecord& event) {
  const bool takes_back = event.kind == "rolled_back" || event.kind == "restored";
  if (!takes_back) return;
  if (job_ == event.job)
    take_back(event.wall_nanoseconds, event.step);
  else
    early_ = event;
}

std::string Curves::folder_of(const JobStatus& status) {
  if (status.checkpoint_directory.empty()) return "";
  return status.checkpoint_directory + "/" + status.name + "/" + checkpoint::kCurvesName;
}

void Curves::begin(Instant now, const JobStatus& status) {
  job_ = status.job;
  folder_ = folder_of(status);
  change_writer();
  is_recording_ = is_file_open_ = false;
  recorded_ = 0;
  began_ = now;
  last_.reset();
  points_.clear();
  evaluations_.clear();
  const std::optional<EventRecord> early = std::exchange(early_, std::nullopt);
  if (early && early->job == job_) take_back(early->wall_nanoseconds, early->step);
}

void Curves::change_writer() {
  ended_writers_.remove_if([](const auto& writer) { return writer->is_over(); });
  if (writer_) {
    writer_->end();
    ended_writers_.push_back(std::move(writer_));
  }
  if (folder_.empty()) return;
  if (ended_writers_.size() < kMostEndedWriters)
    writer_ = std::make_unique<TensorBoardWriter>(folder_, on_failed_);
  else
    on_failed_("the event files of " + std::to_string(kMostEndedWriters) +
               " ended jobs still hang in their file systems: check these, and restart the chief");
}

void Curves::add_point(Instant now, std::int64_t wall_nanoseconds, const JobStatus& status) {
  CurvePoint point{.step = status.global_step,
                   .wall_nanoseconds = wall_nanoseconds,
                   .loss = status.loss.value_or(std::numeric_limits<double>::quiet_NaN()),
                   .learning_rate = status.learning_rate.value_or(std::numeric_limits<double>::quiet_NaN())};
  if (last_ && now > last_->at && last_->step <= status.global_step && last_->examples <= status.examples) {
    const double seconds = to_seconds(now - last_->at);
    point.steps_per_second = static_cast<double>(status.global_step - last_->step) / seconds;
    point.examples_per_second = static_cast<double>(status.examples - last_->examples) / seconds;
  }
  if (points_.size() >= kMaxPoints) thin_out(points_);
  points_.push_back(point);
  recorded_ = point.step;

  std::vector<Scalar> scalars;
  if (std::isfinite(point.loss)) scalars.push_back({"train/loss", point.loss});
  add_metrics(scalars, "train/", status.metrics);
  if (std::isfinite(point.learning_rate)) scalars.push_back({"train/learning_rate", point.learning_rate});
  if (point.steps_per_second) scalars.push_back({"train/steps_per_second", *point.steps_per_second});
  if (point.examples_per_second) scalars.push_back({"train/examples_per_second", *point.examples_per_second});
  record(wall_nanoseconds, point.step, scalars);
}

void Curves::add_evaluation(std::int64_t wall_nanoseconds, const EvaluationStatus& evaluation) {
  drop_after(evaluations_, evaluation.step.value);
  if (evaluations_.size() >= kMaxPoints) thin_out(evaluations_);
  evaluations_.push_back(evaluation);
  std::vector<Scalar> scalars;
  if (std::isfinite(evaluation.loss)) scalars.push_back({"evaluation/loss", evaluation.loss});
  add_metrics(scalars, "evaluation/", evaluation.metrics);
  record(wall_nanoseconds, evaluation.step.value, scalars);
}

void Curves::take_back(std::int64_t wall_nanoseconds, std::uint64_t step) {
  drop_after(points_, step);
  drop_after(evaluations_, step);
  recorded_ = step;
  last_.reset();
  if (folder_.empty()) return;
  write(wall_nanoseconds, restart_record(wall_nanoseconds, step + 1));
}

void Curves::record(std::int64_t wall_nanoseconds, std::uint64_t step, const std::vector<Scalar>& scalars) {
  if (folder_.empty()) return;
  // Tell TensorBoard to ignore what an earlier run or chief has recorded for this step and all later steps.
  if (!is_recording_) write(wall_nanoseconds, restart_record(wall_nanoseconds, step));
  write(wall_nanoseconds, scalars_record(wall_nanoseconds, step, scalars));
}

void Curves::write(std::int64_t wall_nanoseconds, std::string record) {
  if (!writer_) return;
  writer_->write(wall_nanoseconds, std::move(record));
  is_recording_ = is_file_open_ = true;
}

}  // namespace disttrain::chiefd
