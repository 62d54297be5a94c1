// A host without memory says nothing about evaluations.json, so the chief doesn't call it damaged.
#include <gtest/gtest.h>

#include <string>

#include "chiefd/journal/limits.h"
#include "chiefd/kept_evaluations.h"
#include "common/checkpoint/job_folder.h"
#include "tests/failing_new.h"

namespace disttrain::chiefd {
namespace {

TEST(NoMemory, IsNotTakenForDamagedEvaluations) {
  // The folder's name makes each path a large allocation.
  const std::string folder = "/" + std::string(test::kLargeAllocation, 'c');
  const std::string name = checkpoint::checkpoint_name(Generation(1), Step(5));
  ASSERT_LE(folder.size() + 1 + name.size(), kMaxJournalTextBytes);
  KeptEvaluations kept{"loss", false, {}};
  kept.found.evaluated = {{Generation(1), Step(5), folder + "/" + name}};
  kept.found.best = {{kept.found.evaluated.front(), 0.5}};
  kept.found.best_value = 0.5;
  const std::string text = encode_evaluations(kept);
  std::string error;
  const auto decode = [&] {
    const auto read = decode_evaluations(text, folder);
    error = read ? "" : read.error().message;
  };
  const test::OutOfMemory seen = test::fail_each_allocation(decode);
  EXPECT_EQ(error, "");
  EXPECT_EQ(seen.hidden, 0u);
  EXPECT_GE(seen.told, 2u);
}

}  // namespace
}  // namespace disttrain::chiefd
