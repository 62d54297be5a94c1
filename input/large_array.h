// Arrays of decoded records. They may have gigabytes, and batches take rows from anywhere in them. So large arrays ask
// for huge pages, and rows that are added aren't set to zero first: whoever adds them writes all their values.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

namespace disttrain::input {

template <typename T>
struct LargeAllocator {
  static_assert(std::is_trivially_copyable_v<T>);
  using value_type = T;

  LargeAllocator() = default;
  template <typename Other>
  LargeAllocator(const LargeAllocator<Other>&) {}

  T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    if (bytes < kLargeBytes) return std::allocator<T>().allocate(count);
    const std::size_t whole_pages = (bytes + kHugePageBytes - 1) / kHugePageBytes * kHugePageBytes;
    void* const memory = std::aligned_alloc(kHugePageBytes, whole_pages);
    if (memory == nullptr) throw std::bad_alloc();
    ::madvise(memory, whole_pages, MADV_HUGEPAGE);  // only speed depends on it
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t count) {
    if (count * sizeof(T) < kLargeBytes)
      std::allocator<T>().deallocate(memory, count);
    else
      std::free(memory);
  }
  // Leaves the value as it is.
  template <typename U>
  void construct(U* at) {
    ::new (static_cast<void*>(at)) U;
  }
  template <typename U, typename... Values>
  void construct(U* at, Values&&... values) {
    ::new (static_cast<void*>(at)) U(std::forward<Values>(values)...);
  }
  friend bool operator==(const LargeAllocator&, const LargeAllocator&) { return true; }

 private:
  static constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;
  static constexpr std::size_t kLargeBytes = 2 * kHugePageBytes;
};

template <typename T>
using LargeArray = std::vector<T, LargeAllocator<T>>;

}  // namespace disttrain::input
