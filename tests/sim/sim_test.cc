#include <gtest/gtest.h>

#include "tests/sim/simulation.h"

namespace disttrain::sim {
namespace {

// Short here; tools/simulate runs as many as one likes.
constexpr std::uint64_t kSeeds = 3000;

TEST(Simulation, AllLawsHold) {
  int finished = 0;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Outcome outcome = simulate(seed, false);
    ASSERT_EQ(outcome.violation, "") << "again: tools/simulate --replay " << seed;
    finished += outcome.finished ? 1 : 0;
  }
  EXPECT_GT(finished, static_cast<int>(kSeeds / 4)) << "faults end nearly every job: nothing is tried";
  EXPECT_LT(finished, static_cast<int>(kSeeds)) << "no fault ever ends a job";
}

struct BrokenOnce {
  std::uint64_t seed;
  const char* what;
};
constexpr BrokenOnce kBrokenOnce[] = {
    {25, "a chief that took a job up without workers crashed"},
    {125, "a clock that jumped failed the job"},
    {404, "a clock that jumped failed the job"},
    {516, "a clock that jumped failed the job"},
    {563, "the pacer heard of a roster that wasn't durable"},
    {705, "the pacer heard of a roster that wasn't durable"},
    {989, "the pacer heard of a roster that wasn't durable"},
    {1595, "a clock that jumped failed the job"},
    {6766, "a member of the roster idled"},
    {8967, "the late hello of a dead process shut out the living one"},
    {9714, "a mark was given up in the middle of an event"},
    {14026, "a chief that took a job up forgot in its journal what others were lent"},
    {15890, "a member of the roster idled"},
    {16697, "the late hello of a dead process shut out the living one"},
    {18814, "the failure of an old generation was taken for an answer"},
    {21764, "the failure of an old generation was taken for an answer"},
    {36435, "the failure of an old generation was taken for an answer"},
    {44838, "the failure of an old generation was taken for an answer"},
    {46161, "the late hello of a dead process shut out the living one"},
    {47368, "the late hello of a dead process shut out the living one"},
};

TEST(Simulation, SeedsThatBrokeALawOnceHoldNow) {
  for (const BrokenOnce& once : kBrokenOnce)
    EXPECT_EQ(simulate(once.seed, false).violation, "")
        << once.what << "; again: tools/simulate --replay " << once.seed;
}

TEST(Simulation, TheSameSeedIsTheSameStory) {
  for (std::uint64_t seed = 0; seed < 40; ++seed)
    ASSERT_EQ(simulate(seed, false).hash, simulate(seed, true).hash) << seed;
}

}  // namespace
}  // namespace disttrain::sim
