#include "common/nearest_word.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace disttrain {
namespace {

TEST(NearestWord, IsTheOneWithTheFewestChanges) {
  EXPECT_EQ(nearest_word("wieght", {"bias", "height", "weight"}), "weight");
  EXPECT_EQ(nearest_word("fc1.weight", {"fc1.bias", "fc2.weight", "fc3.weight"}), "fc2.weight");
  EXPECT_EQ(nearest_word("weight", {"bias", "gamma"}), "");
  EXPECT_EQ(nearest_word("weight", {}), "");
}

TEST(NearestWord, LongWordsAreNotCompared) {
  const std::string word(129, 'w');
  EXPECT_EQ(nearest_word(word, {word}), "");
  EXPECT_EQ(nearest_word("ww", {word, "w"}), "");
}

// A file of weights may name a million tensors, and comparing all of them with some names would take minutes.
TEST(NearestWord, OnlyTheFirstOfManyAreCompared) {
  const std::string word(100, 'w');
  const std::string far(100, 'x');
  std::string near = word;
  near.back() = 'x';
  std::vector<std::string> candidates(100'000, far);
  candidates[100] = near;
  EXPECT_EQ(nearest_word(word, candidates), near);
  candidates[100] = far;
  candidates.back() = near;
  EXPECT_EQ(nearest_word(word, candidates), "");
}

TEST(NearestWord, CandidatesOfAnotherLengthAreSkipped) {
  std::vector<std::string> candidates(1'000'000, "much_longer_than_it");
  candidates.push_back("wieght");
  EXPECT_EQ(nearest_word("weight", candidates), "wieght");
}

}  // namespace
}  // namespace disttrain
