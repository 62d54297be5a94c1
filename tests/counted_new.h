// Counts the calls of operator new on the threads that a test names. Include this file in only one file of a program,
// because it defines operator new and delete. Compile that program with -Wno-mismatched-new-delete, because g++ 12 may
// inline only one of the two.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string_view>

namespace disttrain::test {

inline std::atomic<bool> counting{false};
// The number of allocations that were counted. Allocations count while `counting` is true, on threads for which
// counts_thread() returns true.
inline std::atomic<std::uint64_t> allocations{0};
// Set while a counted thread runs code that the test doesn't want to count.
inline thread_local bool is_exempt = false;

// Each test program defines this function. It says whether the allocations of a thread with this name are counted. It
// is called once for each thread, at the thread's first allocation while `counting` is true. So a thread must have its
// name by then.
bool counts_thread(std::string_view name);

namespace internal {

inline bool counts_this_thread() {
  thread_local const bool counts = [] {
    char name[16] = "";
    pthread_getname_np(pthread_self(), name, sizeof name);
    return counts_thread(name);
  }();
  return counts;
}

inline void* counted_new(std::size_t bytes, std::size_t alignment) {
  if (counting.load(std::memory_order_relaxed) && counts_this_thread() && !is_exempt) ++allocations;
  const std::size_t size = (bytes + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, size == 0 ? alignment : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace internal
}  // namespace disttrain::test

void* operator new(std::size_t bytes) {
  return disttrain::test::internal::counted_new(bytes, alignof(std::max_align_t));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return disttrain::test::internal::counted_new(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return disttrain::test::internal::counted_new(bytes, alignof(std::max_align_t));
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
