#include "chiefd/core/awaited.h"

namespace disttrain::chiefd {

const char* to_string(AwaitedFor what) {
  switch (what) {
    case AwaitedFor::kHello:
      return "hello";
    case AwaitedFor::kHeartbeat:
      return "heartbeat";
    case AwaitedFor::kLink:
      return "link";
    case AwaitedFor::kDescription:
      return "description";
    case AwaitedFor::kShards:
      return "shards";
    case AwaitedFor::kOpen:
      return "open";
    case AwaitedFor::kRoster:
      return "roster";
    case AwaitedFor::kReport:
      return "report";
    case AwaitedFor::kCheckpoint:
      return "checkpoint";
    case AwaitedFor::kStepEnd:
      return "step_end";
    case AwaitedFor::kEvaluation:
      return "evaluation";
    case AwaitedFor::kClose:
      return "close";
  }
  return "unknown";
}

std::string to_string(const std::vector<Awaited>& awaited) {
  std::string text;
  for (const Awaited& one : awaited) {
    if (!text.empty()) text += ", ";
    if (one.task)
      text += disttrain::to_string(*one.task);
    else
      text += std::to_string(one.count) + (one.count == 1 ? " more worker" : " more workers");
  }
  return text;
}

}  // namespace disttrain::chiefd
