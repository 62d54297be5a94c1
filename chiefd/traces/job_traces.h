// JobTraces: the traces of jobs with train.profile_steps, from the first piece of a task to the file. It collects a
// trace from the tasks' pieces and from what the chief itself does, and has it written on another thread.
//
// All calls come from the chief's loop.
#pragma once

#include <asio/io_context.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "chiefd/core/cluster.h"
#include "chiefd/traces/trace_collector.h"
#include "chiefd/traces/trace_file.h"

namespace disttrain::chiefd {

class JobTraces {
 public:
  // Calls `on_written` on the loop when a trace is written, can't be written, or has no events. Never from inside
  // another call. The loop must outlive this object.
  JobTraces(asio::io_context& loop, std::function<void(const TraceWritten&)> on_written);
  // Waits until all traces are written.
  ~JobTraces();
  JobTraces(const JobTraces&) = delete;

  // Call it at each tick. Sees which tasks train, and has a trace written if nothing more of it is due.
  void look(const Cluster& cluster);
  // A task's piece of a trace.
  void hear(const Cluster& cluster, const Member& from, const TraceEvents& piece);
  // The job has ended, so nobody records any more.
  void end(JobId job);

  // The trace shows these too: they are what the chief itself does.
  void note(const EventRecord& event);
  void note(const Member& from, const Evaluated& evaluated);
  void note(const FolderWork& work);
  void note(const FolderDone& done);

  // True if a trace of the job is being collected, or is being written and isn't late.
  bool awaits(JobId job) const;

 private:
  // A trace that is being written now.
  struct Written {
    JobId job;
    Instant deadline;  // until then a client that waits for the job's end waits for the trace too
  };

  void watch(const Cluster& cluster);
  void take();
  // Posts the end of a trace to the loop. Any thread may call it.
  void post(TraceWritten written);

  asio::io_context& loop_;
  const std::function<void(const TraceWritten&)> on_written_;
  TraceCollector collector_;
  std::vector<Written> written_;
  std::optional<JobId> watched_;  // the job that watch() has seen last, and whether it has a profile
  bool is_profiled_ = false;
  Instant attempt_began_;  // the newest checkpoint attempt
  Ticket commit_ticket_;   // of its commit
  // Posted functions hold a weak pointer to it, and do nothing once this object is gone.
  const std::shared_ptr<bool> is_alive_ = std::make_shared<bool>(true);
  TraceWriter writer_;  // the last member, because its threads use the others
};

}  // namespace disttrain::chiefd
