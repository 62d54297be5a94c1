// Where RDMA has failed, and for how long connections avoid it.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "transport/rdma/avoidance.h"

namespace disttrain::transport {
namespace {

class RdmaAvoidanceTest : public testing::Test {
 protected:
  std::vector<std::string> logged;
  RdmaAvoidance avoidance{[this](const std::string& text) { logged.push_back(text); }};
  Instant now = Instant(std::chrono::hours(1));
};

TEST_F(RdmaAvoidanceTest, AHostIsAvoidedForAMinute) {
  avoidance.avoid("10.0.0.1", "it broke", now);
  EXPECT_EQ(avoidance.why_not("10.0.0.1", now), "it failed less than a minute ago: it broke");
  EXPECT_FALSE(avoidance.why_not("10.0.0.2", now));
  now += RdmaAvoidance::kAvoidFor - std::chrono::seconds(1);
  EXPECT_TRUE(avoidance.why_not("10.0.0.1", now));
  avoidance.avoid("10.0.0.1", "again", now);
  EXPECT_EQ(logged,
            (std::vector<std::string>{"new connections with 10.0.0.1 don't use RDMA in the next minute: it broke"}));
  now += std::chrono::seconds(1);
  EXPECT_FALSE(avoidance.why_not("10.0.0.1", now));
  avoidance.avoid("10.0.0.1", "again", now);
  EXPECT_TRUE(avoidance.why_not("10.0.0.1", now));
  EXPECT_EQ(logged.size(), 2u);
}

TEST_F(RdmaAvoidanceTest, WithoutAHostAllAreAvoided) {
  avoidance.avoid("", "no memory", now);
  EXPECT_TRUE(avoidance.why_not("10.0.0.1", now));
  EXPECT_EQ(logged[0], "new connections don't use RDMA in the next minute: no memory");
  EXPECT_FALSE(avoidance.why_not("10.0.0.1", now + RdmaAvoidance::kAvoidFor));
}

TEST_F(RdmaAvoidanceTest, TheNumberOfHostsIsBounded) {
  for (std::size_t i = 0; i < RdmaAvoidance::kMaxKnown; ++i) avoidance.avoid(std::to_string(i), "x", now);
  avoidance.avoid("one more", "x", now);
  EXPECT_FALSE(avoidance.why_not("one more", now));
  now += RdmaAvoidance::kAvoidFor;
  avoidance.avoid("one more", "x", now);
  EXPECT_TRUE(avoidance.why_not("one more", now));
}

TEST_F(RdmaAvoidanceTest, AReasonIsLoggedOnceForEachAddress) {
  for (int i = 0; i < 3; ++i) {
    avoidance.tell_once("a:1", "nobody listens");
    avoidance.tell_once("b:1", "nobody listens at b");
  }
  EXPECT_EQ(logged, (std::vector<std::string>{"nobody listens", "nobody listens at b"}));
  avoidance.tell_once("a:1", "another reason");
  EXPECT_EQ(logged.back(), "another reason");
}

}  // namespace
}  // namespace disttrain::transport
