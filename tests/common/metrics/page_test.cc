// The page of a scrape, as Prometheus reads it.
#include "common/metrics/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "common/metrics/families.h"
#include "common/metrics/process.h"
#include "common/metrics/rpc.h"

namespace disttrain::metrics {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Histogram, BoundIsIncludedAndTheLastBucketTakesTheRest) {
  StepsHistogram histogram;
  for (const double value : {0.0, 1.0, 1.5, 64.0, 65.0, 1e9}) histogram.observe(value);
  EXPECT_EQ(histogram.counts(), (std::array<std::uint64_t, 9>{1, 1, 1, 0, 0, 0, 0, 1, 2}));
  EXPECT_EQ(histogram.sum(), 0.0 + 1.0 + 1.5 + 64.0 + 65.0 + 1e9);
}

TEST(Histogram, AddedIsWhatBothHaveSeen) {
  StepsHistogram one;
  StepsHistogram other;
  one.observe(2);
  other.observe(2);
  other.observe(3);
  one.add(other);
  EXPECT_EQ(one.counts(), (std::array<std::uint64_t, 9>{0, 0, 2, 1, 0, 0, 0, 0, 0}));
  EXPECT_EQ(one.sum(), 7.0);
}

TEST(Page, FamilyHasOneHelpAndTypeAndItsSeriesBelow) {
  Page page;
  page.set(kTaskUp, {"ps/0"}, 1);
  page.set(kLeader, 1);
  page.set(kTaskUp, {"ps/1"}, 0);
  EXPECT_EQ(page.text(),
            "# HELP disttrain_task_up 1 while the task is ready or runs a job\n"
            "# TYPE disttrain_task_up gauge\n"
            "disttrain_task_up{task=\"ps/0\"} 1\n"
            "disttrain_task_up{task=\"ps/1\"} 0\n"
            "# HELP disttrain_leader 1 at the chief in charge\n"
            "# TYPE disttrain_leader gauge\n"
            "disttrain_leader 1\n");
}

TEST(Page, HistogramIsCumulative) {
  StepsHistogram histogram;
  for (const double value : {0.0, 1.0, 3.0, 100.0}) histogram.observe(value);
  Page page;
  page.set(kGradientStaleness, {"ps/0", "j"}, histogram);
  const std::string text = page.text();
  for (const char* line :
       {"_bucket{task=\"ps/0\",job=\"j\",le=\"0\"} 1\n", "_bucket{task=\"ps/0\",job=\"j\",le=\"4\"} 3\n",
        "_bucket{task=\"ps/0\",job=\"j\",le=\"64\"} 3\n", "_bucket{task=\"ps/0\",job=\"j\",le=\"+Inf\"} 4\n",
        "_sum{task=\"ps/0\",job=\"j\"} 104\n", "_count{task=\"ps/0\",job=\"j\"} 4\n"})
    EXPECT_THAT(text, HasSubstr(std::string("disttrain_gradient_staleness_steps") + line));
}

TEST(Page, LargeCountersAndTimesKeepTheirDigits) {
  Page page;
  page.set(kExamples, {"j"}, 123456789012345.0);
  page.set(kStartTime, {"ps/0"}, 1763740000.125);
  const std::string text = page.text();
  EXPECT_THAT(text, HasSubstr("disttrain_examples_total{job=\"j\"} 123456789012345\n"));
  EXPECT_THAT(text, HasSubstr("disttrain_start_time_seconds{task=\"ps/0\"} 1763740000.125\n"));
}

TEST(Page, LabelIsEscaped) {
  Page page;
  page.set(kTaskUp, {"a\"b\\c\nd"}, 1);
  EXPECT_THAT(page.text(), HasSubstr("{task=\"a\\\"b\\\\c\\nd\"}"));
}

TEST(Page, FolderThatIsNotMadeYetIsThatOfItsParent) {
  Page page;
  page.add_folder("ps/0", "checkpoints", "/no/such/folder");
  page.ask_folders(Disks());
  const std::string text = page.text();
  EXPECT_THAT(text, HasSubstr("disttrain_disk_free_bytes{task=\"ps/0\",folder=\"checkpoints\"} "));
  EXPECT_THAT(text, HasSubstr("disttrain_disk_size_bytes{task=\"ps/0\",folder=\"checkpoints\"} "));
  EXPECT_THAT(text, Not(HasSubstr("} 0\n")));
}

TEST(Page, FolderThatCannotBeLookedAtIsLeftOutAlone) {
  Page page;
  page.add_folder("ps/0", "state", "/proc/self/stat/file");
  page.add_folder("ps/0", "checkpoints", "not/made/yet");
  page.ask_folders(Disks());
  const std::string text = page.text();
  EXPECT_THAT(text, Not(HasSubstr("folder=\"state\"")));
  EXPECT_THAT(text, HasSubstr("disttrain_disk_size_bytes{task=\"ps/0\",folder=\"checkpoints\"} "));
}

TEST(RpcBook, EachNameAndCodeIsThereFromTheStartInSnakeCase) {
  RpcBook book({"LeaseRequest", "Hello"});
  book.of("LeaseRequest").note(RpcCode::kRefused, std::chrono::milliseconds(2));
  book.of("NeverHeardOf").note(RpcCode::kError, Duration::zero());
  Page page;
  book.collect(page, "chief/0");
  const std::string text = page.text();
  for (const char* line : {"op=\"lease_request\",code=\"ok\"} 0\n", "op=\"lease_request\",code=\"refused\"} 1\n",
                           "op=\"hello\",code=\"error\"} 0\n", "op=\"other\",code=\"error\"} 1\n",
                           "op=\"lease_request\",le=\"0.001\"} 0\n", "op=\"lease_request\",le=\"0.0025\"} 1\n"})
    EXPECT_THAT(text, HasSubstr(line));
}

TEST(ProcessMetrics, TellsWhenTheClusterFileWasTakenLast) {
  ProcessMetrics process("ps/0", "0.1.0", "tcp", 0x5, 10'000'000'000);
  process.reloaded(0xabcdef, 20'500'000'000);
  Page page;
  process.collect(page,
                  {.log_messages = std::array<std::uint64_t, 4>{1, 2, 3, 4}, .bytes_received = 5, .bytes_sent = 6});
  const std::string text = page.text();
  for (const char* line :
       {"build_info{task=\"ps/0\",version=\"0.1.0\"} 1\n", "config_info{task=\"ps/0\",hash=\"0000000000abcdef\"} 1\n",
        "start_time_seconds{task=\"ps/0\"} 10\n", "config_last_reload_success_timestamp_seconds{task=\"ps/0\"} 20.5\n",
        "transport_bytes_total{task=\"ps/0\",direction=\"in\",transport=\"tcp\"} 5\n",
        "transport_bytes_total{task=\"ps/0\",direction=\"out\",transport=\"tcp\"} 6\n",
        "log_messages_total{task=\"ps/0\",level=\"error\"} 4\n"})
    EXPECT_THAT(text, HasSubstr(std::string("disttrain_") + line));
}

}  // namespace
}  // namespace disttrain::metrics
