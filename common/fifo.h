// A queue that keeps its memory. push_back() allocates only if the queue becomes longer than ever before. std::deque,
// in contrast, frees and allocates blocks as elements come and go.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace disttrain {

// T must have a default constructor. Use the queue from one thread. A removed element stays in its slot, and keeps its
// memory, until a new element takes the slot.
template <typename T>
class Fifo {
 public:
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }

  // The queue must not be empty.
  T& front() { return slots_[begin_]; }
  const T& front() const { return slots_[begin_]; }
  T& back() { return (*this)[size_ - 1]; }

  // i < size(); 0 is the front.
  T& operator[](std::size_t i) { return slots_[(begin_ + i) % slots_.size()]; }
  const T& operator[](std::size_t i) const { return slots_[(begin_ + i) % slots_.size()]; }

  void push_back(T value) { push_slot() = std::move(value); }
  // Appends a slot with the content of a removed element, so that the caller can reuse that element's memory.
  T& push_slot() {
    if (size_ == slots_.size()) grow();
    ++size_;
    return back();
  }
  void pop_front() {
    begin_ = (begin_ + 1) % slots_.size();
    --size_;
  }
  // i < size(); the elements behind it move forward.
  void erase(std::size_t i) {
    for (; i + 1 < size_; ++i) std::swap((*this)[i], (*this)[i + 1]);
    --size_;
  }
  void clear() { begin_ = size_ = 0; }

 private:
  void grow() {
    std::rotate(slots_.begin(), slots_.begin() + static_cast<std::ptrdiff_t>(begin_), slots_.end());
    begin_ = 0;
    slots_.resize(std::max<std::size_t>(4, 2 * slots_.size()));
  }

  std::vector<T> slots_;
  std::size_t begin_ = 0;
  std::size_t size_ = 0;
};

}  // namespace disttrain
