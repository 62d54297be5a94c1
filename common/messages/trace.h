// The events that a task records for train.profile_steps. A task keeps them until the last of these steps is done, and
// then sends them to its chief in pieces. The chief writes the events of all tasks to one file (chiefd/traces).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/ids.h"
#include "common/time.h"

namespace disttrain {

// The kind of an event. The comment says which other fields of TraceEvent are set.
enum class TraceKind : std::uint8_t {
  // The phases of a worker's step thread (Phase). One follows the other. step: the worker's own step.
  kInput,
  kPull,
  kCompute,
  kPush,
  kWait,
  kEvaluate,
  kPart,   // the engine's work within kCompute: one part of the batch (train.accumulate). step; sequence: its number
  kReady,  // a moment within kPart: the gradients of the first `bytes` bytes are final
  // A push frame, from the call that sends it until the socket has taken it. step, sequence, shard, bucket, bytes.
  kSend,
  // A frame of parameters arrives at the worker. step: its version; sequence: the last acknowledged push frame; shard,
  // bucket, bytes.
  kAnswer,
  // A shard.
  kReceive,  // a push frame arrives. step, worker, sequence, bucket, bytes
  kHandle,   // the shard handles the frame. The same fields
  kApply,    // async, ssp: updates a bucket, within kHandle. The same fields
  kSum,      // sync: sums up the pushes of a bucket and applies the mean. step, bucket
  kPrepare,  // sync: norms of the whole gradient, before the sums. step
  // Sends a bucket of parameters. step: its version; worker; sequence: the last acknowledged frame; bucket, bytes.
  kReply,
  kStaged,     // sync: the pacer handles the report of another shard (`shard` is the shard that handles it)
  kCommit,     // sync: a shard handles the pacer's commit
  kCommitted,  // a moment at the pacer: the global step `step` is done
  kCut,        // copies a part of the shard for a checkpoint
};
inline constexpr TraceKind kLastTraceKind = TraceKind::kCut;

// One span of time, or a moment if begin == end. Plain memory, so that recording it costs one copy.
struct TraceEvent {
  Instant begin{};  // of the clock of the task that recorded it
  Instant end{};
  std::uint64_t step = 0;  // a global step. In async and ssp the steps of a worker's events are its own steps, from 1
  Incarnation incarnation{};  // of the worker of a frame
  Sequence sequence{};
  std::uint64_t bytes = 0;
  ShardId shard{};
  BucketId bucket{};
  std::uint32_t worker = 0;  // the index of the worker of a frame, such as 2 of worker/2
  TraceKind kind = TraceKind::kInput;

  bool operator==(const TraceEvent&) const = default;
};

// How many events a thread keeps. If it records more, it drops and counts the later ones, so that the first steps are
// complete.
inline constexpr std::size_t kMaxTraceEvents = 64 * 1024;
// The most events in one message, and the most messages of one task.
inline constexpr std::size_t kMaxTracePiece = 4096;
inline constexpr std::uint32_t kMaxTracePieces = 4096;

// How far the chief's clock is ahead of a task's clock: chief time = task time + offset. The true value lies within
// `uncertainty` of `offset`.
struct ClockOffset {
  Duration offset{};
  Duration uncertainty{};
  bool operator==(const ClockOffset&) const = default;
};

struct TraceEvents {
  JobId job;
  Generation generation;
  std::uint32_t piece = 0;  // its number, from 0. A gap means that pieces were lost with a connection
  bool last = false;
  std::uint64_t dropped = 0;           // how many events the task has dropped; the same in all pieces
  std::optional<ClockOffset> clock{};  // of the task when it sent the piece; none: not known
  std::vector<TraceEvent> events{};
  bool operator==(const TraceEvents&) const = default;
};

}  // namespace disttrain
