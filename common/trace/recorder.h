// TraceRecorder keeps the events that one thread records during the steps of train.profile_steps. A thread has a
// recorder only if its job has this key, so without the key each place of recording costs one comparison with null:
//
//   if (trace_ != nullptr && trace_->is_on()) trace_->add({.begin = begin, .end = daemon::now(), ...});
//
// All calls come from this thread.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "common/messages/trace.h"

namespace disttrain {

// The events of one or more threads.
struct TraceTake {
  std::vector<TraceEvent> events;
  std::uint64_t dropped = 0;
};

class TraceRecorder {
 public:
  // `steps`: TrainSection::profile_steps, not {0, 0}. Takes the memory for `capacity` events now and writes to it, so
  // that add() allocates nothing and faults no page. May throw std::bad_alloc.
  explicit TraceRecorder(std::array<std::uint64_t, 2> steps, std::size_t capacity = kMaxTraceEvents);

  // Whether the thread is in one of the steps.
  bool is_on() const { return state_ == State::kOn; }
  // The thread has done this global step. Turns the recorder on or off. Once it is off it stays off.
  void reach(Step done);
  // Keeps an event. If there is no room, counts it as dropped.
  void add(const TraceEvent& event);
  // True if the last step is done and take() wasn't called yet.
  bool is_due() const { return state_ == State::kDone; }
  // Returns the events and frees the memory. The recorder stays off.
  TraceTake take();
  // True if take() was called.
  bool is_taken() const { return state_ == State::kTaken; }

 private:
  enum class State : std::uint8_t { kBefore, kOn, kDone, kTaken };

  const std::array<std::uint64_t, 2> steps_;
  State state_ = State::kBefore;
  std::vector<TraceEvent> events_;  // always of full size; the first size_ are in use
  std::size_t size_ = 0;
  std::uint64_t dropped_ = 0;
};

// Cuts the events of a task into messages, at least one. A task that has recorded nothing says so with an empty
// message, so that the chief doesn't wait for it.
std::vector<TraceEvents> pieces_of(JobId job, Generation generation, TraceTake take);

}  // namespace disttrain
