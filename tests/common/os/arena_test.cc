#include "common/os/arena.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <string>

namespace disttrain {
namespace {

constexpr std::uint64_t kHugePage = 2 * 1024 * 1024;
constexpr std::uint64_t kBytes = 5 * 1024 * 1024 + 4;

std::uint64_t resident_bytes(const Memory& memory) {
  std::vector<unsigned char> pages((memory.size() + 4095) / 4096);
  const auto address = reinterpret_cast<std::uintptr_t>(memory.bytes().data());
  EXPECT_EQ(::mincore(reinterpret_cast<void*>(address), memory.size(), pages.data()), 0);
  return 4096U * static_cast<std::uint64_t>(std::count_if(pages.begin(), pages.end(), [](auto p) { return p & 1; }));
}

class ArenaTest : public testing::TestWithParam<std::tuple<ArenaKind, Paging>> {};

TEST_P(ArenaTest, BlocksAreZeroedAndAligned) {
  Arena arena(std::get<0>(GetParam()));
  Memory memory(arena, kBytes, std::get<1>(GetParam()));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.floats().data()) % kHugePage, 0U);
  EXPECT_EQ(memory.floats().size(), kBytes / 4);
  EXPECT_THAT(memory.floats(), testing::Each(0.0F));
  EXPECT_TRUE(Memory(arena, 0, std::get<1>(GetParam())).floats().empty());
  EXPECT_EQ(arena.bytes(), kBytes);
}

TEST_P(ArenaTest, MoreMemoryThanThereIsIsAnError) {
  Arena arena(std::get<0>(GetParam()));
  for (const std::uint64_t bytes : {std::uint64_t{1} << 60, ~std::uint64_t{0}})
    EXPECT_THROW(Memory(arena, bytes, std::get<1>(GetParam())), std::bad_alloc);
  EXPECT_EQ(arena.bytes(), 0U);
}

TEST_P(ArenaTest, OnlyATouchedBlockTakesMemoryAtOnce) {
  const auto [kind, paging] = GetParam();
  Arena arena(kind);
  Memory memory(arena, kBytes, paging);
  if (paging == Paging::kTouched)
    EXPECT_GE(resident_bytes(memory), kBytes);
  else
    EXPECT_EQ(resident_bytes(memory), 0U);
}

INSTANTIATE_TEST_SUITE_P(All, ArenaTest,
                         testing::Combine(testing::Values(ArenaKind::kPrivate, ArenaKind::kShared),
                                          testing::Values(Paging::kTouched, Paging::kOnDemand)));

// The bytes of this memory that are mapped as huge pages of a file.
std::uint64_t huge_bytes(const void* address) {
  std::ifstream file("/proc/self/smaps");
  char begin[32];
  std::snprintf(begin, sizeof begin, "%zx-", reinterpret_cast<std::uintptr_t>(address));
  bool is_found = false;
  for (std::string line; std::getline(file, line);) {
    is_found = is_found || line.starts_with(begin);
    if (is_found && line.starts_with("ShmemPmdMapped:")) return 1024 * std::stoull(line.substr(15));
  }
  return 0;
}

TEST(Arena, ASharedBlockHasHugePagesWhereTheKernelGivesThem) {
  constexpr int kCollapse = 25;  // MADV_COLLAPSE
  Arena arena(ArenaKind::kShared);
  // An on-demand block asks for none, so it shows what the kernel can do.
  Memory other(arena, 2 * kHugePage, Paging::kOnDemand);
  other.bytes()[0] = std::byte{1};
  const bool can_collapse = ::madvise(other.bytes().data(), kHugePage, kCollapse) == 0;
  Memory memory(arena, kBytes, Paging::kTouched);
  EXPECT_EQ(huge_bytes(memory.bytes().data()), can_collapse ? 3 * kHugePage : 0);
}

TEST(Arena, FindsThePlaceOfBytes) {
  Arena arena(ArenaKind::kPrivate);
  auto first = std::make_unique<Memory>(arena, 10000, Paging::kTouched);
  Memory second(arena, 100, Paging::kTouched);
  const auto place = arena.find(first->bytes().subspan(9000, 1000));
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->offset, 9000U);
  EXPECT_EQ(place->block_bytes, 10000U);
  EXPECT_EQ(place->fd, -1);
  EXPECT_NE(arena.find(second.bytes())->block, place->block);
  // Bytes that begin before the block, or end after it, lie in no block.
  EXPECT_FALSE(arena.find({first->bytes().data() - 1, 10}).has_value());
  EXPECT_FALSE(arena.find({first->bytes().data() + 9000, 1001}).has_value());
  std::byte elsewhere{};
  EXPECT_FALSE(arena.find({&elsewhere, 1}).has_value());

  EXPECT_TRUE(arena.has(place->block));
  first.reset();
  EXPECT_FALSE(arena.has(place->block));
  Memory third(arena, 10000, Paging::kTouched);
  EXPECT_NE(arena.find(third.bytes())->block, place->block);
}

TEST(Arena, AnotherMappingOfASharedBlockSeesTheSameBytes) {
  Arena arena(ArenaKind::kShared);
  Memory memory(arena, kBytes, Paging::kTouched);
  const int fd = arena.find(memory.bytes())->fd;
  auto* other = static_cast<float*>(::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
  ASSERT_NE(other, MAP_FAILED);
  memory.floats()[7] = 1.5F;
  EXPECT_EQ(other[7], 1.5F);
  other[8] = 2.5F;
  EXPECT_EQ(memory.floats()[8], 2.5F);
  ::munmap(other, kBytes);
}

// If the file could shrink, the owner of the block would die of SIGBUS at the next access.
TEST(Arena, TheFileOfASharedBlockCantShrink) {
  Arena arena(ArenaKind::kShared);
  Memory memory(arena, kBytes, Paging::kTouched);
  EXPECT_EQ(::ftruncate(arena.find(memory.bytes())->fd, 0), -1);
  EXPECT_EQ(errno, EPERM);
}

}  // namespace
}  // namespace disttrain
