// What a job's evaluations found, as the file evaluations.json keeps it.
#include "chiefd/kept_evaluations.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "chiefd/journal/codec.h"
#include "common/checkpoint/job_folder.h"

namespace disttrain::chiefd {
namespace {

const std::string kJobFolder = "/c/small";

KeptCheckpoint checkpoint_at(std::uint64_t generation, std::uint64_t step) {
  return {Generation(generation), Step(step),
          kJobFolder + "/" + checkpoint::checkpoint_name(Generation(generation), Step(step))};
}

KeptEvaluations found_earlier() {
  KeptEvaluations all{"loss", false, {}};
  all.found.evaluated = {checkpoint_at(1, 5), checkpoint_at(1, 9)};
  all.found.best = {{checkpoint_at(1, 9), 0.5}, {checkpoint_at(1, 5), 0.75}};
  all.found.best_value = 0.5;
  all.found.exported = checkpoint_at(1, 9).path;
  return all;
}

TEST(KeptEvaluations, TheLongestTextIsReadBack) {
  constexpr std::uint64_t kLast = std::numeric_limits<std::uint64_t>::max();
  KeptEvaluations all = found_earlier();
  all.found.evaluated.clear();
  all.found.best.clear();
  for (std::uint64_t i = kMaxEvaluatedKept; i > 0; --i) all.found.evaluated.push_back(checkpoint_at(kLast, kLast - i));
  for (std::uint64_t i = kMaxKeptBest; i > 0; --i)
    all.found.best.push_back(
        {checkpoint_at(kLast, kLast - i), -std::numeric_limits<double>::max() / static_cast<double>(i)});
  const std::string text = encode_evaluations(all);
  EXPECT_LE(text.size(), kMaxEvaluationsBytes);
  const auto read = decode_evaluations(text, kJobFolder);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, all);
}

TEST(KeptEvaluations, InfiniteValuesAreLeftOutAndTheOthersAreReadBack) {
  KeptEvaluations all = found_earlier();
  const double infinity = std::numeric_limits<double>::infinity();
  all.found.best.insert(all.found.best.begin(), {checkpoint_at(1, 3), -infinity});
  all.found.best.push_back({checkpoint_at(1, 4), infinity});
  all.found.best_value = -infinity;
  const auto read = decode_evaluations(encode_evaluations(all), kJobFolder);
  ASSERT_TRUE(read) << read.error().message;
  KeptEvaluations expected = found_earlier();
  expected.found.best_value.reset();
  EXPECT_EQ(*read, expected);
}

// The chief writes to its journal what it reads here, and ends if the journal refuses it.
TEST(KeptEvaluations, NamesThatNoCheckpointHasAreRefused) {
  const auto refuses = [](const nlohmann::json& whole, const std::string& folder = kJobFolder) {
    const auto read = decode_evaluations(whole.dump(), folder);
    if (!read) return read.error().code == ErrorCode::kData;
    EXPECT_TRUE(encode_record(read->found)) << "the journal takes what is read";
    return false;
  };
  const auto file = nlohmann::json::parse(encode_evaluations(found_earlier()));
  EXPECT_FALSE(refuses(file));
  for (const std::string& name : {std::string(5000, 'x'), std::string("gen-1-step-9"), std::string("../other"),
                                  std::string("gen-2-step-00000000000000000009")})
    for (const char* list : {"evaluated", "best"}) {
      auto changed = file;
      changed[list][0]["name"] = name;
      EXPECT_TRUE(refuses(changed)) << list << " " << name.substr(0, 40);
    }
  for (const std::string& name : {std::string(5000, 'x'), std::string("../other")}) {
    auto changed = file;
    changed["exported"] = name;
    EXPECT_TRUE(refuses(changed)) << name.substr(0, 40);
  }
  EXPECT_TRUE(refuses(file, "/" + std::string(4080, 'f'))) << "the path is too long";
}

}  // namespace
}  // namespace disttrain::chiefd
