// FlatMemory: a worker's flat array of parameters or gradients. One allocation on a 2 MiB boundary, in huge pages if
// the kernel gives them, touched at once so that no step has a page fault (fresh pages cost a third of a step of 80
// MB).
#pragma once

#include <cstdint>
#include <span>

namespace disttrain::workerd {

class FlatMemory {
 public:
  // Zeroed. elements >= 1. Throws std::bad_alloc.
  explicit FlatMemory(std::uint64_t elements);
  ~FlatMemory();
  FlatMemory(const FlatMemory&) = delete;
  FlatMemory& operator=(const FlatMemory&) = delete;

  std::span<float> values() const { return values_; }

 private:
  void* mapping_ = nullptr;
  std::size_t mapped_bytes_ = 0;
  std::span<float> values_;
};

}  // namespace disttrain::workerd
