#include "chiefd/traces/trace_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "chiefd/traces/trace_report.h"
#include "tests/chiefd/traces/trace_books.h"

namespace disttrain::chiefd {
namespace {

using namespace test;
using nlohmann::json;

json written(const TraceBook& book) {
  std::string text;
  const Status ok = write_trace(book, [&text](std::string_view part) {
    text += part;
    return Status();
  });
  EXPECT_TRUE(ok);
  return json::parse(text);
}

std::vector<json> of_phase(const json& trace, const std::string& phase) {
  std::vector<json> found;
  for (const json& event : trace["traceEvents"])
    if (event["ph"] == phase) found.push_back(event);
  return found;
}

json named(const json& trace, const std::string& name) {
  for (const json& event : trace["traceEvents"])
    if (event["name"] == name) return event;
  return nullptr;
}

TEST(TraceJson, SpansHaveMicrosecondsSinceTheFirstEvent) {
  const json trace = written(one_frame());
  const json push = named(trace, "send bucket 0");
  EXPECT_EQ(push["ph"], "X");
  EXPECT_EQ(push["ts"], 0.0);
  EXPECT_EQ(push["dur"], 5.0);
  EXPECT_EQ(
      push["args"],
      (json{{"worker", "worker/0"}, {"shard", 0}, {"bucket", 0}, {"bytes", 400}, {"frame", 1}, {"worker_step", 1}}));
  EXPECT_EQ(named(trace, "apply bucket 0")["ts"], 16.0);
  EXPECT_EQ(named(trace, "parameters of bucket 0")["args"]["step"], 1);
}

TEST(TraceJson, EachProcessAndEachRowHasAName) {
  const json trace = written(one_frame());
  std::vector<std::string> names;
  for (const json& event : of_phase(trace, "M"))
    if (event["name"] != "process_sort_index" && event["name"] != "thread_sort_index")
      names.push_back(event["args"]["name"]);
  EXPECT_EQ(names,
            (std::vector<std::string>{"chief/0", "decisions", "checkpoints", "ps/0", "frames of worker/0, shard 0",
                                      "shard 0", "worker/0", "push to shard 0", "parameters of shard 0"}));
}

TEST(TraceJson, AFlowHasABeginAStepAndAnEnd) {
  const json trace = written(one_frame());
  const std::vector<json> begin = of_phase(trace, "s"), step = of_phase(trace, "t"), end = of_phase(trace, "f");
  ASSERT_EQ(begin.size(), 1u);
  ASSERT_EQ(step.size(), 1u);
  ASSERT_EQ(end.size(), 1u);
  EXPECT_EQ(begin[0]["id"], "42/0/1");
  EXPECT_EQ(step[0]["id"], begin[0]["id"]);
  EXPECT_EQ(end[0]["id"], begin[0]["id"]);
  EXPECT_EQ(begin[0]["ts"], 0.0);
  EXPECT_EQ(step[0]["ts"], 16.0);
  EXPECT_EQ(end[0]["ts"], 25.0);
}

TEST(TraceJson, OtherDataTellsClocksMissingTasksAndDroppedEvents) {
  TraceBook book = one_frame();
  book.tasks[0].dropped = 5;
  book.tasks[1].clock.reset();
  book.missing = {TaskId{Role::kWorker, 1}};
  const json facts = written(book)["otherData"];
  EXPECT_EQ(facts["job"], "digits");
  EXPECT_EQ(facts["mode"], "async");
  EXPECT_EQ(facts["clocks"][1], (json{{"task", "ps/0"}, {"offset_us", -3.6e9}, {"uncertainty_us", 1.0}}));
  EXPECT_EQ(facts["clocks"][2], (json{{"task", "worker/0"}, {"offset_us", nullptr}, {"uncertainty_us", nullptr}}));
  EXPECT_EQ(facts["dropped"], (json{{"ps/0", 5}}));
  EXPECT_EQ(facts["missing"], (json{"worker/1"}));
}

TEST(TraceJson, TextsOfAnyBytesAreEscaped) {
  TraceBook book = one_frame();
  book.name = "a\"b\\";
  book.chief.push_back({at(20), at(20), "worker_lost", "a \"quoted\" reason\nwith \xff bytes", 3});
  const json trace = written(book);
  EXPECT_EQ(trace["otherData"]["job"], book.name);
  const json event = named(trace, "worker_lost");
  EXPECT_EQ(event["ph"], "i");
  EXPECT_EQ(event["args"]["text"], "a \"quoted\" reason\nwith \xef\xbf\xbd bytes");
}

TEST(TraceJson, OnlyEventsOfTheChiefWithinTheTraceAreShown) {
  TraceBook book = one_frame();
  book.chief = {{at(0), at(0), "before", "", 0}, {at(5), at(20), "attempt", "", 0}, {at(99), at(99), "after", "", 0}};
  const json trace = written(book);
  EXPECT_TRUE(named(trace, "before").is_null());
  EXPECT_TRUE(named(trace, "after").is_null());
  EXPECT_EQ(named(trace, "attempt")["ph"], "X");
  EXPECT_EQ(named(trace, "attempt")["ts"], 0.0) << "the first event of the trace is the earliest one that is shown";
}

TEST(TraceJson, StopsAtTheFirstErrorOfTheFile) {
  int calls = 0;
  const Status status = write_trace(one_frame(), [&calls](std::string_view) -> Status {
    ++calls;
    return fail(ErrorCode::kFailed, "disk full");
  });
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "disk full");
  EXPECT_EQ(calls, 1);
}

TEST(TraceReport, NamesThePathAndWhatIsMissing) {
  TraceBook book = one_frame();
  EXPECT_TRUE(trace_report(book, std::string("/x/trace.json")).is_whole);
  book.missing = {TaskId{Role::kWorker, 1}};
  book.tasks[0].dropped = 5;
  book.dropped = 2;
  const TraceWritten report = trace_report(book, std::string("/x/trace.json"));
  EXPECT_EQ(report.path, "/x/trace.json");
  EXPECT_FALSE(report.is_whole);
  EXPECT_EQ(
      report.text,
      "the trace of steps 1 to 2 is in /x/trace.json; it lacks events of worker/1, which didn't send them in time; "
      "7 events are dropped, because they were too many: profile fewer steps");
  EXPECT_EQ(trace_report(book, fail(ErrorCode::kFailed, "can't make the folder /x")).path, "");
}

TEST(TraceReport, SaysWhyThereIsNoTrace) {
  TraceBook book = book_of({trace_of(Role::kPs, {})});
  EXPECT_FALSE(book.has_events());
  const std::string begin = "this chief has written no trace of steps 1 to 2 (train.profile_steps), because ";
  EXPECT_EQ(empty_trace_report(book).text, begin + "no task has recorded any of them");
  book.missing = {TaskId{Role::kWorker, 0}, TaskId{Role::kWorker, 1}};
  const TraceWritten report = empty_trace_report(book);
  EXPECT_EQ(report.text, begin +
                             "these tasks didn't send their events in time, and the other tasks have recorded "
                             "none: worker/0, worker/1");
  EXPECT_EQ(report.path, "");
  EXPECT_EQ(report.job, book.job);
}

}  // namespace
}  // namespace disttrain::chiefd
