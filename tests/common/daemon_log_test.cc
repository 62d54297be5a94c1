#include "common/daemon/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace disttrain::daemon {
namespace {

using testing::HasSubstr;

const TaskId kTask{Role::kPs, 1};

LogConfig config_of(const std::string& level, const std::string& format = "text", std::uint32_t rate = 1'000'000) {
  return LogConfig{level, format, rate};
}

// What the log wrote to stderr while `work` ran.
std::string stderr_of(const std::function<void()>& work) {
  testing::internal::CaptureStderr();
  work();
  return testing::internal::GetCapturedStderr();
}

TEST(Log, TextLineHasTimeLevelTaskAndText) {
  const LogLine line{1'700'000'000'123'456'789, kTask, 2, "hello"};
  EXPECT_EQ(to_text(line), "2023-11-14 22:13:20.123 warn  ps/1 hello");
}

TEST(Log, JsonLineCanBeParsed) {
  const LogLine line{1'700'000'000'123'456'789, kTask, 3, "a \"quote\"\nand bytes \xff"};
  const auto json = nlohmann::json::parse(to_json(line));
  EXPECT_EQ(json["time"], "2023-11-14T22:13:20.123456Z");
  EXPECT_EQ(json["level"], "error");
  EXPECT_EQ(json["task"], "ps/1");
  EXPECT_THAT(json["message"].get<std::string>(), HasSubstr("a \"quote\"\nand bytes "));
}

TEST(Log, BytesThatCommandATerminalAreShown) {
  EXPECT_THAT(to_text(LogLine{0, kTask, 1, "\x1b[2J\rx"}), HasSubstr("\\x1b[2J\\x0dx"));
}

TEST(Log, LinesBelowTheLevelGoNowhere) {
  const std::string written = stderr_of([] {
    Log log(kTask, config_of("warn"));
    log.info("quiet");
    log.warn("loud");
    EXPECT_EQ(log.take(10).lines.size(), 1u);
  });
  EXPECT_THAT(written, HasSubstr("warn  ps/1 loud\n"));
  EXPECT_THAT(written, testing::Not(HasSubstr("quiet")));
}

TEST(Log, OnePlaceIsLimitedAndOthersGoOn) {
  stderr_of([] {
    Log log(kTask, config_of("info", "json", 1));
    for (int i = 0; i < 100; ++i) log.info("again and again");  // may pass twice where the second changes
    log.info("another place");
    const LogLines lines = log.take(1000);
    EXPECT_LE(lines.lines.size(), 10u);
    EXPECT_GE(lines.dropped, 90u);
    EXPECT_EQ(lines.lines.back().text, "another place");
  });
}

TEST(Log, EachLevelIsCountedWithWhatTheRateLeavesOut) {
  stderr_of([] {
    Log log(kTask, config_of("info", "text", 1));
    log.debug("below the level");
    for (int i = 0; i < 5; ++i) log.info("again and again");
    log.error("bad");
    EXPECT_EQ(log.counts(), (std::array<std::uint64_t, 4>{0, 5, 0, 1}));
  });
}

TEST(Log, ListenerIsWokenOnceUntilAllIsTaken) {
  stderr_of([] {
    Log log(kTask, config_of("info"));
    int woken = 0;
    log.set_listener([&woken] { ++woken; });
    log.info("one");
    log.info("two");
    EXPECT_EQ(woken, 1);
    EXPECT_EQ(log.take(1).lines.at(0).text, "one");
    EXPECT_EQ(log.take(10).lines.at(0).text, "two");
    log.info("three");
    EXPECT_EQ(woken, 2);
  });
}

TEST(Log, ListenerHearsOfLinesFromBeforeIt) {
  stderr_of([] {
    Log log(kTask, config_of("info"));
    log.info("early");
    int woken = 0;
    log.set_listener([&woken] { ++woken; });
    EXPECT_EQ(woken, 1);
  });
}

TEST(Log, OnlyTheLastLinesAreKept) {
  stderr_of([] {
    Log log(kTask, config_of("info"));
    for (std::size_t i = 0; i < kKeptLogLines + 5; ++i) log.info(std::to_string(i));
    const LogLines lines = log.take(2 * kKeptLogLines);
    EXPECT_EQ(lines.lines.size(), kKeptLogLines);
    EXPECT_EQ(lines.lines.front().text, "5");
    EXPECT_EQ(lines.dropped, 5u);
  });
}

TEST(Log, ImmenseLineIsCut) {
  stderr_of([] {
    Log log(kTask, config_of("info"));
    log.info(std::string(100'000, 'x'));
    EXPECT_LT(log.take(1).lines.at(0).text.size(), kMaxLogLineBytes + 20);
  });
}

}  // namespace
}  // namespace disttrain::daemon
