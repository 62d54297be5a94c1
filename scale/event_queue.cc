#include "scale/event_queue.h"

#include <algorithm>
#include <utility>

#include "common/check.h"

namespace disttrain::scale {

void EventQueue::at(Instant when, std::function<void()> work) {
  DISTTRAIN_CHECK(when >= now_);
  std::uint32_t slot = 0;
  if (free_.empty()) {
    slot = static_cast<std::uint32_t>(slots_.size());
    slots_.push_back(std::move(work));
  } else {
    slot = free_.back();
    free_.pop_back();
    slots_[slot] = std::move(work);
  }
  heap_.push_back(Due{when, ++last_, slot});
  std::push_heap(heap_.begin(), heap_.end(), is_later);
}

bool EventQueue::turn(Instant end) {
  if (heap_.empty() || heap_.front().at > end) return false;
  std::pop_heap(heap_.begin(), heap_.end(), is_later);
  const Due due = heap_.back();
  heap_.pop_back();
  const std::function<void()> work = std::exchange(slots_[due.slot], nullptr);
  free_.push_back(due.slot);
  now_ = due.at;
  work();
  ++turns_;
  return true;
}

}  // namespace disttrain::scale
