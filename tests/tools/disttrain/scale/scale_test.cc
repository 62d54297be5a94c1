// disttrain bench scale: its options, and what it prints.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>

#include "common/daemon/usage_error.h"
#include "tools/disttrain/command_line.h"
#include "tools/disttrain/json.h"
#include "tools/disttrain/scale/link_options.h"

namespace disttrain::cli {
namespace {

using testing::HasSubstr;

TEST(Bandwidth, IsANumberOfBitsWithAUnit) {
  EXPECT_EQ(parse_bandwidth("10G"), 1.25e9);
  EXPECT_EQ(parse_bandwidth("2.5G"), 312.5e6);
  EXPECT_EQ(parse_bandwidth("100M"), 12.5e6);
  EXPECT_EQ(parse_bandwidth("1000K"), 125e3);
  EXPECT_EQ(parse_bandwidth("10T"), 1.25e12);
}

TEST(Bandwidth, OtherTextsAndUselessBandwidthsAreRefused) {
  for (const char* text :
       {"", "G", "10", "10X", "10g", "ten G", "10 G", "10Gb", "-1G", "nanG", "infG", "0G", "999K", "11T", "1e99G"})
    EXPECT_FALSE(parse_bandwidth(text)) << text;
}

// What the program says about a wrong command line; "" if it is right.
std::string complaint(const std::string& arguments) {
  CommandLine line;
  try {
    line.app.parse("bench scale " + arguments);
  } catch (const CLI::ParseError& error) {
    return daemon::usage_error(line.app, error);
  }
  return "";
}

TEST(BenchScale, EachBadOptionIsNamedWithWhatIsExpected) {
  EXPECT_EQ(complaint("--workers 1000 --ps 100 --bytes 318KB --mode ssp --compute 3ms --latency 0s"), "");
  EXPECT_THAT(complaint("--workers 0"), HasSubstr("--workers: '0' isn't a number from 1 to 1024"));
  EXPECT_THAT(complaint("--ps 1025"), HasSubstr("--ps: '1025' isn't a number from 1 to 1024"));
  EXPECT_THAT(complaint("--steps 0"), HasSubstr("--steps: '0' isn't a number from 1 to"));
  EXPECT_THAT(complaint("--bandwidth 10X"), HasSubstr("--bandwidth: '10X' isn't a bandwidth from 1M to 10T"));
  EXPECT_THAT(complaint("--latency 2s"), HasSubstr("--latency: '2s' isn't a time from 0s to 1s"));
  EXPECT_THAT(complaint("--compute 50"), HasSubstr("--compute: '50' isn't a time from 0s to 1h"));
  EXPECT_THAT(complaint("--mode fast"), HasSubstr("--mode"));
  EXPECT_THAT(complaint("--bytes many"), HasSubstr("--bytes"));
  EXPECT_THAT(complaint("--bytes 1MB --job job.toml"), HasSubstr("--job"));
}

int run(const std::string& arguments, std::string& out, std::string& err) {
  CommandLine line;
  line.app.parse(arguments);
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const int code = line.run();
  out = testing::internal::GetCapturedStdout();
  err = testing::internal::GetCapturedStderr();
  return code;
}

TEST(BenchScale, PrintsOneObjectWithTheDocumentedKeys) {
  std::string out;
  std::string err;
  ASSERT_EQ(run("bench scale --workers 3 --ps 2 --bytes 4MB --steps 2 --json", out, err), 0) << err;
  const Json json = Json::parse(out, nullptr, false);
  ASSERT_TRUE(json.is_object()) << out;
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.items()) keys.push_back(key);
  EXPECT_THAT(keys, testing::ElementsAre("workers", "ps", "mode", "bandwidth", "latency", "compute", "records",
                                         "shards", "buckets", "parameter_bytes", "steps", "global_steps", "step",
                                         "bound", "ratio", "parts", "busiest", "links", "chief", "cores", "startup",
                                         "measured", "events", "wall", "peak_memory_bytes"));
  EXPECT_EQ(json["mode"], "sync");
  EXPECT_EQ(json["parameter_bytes"], 4'000'000);
  EXPECT_EQ(json["links"]["worker"]["mean"]["sent_messages"], json["buckets"]);
}

TEST(BenchScale, TellsPeopleTheStepItsBoundAndTheBusiestCard) {
  std::string out;
  std::string err;
  ASSERT_EQ(run("bench scale --workers 3 --ps 2 --bytes 4MB --steps 2", out, err), 0) << err;
  EXPECT_THAT(out, HasSubstr("3 workers, 2 ps, sync, 3.8 MiB of parameters"));
  EXPECT_THAT(out, HasSubstr("a step takes "));
  EXPECT_THAT(out, HasSubstr("the busiest card: ps/0 "));
  EXPECT_THAT(out, HasSubstr("messages per second"));
}

TEST(BenchScale, SizeThatNoModelHasIsRefused) {
  std::string out;
  std::string err;
  EXPECT_EQ(run("bench scale --bytes 3B", out, err), 64);
  EXPECT_THAT(err, HasSubstr("--bytes 3: the parameters must have 4 bytes to 1 TB"));
}

TEST(Bench, WithoutAJobSaysHowToNameOne) {
  std::string out;
  std::string err;
  EXPECT_EQ(run("bench", out, err), 64);
  EXPECT_THAT(err, HasSubstr("disttrain bench JOB.toml"));
}

}  // namespace
}  // namespace disttrain::cli
