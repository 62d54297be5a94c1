// A host without memory says nothing about a checkpoint, so the checkpoint stays in its place.
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tests/common/checkpoint/memory_files.h"
#include "tests/common/checkpoint/small_job.h"
#include "tests/failing_new.h"

namespace disttrain::checkpoint {
namespace {

TEST(NoMemory, LeavesTheNewestCheckpointInItsPlace) {
  MemoryFiles files;
  ASSERT_TRUE(files.make_directory("/job"));
  // A text that takes a large allocation wherever it is copied.
  const auto with_long_text = [](const std::string&, Manifest& manifest) -> Status {
    manifest.job_toml.assign(2 * test::kLargeAllocation, '#');
    return {};
  };
  const auto saved = save(files, "/job", layout_of(small_model(), 2, 5), 1, 10, 1, 1, false, with_long_text);
  ASSERT_TRUE(saved) << saved.error().message;
  std::vector<std::string> broken;
  std::set<std::string> damaged;
  std::uint64_t step = 0;
  const auto open = [&] {
    const auto newest = open_newest(files, "/job", broken, damaged);
    step = newest.has_value() && newest->has_value() ? (*newest)->manifest.step.value : 0;
  };
  const test::OutOfMemory seen = test::fail_each_allocation(open);
  EXPECT_EQ(step, 10u);
  EXPECT_EQ(broken, std::vector<std::string>());
  EXPECT_EQ(seen.hidden, 0u);
  // The file's bytes, its text, the parsed text, and the manifest.
  EXPECT_GE(seen.told, 4u);
}

}  // namespace
}  // namespace disttrain::checkpoint
