// Places the events of a trace in the rows of the picture, and finds its flows. See trace_json.h.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "chiefd/traces/trace_book.h"

namespace disttrain::chiefd {

// An event in its place. Times are nanoseconds of the chief's clock.
struct PlacedEvent {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::uint32_t row = 0;  // an index into TraceProcess::rows
  const TraceEvent* event = nullptr;
  bool is_staged = false;  // the wait of a staged push, which no task records: `event` is kReceive of its last frame
};

struct TraceProcess {
  std::string name;               // "worker/0"
  std::vector<std::string> rows;  // their names; rows of overlapping spans have the same name
  std::vector<PlacedEvent> events;
};

// The way of one push frame: three events, each by process and index.
struct TraceFlow {
  struct Point {
    std::size_t process = 0;
    std::size_t event = 0;
  };
  Point push;
  Point update;
  Point answer;
};

struct TraceRows {
  std::vector<TraceProcess> processes;  // one for each of TraceBook::tasks, in their order
  std::vector<TraceFlow> flows;
  std::size_t pushes = 0;  // the number of push frames, with and without a flow
};

// The result refers to events of `book`.
TraceRows place(const TraceBook& book);

}  // namespace disttrain::chiefd
