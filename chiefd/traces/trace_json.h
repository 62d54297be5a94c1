// Writes a trace as JSON in the Trace Event Format, which ui.perfetto.dev and chrome://tracing open
// (https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU). A task is a process of the file. A
// thread of the file is a row of the picture:
//
//   worker   "step"                        the phases of the step thread, and within them the engine's work
//            "push to shard N"             each push frame, from the call that sends it until the socket has taken it
//            "parameters of shard N"       each frame of parameters that arrives
//   ps       "shard N"                     what the shard's thread does
//            "frames of worker/W, shard N" each push frame that arrives
//            "staged of worker/W, shard N" sync: each push, from its arrival until it is summed up
//   chief    "decisions", "checkpoints"
//
// The spans of a row nest. If spans of one kind overlap, such as the frames of one channel, they lie in several rows of
// one name. Arrows ("flows") lead from each push frame to its update at the shard, and from there to the answer that
// brings the updated bucket. A frame at the edge of the steps may lack one of the three, and then has no arrow.
//
// Times are microseconds since the earliest event, by the chief's clock. "otherData" has the job, the offset and
// uncertainty of each task's clock, the number of dropped events, and the missing tasks.
#pragma once

#include <functional>
#include <string_view>

#include "chiefd/traces/trace_book.h"
#include "common/result.h"

namespace disttrain::chiefd {

// Takes the next part of the file. After an error the writer stops and returns this error.
using TraceSink = std::function<Status(std::string_view)>;

Status write_trace(const TraceBook& book, const TraceSink& sink);

}  // namespace disttrain::chiefd
