// The verb `events` prints each event of the chief once.
#include "tools/disttrain/events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>

namespace disttrain::cli {
namespace {

Json event(double time, const char* kind, const char* text) {
  return {{"time", time}, {"job", 1}, {"kind", kind}, {"task", "ps/0"}, {"step", 0}, {"text", text}};
}

class EventLine : public testing::Test {
 protected:
  EventLine() {
    setenv("TZ", "UTC0", 1);
    tzset();
  }
};

TEST_F(EventLine, SaysTimeTaskAndText) {
  EXPECT_EQ(event_line(event(1795218300.25, "task_lost", "ps/0: gone")),
            "2026-11-20 23:45:00.250 ps/0      ps/0: gone");
}

TEST_F(EventLine, ShowsATracebackInLines) {
  EXPECT_EQ(event_line(event(1795218300.25, "worker_lost", "its last lines:\\n  File\\n    raise")),
            "2026-11-20 23:45:00.250 ps/0      its last lines:\n      File\n        raise");
}

TEST_F(EventLine, EventOfNoTaskHasADash) {
  Json of_no_task = event(1795218300.25, "paused", "waits");
  of_no_task["task"] = nullptr;
  EXPECT_EQ(event_line(of_no_task), "2026-11-20 23:45:00.250 -         waits");
}

TEST_F(EventLine, EventWithoutAnyKeyIsNoError) {
  EXPECT_THAT(event_line(Json::object()), testing::StartsWith("-"));
}

TEST(SeenEvents, AreShownOnceAlsoAfterARestartOfTheChief) {
  const Json first = event(1, "running", "a");
  const Json second = event(2, "paused", "b");
  const Json third = event(3, "running", "c");
  RepeatFilter filter;
  EXPECT_EQ(take_new(filter, Json::array({first})), Json::array({first}));
  EXPECT_EQ(take_new(filter, Json::array({second})), Json::array({second}));
  // A restarted chief sends all events again.
  EXPECT_EQ(take_new(filter, Json::array({first, second, third})), Json::array({third}));
}

TEST(SeenEvents, ThatARestartedChiefDoesntKnowHideNoneOfItsOwn) {
  const Json durable = event(1, "running", "a");
  const Json lost = event(2, "paused", "b");
  const Json after = event(3, "running", "c");
  RepeatFilter filter;
  take_new(filter, Json::array({durable, lost}));
  EXPECT_EQ(take_new(filter, Json::array({durable, after})), Json::array({after}));
}

}  // namespace
}  // namespace disttrain::cli
