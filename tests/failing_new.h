// Lets one large allocation of operator new fail, as on a host without memory. Include this file in only one file of a
// program, because it defines operator new and delete. Compile that program with -Wno-mismatched-new-delete, because
// g++ 12 may inline only one of the two.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

namespace disttrain::test {

// Counts only allocations of at least so many bytes. Smaller ones succeed, also in destructors, which can't throw.
inline constexpr std::size_t kLargeAllocation = 3000;
// If this isn't 0, the large allocation of this number fails, counted from 1, and those after it succeed.
inline thread_local std::size_t failing_allocation = 0;

namespace internal {

inline void* failing_new(std::size_t bytes) {
  if (bytes >= kLargeAllocation && failing_allocation != 0 && --failing_allocation == 0) throw std::bad_alloc();
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace internal

// How often a function ended with std::bad_alloc, and how often it returned although an allocation had failed.
struct OutOfMemory {
  std::size_t told = 0;
  std::size_t hidden = 0;
};

// Calls `body` again and again; the first large allocation fails in the first call, the second in the second, and so
// on. Ends with the call that makes none that fails.
template <typename Body>
OutOfMemory fail_each_allocation(const Body& body) {
  OutOfMemory seen;
  for (std::size_t number = 1;; ++number) {
    failing_allocation = number;
    try {
      body();
      if (failing_allocation != 0) break;
      ++seen.hidden;
    } catch (const std::bad_alloc&) {
      ++seen.told;
    }
  }
  failing_allocation = 0;
  return seen;
}

}  // namespace disttrain::test

void* operator new(std::size_t bytes) {
  return disttrain::test::internal::failing_new(bytes);
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return std::malloc(bytes == 0 ? 1 : bytes);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
