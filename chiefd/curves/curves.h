// The curves of the current job: its loss, learning rate and speed by step. The status page shows them, and
// TensorBoard's event files in the job's checkpoint folder record them. Only the chief's loop uses this class. For each
// job another thread writes the event files (tensorboard_writer.h).
//
// Keeps at most kMaxPoints points. It takes a point every 0.1 s in the first seconds of a job, and later one every
// second. When there are too many, it drops every other point. The event files keep all points.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <list>
#include <memory>
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
  std::optional<double> steps_per_second{};  // since the previous look()
  std::optional<double> examples_per_second{};
};

class Curves {
 public:
  static constexpr std::size_t kMaxPoints = 1000;

  // The most threads of jobs that have ended. They end soon, except on a file system that hangs. If there are so many,
  // a job's event files aren't written.
  static constexpr std::size_t kMostEndedWriters = 16;

  // A thread calls `on_failed` with the reason if event files can't be written.
  explicit Curves(std::function<void(const std::string&)> on_failed) : on_failed_(std::move(on_failed)) {}

  // Returns true if look() is due again.
  bool is_due(Instant now) const { return now >= next_; }
  // Takes a point of the job with this status. Takes none before the job's first step, nor before its first step after
  // a loss or a restart of the chief.
  void look(Instant now, std::int64_t wall_nanoseconds, const JobStatus& status);
  // Notes an event. If the event says that a job rolled back to a checkpoint, or began with one, drops the points after
  // the checkpoint's step.
  void hear(const EventRecord& event);

  // The folder of the event files of a job with this status; "": the job has none.
  static std::string folder_of(const JobStatus& status);

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

  void change_writer();

  const std::function<void(const std::string&)> on_failed_;
  std::unique_ptr<TensorBoardWriter> writer_;                    // null: the job has no event files
  std::list<std::unique_ptr<TensorBoardWriter>> ended_writers_;  // of former jobs
  std::optional<JobId> job_;
  std::string folder_;          // "": no event files
  bool is_recording_ = false;   // true: a record of this job was written
  bool is_file_open_ = false;   // true: the file of this job's records is still open
  std::uint64_t recorded_ = 0;  // the step of the newest point
  Instant began_;
  Instant next_;
  // An event that came before look() saw the event's job. The event says that this job rolled back, or began with a
  // checkpoint.
  std::optional<EventRecord> early_;
  // The job at the previous look(). None: the next point has no speed, because the job has just begun or rolled back.
  std::optional<Seen> last_;
  std::vector<CurvePoint> points_;
  std::vector<EvaluationStatus> evaluations_;  // by step
};

}  // namespace disttrain::chiefd
