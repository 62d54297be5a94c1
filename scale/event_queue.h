// Virtual time, and the work that is due at later times. Work that is due at the same time runs in the order in which
// it was added. So a run depends on nothing but its inputs. One thread uses the queue.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "common/time.h"

namespace disttrain::scale {

class EventQueue {
 public:
  explicit EventQueue(Instant begin) : now_(begin) {}
  EventQueue(const EventQueue&) = delete;

  Instant now() const { return now_; }
  // The work may add other work.
  void after(Duration delay, std::function<void()> work) { at(now_ + delay, std::move(work)); }
  // `when` must not be before now().
  void at(Instant when, std::function<void()> work);
  // Sets the time to that of the next work, and runs this work. Returns false and does nothing if no work is due by
  // `end`.
  bool turn(Instant end);
  // Number of calls of turn() that have run work.
  std::uint64_t turns() const { return turns_; }
  // Amount of work that is due later.
  std::size_t size() const { return heap_.size(); }

 private:
  // The heap moves only these small entries. The work itself stays in its slot.
  struct Due {
    Instant at;
    std::uint64_t number = 0;  // decides the order of work that is due at the same time
    std::uint32_t slot = 0;
  };
  static bool is_later(const Due& a, const Due& b) { return a.at != b.at ? a.at > b.at : a.number > b.number; }

  Instant now_;
  std::uint64_t last_ = 0;
  std::uint64_t turns_ = 0;
  std::vector<Due> heap_;  // its first element is the next work
  std::vector<std::function<void()>> slots_;
  std::vector<std::uint32_t> free_;
};

}  // namespace disttrain::scale
