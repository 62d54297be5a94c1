// The current job's curves so far, for the status page and for TensorBoard's event files in the job's checkpoint
// folder. Belongs to the chief's loop. Depends only on what it is shown; the writer has a thread of its own.
//
// Bounded by kMaxPoints. A point is taken every 0.1 s in a job's first seconds, later every second; when there are too
// many, every other point is dropped. Event files keep all points.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "chiefd/core/status.h"
#include "chiefd/curves/tensorboard_writer.h"
#include "common/time.h"

namespace disttrain::chiefd {

struct CurvePoint {
  std::uint64_t step = 0;
  std::int64_t wall_nanoseconds = 0;
  double loss = std::numeric_limits<double>::quiet_NaN();  // NaN: unknown
  double learning_rate = std::numeric_limits<double>::quiet_NaN();
  std::optional<double> steps_per_second{};  // since the last look
  std::optional<double> examples_per_second{};
};

class Curves {
 public:
  static constexpr std::size_t kMaxPoints = 1000;

  explicit Curves(std::function<void(const std::string&)> on_failed) : writer_(std::move(on_failed)) {}

  // Whether it is time for another look.
  bool is_due(Instant now) const { return now >= next_; }
  // Takes a point of the current job, or of the last. A job that doesn't train yet, also after a loss or a restart of
  // the chief, gives none.
  void look(Instant now, std::int64_t wall_nanoseconds, const JobStatus& status);
  // A rollback, or a checkpoint that the job begins with, drops the points after its step.
  void hear(const EventRecord& event);

  std::optional<JobId> job() const { return job_; }
  const std::vector<CurvePoint>& points() const { return points_; }
  const std::vector<EvaluationStatus>& evaluations() const { return evaluations_; }

 private:
  struct Seen {
    Instant at;
    std::uint64_t step = 0;
    std::uint64_t examples = 0;
  };

  void begin(Instant now, const JobStatus& status);
  void add_point(Instant now, std::int64_t wall_nanoseconds, const JobStatus& status);
  void add_evaluation(std::int64_t wall_nanoseconds, const EvaluationStatus& evaluation);
  void take_back(std::int64_t wall_nanoseconds, std::uint64_t step);
  void look_at(std::int64_t wall_nanoseconds, const EvaluationStatus& newest);
  void record(std::int64_t wall_nanoseconds, std::uint64_t step, const std::vector<Scalar>& scalars);
  void write(std::int64_t wall_nanoseconds, std::string record);

  TensorBoardWriter writer_;
  std::optional<JobId> job_;
  std::string folder_;          // "": no event files
  bool is_recording_ = false;   // a record of this job was written
  bool is_file_open_ = false;   // and its file hasn't been closed since
  std::uint64_t recorded_ = 0;  // only later steps give points
  Instant began_;
  Instant next_;
  std::optional<EventRecord> early_;  // a rollback of a job before its first look()
  std::optional<Seen> last_;          // none: the speed up to now is unknown
  std::vector<CurvePoint> points_;
  std::vector<EvaluationStatus> evaluations_;  // by step
};

}  // namespace disttrain::chiefd
