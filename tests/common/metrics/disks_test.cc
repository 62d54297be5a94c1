// The chief, ps and worker report the size of their file systems. Some file systems answer, some can't be read, and
// some hang.
#include "common/metrics/disks.h"

#include <gtest/gtest.h>

#include <future>

namespace disttrain::metrics {
namespace {

TEST(Disks, AnswersAreInTheOrderOfThePaths) {
  const Disks disks([](const std::string& path) -> std::optional<DiskSize> {
    if (path == "/forbidden") return std::nullopt;
    return DiskSize{static_cast<double>(path.size()), 100};
  });
  const auto sizes = disks.ask({"/ab", "/forbidden", "/a"});
  ASSERT_EQ(sizes.size(), 3U);
  ASSERT_TRUE(sizes[0] && sizes[2]);
  EXPECT_FALSE(sizes[1]);
  EXPECT_EQ(sizes[0]->free_bytes, 3);
  EXPECT_EQ(sizes[2]->free_bytes, 2);
  EXPECT_TRUE(disks.ask({}).empty());
}

TEST(Disks, ThoseAskedAtOnceAllHearTheAnswer) {
  const Disks disks([](const std::string&) { return std::optional(DiskSize{1, 2}); });
  std::vector<std::future<bool>> asked;
  for (int i = 0; i < 8; ++i)
    asked.push_back(std::async(std::launch::async, [&disks] { return disks.ask({"/a"})[0].has_value(); }));
  for (auto& one : asked) EXPECT_TRUE(one.get());
}

TEST(Disks, WhatAnsweredBeforeTheOneThatHangsIsKnownAndAllAreOnceItAnswers) {
  std::promise<void> server_is_back;
  const Disks disks([back = server_is_back.get_future().share()](const std::string& path) {
    if (path == "/nfs") back.wait();
    return std::optional(DiskSize{1, 2});
  });
  const auto first = disks.ask({"/local", "/nfs"});
  EXPECT_TRUE(first[0]);
  EXPECT_FALSE(first[1]);
  EXPECT_FALSE(disks.ask({"/local"})[0]);  // the only thread hangs
  server_is_back.set_value();
  EXPECT_TRUE(disks.ask({"/local", "/nfs"})[1]);
}

}  // namespace
}  // namespace disttrain::metrics
