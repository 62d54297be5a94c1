// A small trace for tests: a worker pushes a bucket, a shard of ps/0 applies it, and the answer arrives.
#pragma once

#include <chrono>
#include <vector>

#include "chiefd/traces/trace_book.h"

namespace disttrain::chiefd::test {

// `us` microseconds of a clock.
inline Instant at(std::int64_t us) {
  return Instant(std::chrono::hours(1) + std::chrono::microseconds(us));
}

inline constexpr Incarnation kWorker{42};

// An event of frame `frame` of worker/0 to shard 0.
inline TraceEvent of_frame(TraceKind kind, std::int64_t begin, std::int64_t end, std::uint64_t frame = 1,
                           std::uint32_t bucket = 0, std::uint64_t step = 1) {
  return {.begin = at(begin),
          .end = at(end),
          .step = step,
          .incarnation = kWorker,
          .sequence = Sequence(frame),
          .bytes = 400,
          .bucket = BucketId(bucket),
          .worker = 0,
          .kind = kind};
}

inline TaskTrace trace_of(Role role, std::vector<TraceEvent> events, Duration offset = {}) {
  TaskTrace trace;
  trace.task = TaskId{role, 0};
  trace.clock = ClockOffset{offset, std::chrono::microseconds(1)};
  trace.is_whole = true;
  trace.events = std::move(events);
  return trace;
}

inline TraceBook book_of(std::vector<TaskTrace> tasks, Mode mode = Mode::kAsync) {
  TraceBook book;
  book.job = JobId(7);
  book.name = "digits";
  book.mode = mode;
  book.steps = {1, 2};
  book.tasks = std::move(tasks);
  return book;
}

// The ps's clock is an hour ahead of the chief's clock.
inline TraceBook one_frame() {
  constexpr std::int64_t kHour = 3'600'000'000;
  return book_of(
      {trace_of(
           Role::kPs,
           {of_frame(TraceKind::kReceive, kHour + 20, kHour + 24), of_frame(TraceKind::kApply, kHour + 26, kHour + 28),
            of_frame(TraceKind::kReply, kHour + 28, kHour + 29), of_frame(TraceKind::kHandle, kHour + 25, kHour + 30)},
           std::chrono::hours(-1)),
       trace_of(Role::kWorker, {of_frame(TraceKind::kSend, 10, 15), of_frame(TraceKind::kAnswer, 35, 40)})});
}

}  // namespace disttrain::chiefd::test
