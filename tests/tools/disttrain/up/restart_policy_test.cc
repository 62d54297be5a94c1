// The policy that says whether and when `up` restarts a daemon that has ended.
#include "tools/disttrain/up/restart_policy.h"

#include <gtest/gtest.h>

namespace disttrain::cli {
namespace {

using namespace std::chrono_literals;

class Restarting : public testing::Test {
 protected:
  // The daemon runs for `life`, and then ends. If the verdict has a pause, the daemon is restarted after this pause.
  RestartPolicy::Verdict runs_for(Duration life, std::optional<int> exit_code = std::nullopt, bool is_missed = false) {
    policy_.on_start(now_);
    now_ += life;
    RestartPolicy::Verdict verdict = policy_.on_end(now_, exit_code, is_missed);
    now_ += verdict.pause.value_or(Duration::zero());
    return verdict;
  }

  RestartPolicy policy_{true};
  Instant now_{1h};
};

TEST_F(Restarting, FirstCrashIsFollowedByARestartAtOnce) {
  EXPECT_EQ(runs_for(1s).pause, Duration::zero());
}

TEST_F(Restarting, CrashesInARowAreFollowedByLongerAndLongerPauses) {
  for (const Duration pause : {Duration(0ms), Duration(100ms), Duration(200ms), Duration(400ms), Duration(800ms)})
    EXPECT_EQ(runs_for(1s).pause, pause);
}

TEST_F(Restarting, PauseIsBounded) {
  for (int i = 0; i < 9; ++i) runs_for(9s);
  EXPECT_EQ(runs_for(9s).pause, 5s);
}

TEST_F(Restarting, LongLifeResetsThePause) {
  runs_for(1s);
  runs_for(1s);
  EXPECT_EQ(runs_for(10s).pause, Duration::zero());
}

TEST_F(Restarting, LoopEndsAfterTenRestartsWithinAMinute) {
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(runs_for(1ms).pause.has_value());
  const RestartPolicy::Verdict verdict = runs_for(1ms);
  EXPECT_EQ(verdict.pause, std::nullopt);
  EXPECT_EQ(verdict.why_not, "it was restarted 10 times within a minute");
}

TEST_F(Restarting, MissedDaemonIsRestartedForeverAtTheLongestPause) {
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(runs_for(1ms, 69, true).pause.has_value());
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(runs_for(1ms, 69, true).pause, 5s) << i;
}

TEST_F(Restarting, MissedDaemonThatCrashesOverAndOverStaysDown) {
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(runs_for(1ms, std::nullopt, true).pause.has_value());
  EXPECT_EQ(runs_for(1ms, std::nullopt, true).pause, std::nullopt);
}

TEST_F(Restarting, RestartsOfLongAgoDontCount) {
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(runs_for(11s).pause.has_value()) << i;
}

TEST_F(Restarting, ExitCodesThatAnotherStartDoesntChangeAreFinal) {
  for (const int code : {0, 64, 65, 66, 77, 78, 126, 127}) {
    const RestartPolicy::Verdict verdict = runs_for(1h, code);
    EXPECT_EQ(verdict.pause, std::nullopt) << code;
    EXPECT_NE(verdict.why_not, "") << code;
  }
}

TEST_F(Restarting, OtherExitCodesAreCrashes) {
  for (const int code : {1, 69, 70, 75}) EXPECT_EQ(runs_for(1h, code).pause, Duration::zero()) << code;
}

TEST_F(Restarting, NothingIsRestartedWhereThatIsNotAllowed) {
  RestartPolicy policy(false);
  policy.on_start(now_);
  const RestartPolicy::Verdict verdict = policy.on_end(now_ + 1h, std::nullopt);
  EXPECT_EQ(verdict.pause, std::nullopt);
  EXPECT_EQ(verdict.why_not, "--no-restart");
}

}  // namespace
}  // namespace disttrain::cli
