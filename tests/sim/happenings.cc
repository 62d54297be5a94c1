#include "tests/sim/happenings.h"

namespace disttrain::sim {

const char* to_string(Happening happening) {
  static constexpr std::array<const char*, kHappenings> kNames = {
      "process killed",
      "host lost",
      "crash around a message",
      "pause",
      "long pause",
      "clock jump",
      "task told to end",
      "ps beside its successor",
      "connection cut",
      "connection broken late",
      "hello unanswered",
      "partition",
      "long: task cut off from all",
      "long: one way",
      "long: split in two",
      "long: chief from ps",
      "long: chief from worker",
      "long: ps from ps",
      "message held back",
      "disk slow",
      "disk full",
      "write failed",
      "sync failed",
      "sync lied",
      "power lost",
      "folder unreadable",
      "folder away",
      "folder not mounted",
      "checkpoint damaged",
      "disk hung",
      "journal slow",
      "journal hung",
      "rule with slots",
      "clipping",
      "parameters to begin with",
      "loss not finite",
      "gradient not finite",
      "step skipped",
      "client saves",
      "client stops the job",
      "heartbeat timeout changed",
      "frame applied by a former owner",
      "former owner ended",
  };
  return kNames[static_cast<std::size_t>(happening)];
}

}  // namespace disttrain::sim
