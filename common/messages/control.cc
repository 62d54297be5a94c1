#include "common/messages/control.h"

namespace disttrain {

const char* to_string(Phase phase) {
  switch (phase) {
    case Phase::kIdle:
      return "idle";
    case Phase::kInput:
      return "input";
    case Phase::kPull:
      return "pull";
    case Phase::kCompute:
      return "compute";
    case Phase::kPush:
      return "push";
    case Phase::kWait:
      return "wait";
    case Phase::kEvaluate:
      return "evaluate";
  }
  return "unknown";
}

}  // namespace disttrain
