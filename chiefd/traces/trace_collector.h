// Collects the events that the tasks of a job send for train.profile_steps, until the trace can be written: the events
// of all living tasks are there, or the deadline has passed. A task that is late costs its own part of the trace, never
// the whole trace. Pure: the chief's loop owns it and tells it the time.
//
// If the job rolls back before its trace is written, the collector begins anew with the new generation.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "chiefd/traces/trace_book.h"
#include "common/ids.h"
#include "common/messages/trace.h"

namespace disttrain::chiefd {

class TraceCollector {
 public:
  // How long the collector waits for the next piece after the job's end. On a slow machine pieces come late, so each
  // piece begins this time anew, for at most RunningJob::patience after the job's end.
  static constexpr Duration kPatienceAtEnd = std::chrono::seconds(2);
  // The most events of a trace: 128 MiB. Further ones are dropped and counted.
  static constexpr std::size_t kMaxEvents = std::size_t{1} << 21;
  // The most events of the chief that are kept for the next trace. If there are more, the oldest are dropped.
  static constexpr std::size_t kMaxChiefEvents = 1000;

  // The job that runs now.
  struct RunningJob {
    JobId job;
    Generation generation;
    std::string name;
    Mode mode = Mode::kAsync;
    std::array<std::uint64_t, 2> steps{};  // TrainSection::profile_steps; {0, 0}: none
    std::string folder;                    // of TensorBoard's event files
    // how long the collector waits for the other tasks after the first piece has come: job.stall_timeout, because in
    // async a task may be a long step behind
    Duration patience = std::chrono::seconds(60);
    Step reached;                // the newest step that the chief knows of
    std::set<TaskId> members{};  // the tasks that the job uses, also those that are lost
    std::set<TaskId> living{};   // those of them that are connected
  };
  // Call it regularly while a job runs, and before a task's first piece is heard.
  void watch(const RunningJob& job);
  void hear(Instant now, TaskId from, TraceEvents piece);
  void note(ChiefEvent event);
  // The job has ended, so nobody records any more. If the job has reached its first step and has no trace yet, take()
  // returns a book, even if no event comes.
  void end(Instant now, JobId job);

  // True from the first event, or from the job's end, until take() has returned the job's trace.
  bool is_collecting(JobId job) const { return job_.job == job && (events_ > 0 || ended_); }
  // The whole trace, once: when nothing more is due.
  std::optional<TraceBook> take(Instant now);

 private:
  void begin_anew();
  bool is_complete() const;
  TraceBook book();

  RunningJob job_;
  std::set<TaskId> seen_;  // the members since the job was before the first of the steps
  std::map<TaskId, TaskTrace> traces_;
  std::map<TaskId, std::uint32_t> next_piece_;  // of each task, the number of the next piece
  std::size_t events_ = 0;
  std::uint64_t dropped_ = 0;
  Instant deadline_;
  std::optional<Instant> ended_;  // when the job ended; none: it runs, or nothing more is due
  Generation written_;            // the generation whose trace was taken; its late pieces are ignored
  std::deque<ChiefEvent> chief_;
};

}  // namespace disttrain::chiefd
