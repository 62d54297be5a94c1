#include "workerd/flat_memory.h"

#include <sys/mman.h>

#include <cstring>
#include <new>

namespace disttrain::workerd {

namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

}  // namespace

FlatMemory::FlatMemory(std::uint64_t elements) {
  const std::size_t bytes = elements * sizeof(float);
  const std::size_t whole = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  mapped_bytes_ = whole + kHugePage;
  mapping_ = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping_ == MAP_FAILED) throw std::bad_alloc();
  const auto begin = (reinterpret_cast<std::uintptr_t>(mapping_) + kHugePage - 1) / kHugePage * kHugePage;
  void* const aligned = reinterpret_cast<void*>(begin);
  madvise(aligned, whole, MADV_HUGEPAGE);  // the kernel may ignore it
  std::memset(aligned, 0, bytes);
  values_ = {static_cast<float*>(aligned), elements};
}

FlatMemory::~FlatMemory() {
  munmap(mapping_, mapped_bytes_);
}

}  // namespace disttrain::workerd
