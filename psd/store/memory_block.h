// Memory for tensors. It is zero at first, and a large block uses huge pages. The constructor doesn't touch the memory,
// so pages that nobody writes cost nothing. A block can't be copied or moved.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace disttrain::psd {

class MemoryBlock {
 public:
  // Throws std::bad_alloc when the system has no memory. 0 bytes make an empty block.
  explicit MemoryBlock(std::uint64_t bytes);
  ~MemoryBlock();
  MemoryBlock(const MemoryBlock&) = delete;
  MemoryBlock& operator=(const MemoryBlock&) = delete;

  std::span<float> floats() { return {static_cast<float*>(address_), bytes_ / sizeof(float)}; }
  std::span<const float> floats() const { return {static_cast<const float*>(address_), bytes_ / sizeof(float)}; }
  std::uint64_t bytes() const { return bytes_; }

 private:
  const std::uint64_t bytes_;
  void* address_ = nullptr;
  std::uint64_t mapped_ = 0;
};

}  // namespace disttrain::psd
