// The chief's core hears of a written trace, and its answers to heartbeats tell the clock of the heartbeat.
#include <gtest/gtest.h>

#include "tests/chiefd/core/cluster_fixture.h"

namespace disttrain::chiefd {
namespace {

class TraceTest : public TrainingTest {
 protected:
  const EventRecord* newest(const std::string& kind) const {
    const EventRecord* found = nullptr;
    for (const EventRecord& event : journal_.events)
      if (event.kind == kind) found = &event;
    return found;
  }
};

TEST_F(TraceTest, StatusAndEventsNameTheTrace) {
  JobConfig config = job_config("a");
  config.train.profile_steps = {5, 9};
  const JobId job = train(config);
  EXPECT_EQ(status(job).profile_steps, (std::array<std::uint64_t, 2>{5, 9}));
  EXPECT_EQ(status(job).trace, "");
  step(TraceWritten{job, "/c/a/events/trace.json", true, "the trace is in /c/a/events/trace.json"});
  EXPECT_EQ(status(job).trace, "/c/a/events/trace.json");
  ASSERT_NE(newest("trace_written"), nullptr);
  EXPECT_EQ(newest("trace_written")->job, job);
  EXPECT_EQ(newest("trace_written")->text, "the trace is in /c/a/events/trace.json");
}

TEST_F(TraceTest, TraceThatFailsLeavesTheEarlierOne) {
  const JobId job = train(job_config("a"));
  step(TraceWritten{job, "/c/a/events/trace.json", true, "written"});
  step(TraceWritten{job, "", false, "the disk is full"});
  EXPECT_EQ(status(job).trace, "/c/a/events/trace.json");
  ASSERT_NE(newest("trace_failed"), nullptr);
  EXPECT_EQ(newest("trace_failed")->text, "the disk is full");
}

TEST_F(TraceTest, TraceOfAnUnknownJobIsIgnored) {
  train(job_config("a"));
  step(TraceWritten{JobId(99), "/x", true, "written"});
  EXPECT_EQ(newest("trace_written"), nullptr);
}

TEST_F(TraceTest, AnswerToAHeartbeatRepeatsItsClock) {
  train(job_config("a"));
  Heartbeat beat = heartbeats_[worker(0)];
  beat.clock = Instant(std::chrono::milliseconds(1234));
  say(worker(0), beat);
  EXPECT_EQ(sent<HeartbeatAnswer>(worker(0)).back().heartbeat_clock, beat.clock);
}

}  // namespace
}  // namespace disttrain::chiefd
