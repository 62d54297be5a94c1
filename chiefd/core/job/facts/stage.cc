#include "chiefd/core/job/facts/stage.h"

namespace disttrain::chiefd {

StageTraits traits_of(Stage stage) {
  constexpr bool o = false;
  constexpr bool x = true;
  switch (stage) {
    // clang-format off
    //                              generation  channels  trained  long work  closed
    case Stage::kQueued:     return {o,         o,        o,       o,         o};
    case Stage::kGather:     return {o,         o,        o,       o,         o};
    case Stage::kDescribe:   return {o,         o,        o,       x,         o};
    case Stage::kFolder:     return {o,         o,        o,       o,         o};
    case Stage::kInit:       return {o,         o,        o,       o,         o};
    case Stage::kRegather:   return {o,         x,        o,       o,         o};
    case Stage::kFind:       return {o,         x,        o,       o,         o};
    case Stage::kGeneration: return {x,         x,        o,       o,         o};
    case Stage::kCreate:     return {x,         x,        o,       x,         o};
    case Stage::kOpen:       return {x,         x,        o,       x,         o};
    case Stage::kRoster:     return {x,         x,        o,       o,         o};
    case Stage::kReclaim:    return {x,         x,        x,       o,         o};
    case Stage::kTrain:      return {x,         x,        x,       o,         o};
    case Stage::kSettle:     return {x,         x,        x,       o,         o};
    case Stage::kFinalCut:   return {x,         x,        x,       o,         o};
    case Stage::kEvaluate:   return {x,         x,        x,       x,         o};
    case Stage::kClose:      return {o,         x,        o,       o,         x};
    case Stage::kReleased:   return {o,         o,        o,       o,         x};
      // clang-format on
  }
  return {};
}

void StageWait::await(Instant now, const std::vector<Member>& who, Instant deadline) {
  since_ = now;
  awaited_ = std::set<Member>(who.begin(), who.end());
  deadline_ = deadline;
}

void StageWait::postpone_deadline(Duration by) {
  if (deadline_) *deadline_ += by;
}

}  // namespace disttrain::chiefd
