#include "psd/store/memory_block.h"

#include <sys/mman.h>

#include <new>

namespace disttrain::psd {

namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kHugePage = 2 * 1024 * 1024;

std::uint64_t round_up(std::uint64_t value, std::uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

MemoryBlock::MemoryBlock(std::uint64_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  const bool huge = bytes >= kHugePage;
  const std::uint64_t alignment = huge ? kHugePage : kPage;
  const std::uint64_t wanted = round_up(bytes, kPage);
  const std::uint64_t asked = wanted + (huge ? kHugePage : 0);
  void* const whole =
      ::mmap(nullptr, asked, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (whole == MAP_FAILED) throw std::bad_alloc();
  const auto begin = reinterpret_cast<std::uint64_t>(whole);
  const std::uint64_t aligned = round_up(begin, alignment);
  if (aligned > begin) ::munmap(whole, aligned - begin);
  if (begin + asked > aligned + wanted)
    ::munmap(reinterpret_cast<void*>(aligned + wanted), begin + asked - aligned - wanted);
  address_ = reinterpret_cast<void*>(aligned);
  mapped_ = wanted;
  // Asks for huge pages only for the part of the memory that fills whole huge pages. A partly used last huge page would
  // take more memory than the chief counts for this shard.
  if (huge) ::madvise(address_, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
}

MemoryBlock::~MemoryBlock() {
  if (address_ != nullptr) ::munmap(address_, mapped_);
}

}  // namespace disttrain::psd
