// A thread copies its events into memory that it has allocated before, and sends them to the chief when the last step
// is done. So recording adds neither messages nor allocations to the steps that it measures. If the memory is full, the
// later events are dropped and not the earlier ones: a trace of some whole steps is of more use than pieces of all.
#include "common/trace/recorder.h"

#include <algorithm>
#include <utility>

#include "common/check.h"

namespace disttrain {

TraceRecorder::TraceRecorder(std::array<std::uint64_t, 2> steps, std::size_t capacity)
    : steps_(steps), events_(capacity) {
  DISTTRAIN_CHECK_GE(steps[0], 1U);
  DISTTRAIN_CHECK_GE(steps[1], steps[0]);
}

// A thread that begins behind the last step, because its job goes on from a checkpoint, records nothing: it is due at
// once, and take() returns no events.
void TraceRecorder::reach(Step done) {
  if (state_ == State::kBefore && done.value + 1 >= steps_[0]) state_ = State::kOn;
  if (state_ == State::kOn && done.value >= steps_[1]) state_ = State::kDone;
}

void TraceRecorder::add(const TraceEvent& event) {
  if (size_ == events_.size()) {
    ++dropped_;
    return;
  }
  events_[size_++] = event;
}

TraceTake TraceRecorder::take() {
  state_ = State::kTaken;
  events_.resize(size_);
  return {std::exchange(events_, {}), dropped_};
}

std::vector<TraceEvents> pieces_of(JobId job, Generation generation, TraceTake take) {
  std::vector<TraceEvents> pieces;
  for (std::size_t begin = 0; begin < take.events.size() || pieces.empty(); begin += kMaxTracePiece) {
    const std::size_t end = std::min(begin + kMaxTracePiece, take.events.size());
    TraceEvents piece{job, generation, static_cast<std::uint32_t>(pieces.size()), false, take.dropped};
    if (piece.piece + 1 == kMaxTracePieces) piece.dropped += take.events.size() - end;
    piece.events.assign(take.events.begin() + static_cast<std::ptrdiff_t>(begin),
                        take.events.begin() + static_cast<std::ptrdiff_t>(end));
    pieces.push_back(std::move(piece));
    if (pieces.size() == kMaxTracePieces) break;
  }
  pieces.back().last = true;
  return pieces;
}

}  // namespace disttrain
