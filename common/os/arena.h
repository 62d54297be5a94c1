// An Arena owns a program's large memory: parameters, gradients, optimizer slots, batches. Each block of it is a
// Memory. A block begins on a 2 MiB boundary if it has at least 2 MiB, and else on a page boundary. All its bytes are 0
// at first. It uses huge pages where the kernel provides them.
//
// The memory of a shared arena is visible to other processes: each block is a file in memory (memfd_create(2)). Whoever
// gets its descriptor can map it. The file can't shrink, so no other process can make an access to it fail.
//
// Any thread may make and destroy blocks, and call find() and has().
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>

#include "common/os/descriptor.h"

namespace disttrain {

class Memory;

enum class ArenaKind : std::uint8_t { kPrivate, kShared };

// kTouched: the constructor writes to the whole block, so that no later access has a page fault. In a step with 80 MB
// of parameters, page faults took a third of the time. The last huge page may be partly unused. kOnDemand: pages that
// nobody writes cost nothing. Only whole huge pages are used, so that a block takes no more memory than it has bytes,
// except for less than a page of 4 KiB.
enum class Paging : std::uint8_t { kTouched, kOnDemand };

// Must outlive its blocks.
class Arena {
 public:
  explicit Arena(ArenaKind kind) : kind_(kind) {}
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  ArenaKind kind() const { return kind_; }
  // The sum of the sizes of all blocks.
  std::uint64_t bytes() const;

  // A place in a block.
  struct Place {
    std::uint64_t block = 0;        // the block's number; an arena never uses a number twice
    std::uint64_t offset = 0;       // of the first byte within the block
    std::uint64_t block_bytes = 0;  // the size of the block
    int fd = -1;                    // the block's file, in a shared arena; valid as long as the block
  };
  // The place of these bytes, if they lie in one block of this arena.
  std::optional<Place> find(std::span<const std::byte> bytes) const;
  // Whether the block with this number still exists.
  bool has(std::uint64_t block) const;

 private:
  friend class Memory;
  struct Block {
    std::uint64_t number = 0;
    std::uint64_t bytes = 0;
    int fd = -1;
  };
  void add(std::uintptr_t address, std::uint64_t bytes, int fd);
  void remove(std::uintptr_t address);

  const ArenaKind kind_;
  mutable std::mutex mutex_;  // guards the members below
  std::uint64_t next_ = 1;
  std::uint64_t bytes_ = 0;
  std::map<std::uintptr_t, Block> blocks_;  // by address
};

// A block. Its address doesn't change.
class Memory {
 public:
  // 0 bytes make an empty block. Throws std::bad_alloc if the system has no memory, or no descriptor for a shared
  // block. The arena must outlive the block.
  Memory(Arena& arena, std::uint64_t bytes, Paging paging);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  std::uint64_t size() const { return size_; }
  std::span<std::byte> bytes() { return {static_cast<std::byte*>(address_), size_}; }
  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(address_), size_}; }
  std::span<float> floats() { return {static_cast<float*>(address_), size_ / sizeof(float)}; }
  std::span<const float> floats() const { return {static_cast<const float*>(address_), size_ / sizeof(float)}; }

 private:
  Arena& arena_;
  const std::uint64_t size_;
  void* address_ = nullptr;
  std::uint64_t mapped_ = 0;
  Descriptor file_;
};

}  // namespace disttrain
