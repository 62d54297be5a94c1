#include "common/daemon/log/log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "common/daemon/log/message_ids.h"

namespace disttrain::daemon {
namespace {

using testing::HasSubstr;

const TaskId kTask{Role::kPs, 1};

LogConfig config_of(const std::string& level, const std::string& format = "text", std::uint32_t rate = 1'000'000) {
  return LogConfig{level, format, rate};
}

// Returns the text that the log wrote to stderr while `work` ran.
std::string stderr_of(const std::function<void()>& work) {
  testing::internal::CaptureStderr();
  work();
  return testing::internal::GetCapturedStderr();
}

TEST(Log, TextLineHasTimeLevelTaskAndText) {
  const LogLine line{1'700'000'000'123'456'789, kTask, 2, "hello"};
  EXPECT_EQ(to_text(line), "2023-11-14 22:13:20.123 warn  ps/1 hello");
}

LogEntry entry_of(const std::string& text, LogFields fields = {}) {
  return LogEntry{{1'700'000'000'123'456'789, kTask, 3, text}, std::move(fields), std::source_location::current()};
}

TEST(Log, JsonLineCanBeParsed) {
  const auto json = nlohmann::json::parse(to_json(entry_of("a \"quote\"\nand bytes \xff")));
  EXPECT_EQ(json["time"], "2023-11-14T22:13:20.123456Z");
  EXPECT_EQ(json["level"], "error");
  EXPECT_EQ(json["task"], "ps/1");
  EXPECT_THAT(json["message"].get<std::string>(), HasSubstr("a \"quote\"\nand bytes "));
  EXPECT_THAT(json["code"].get<std::string>(), HasSubstr("log_test.cc:"));
  for (const char* unknown : {"job", "step", "event"}) EXPECT_FALSE(json.contains(unknown)) << unknown;
}

TEST(Log, JsonLineHasWhatItIsAbout) {
  const auto json = nlohmann::json::parse(to_json(entry_of("x", {"rolled_back", "digits", 12})));
  EXPECT_EQ(json["job"], "digits");
  EXPECT_EQ(json["step"], 12);
  EXPECT_EQ(json["event"], "rolled_back");
}

TEST(Log, JournalEntryHasItsFields) {
  const JournalFields fields = to_journal(entry_of("two\nlines", {"rolled_back", "digits", 12}));
  const std::map<std::string, std::string> by_name(fields.begin(), fields.end());
  EXPECT_EQ(by_name.at("MESSAGE"), "two\nlines");
  EXPECT_EQ(by_name.at("PRIORITY"), "3");
  EXPECT_EQ(by_name.at("DISTTRAIN_TASK"), "ps/1");
  EXPECT_EQ(by_name.at("DISTTRAIN_JOB"), "digits");
  EXPECT_EQ(by_name.at("DISTTRAIN_STEP"), "12");
  EXPECT_EQ(by_name.at("DISTTRAIN_EVENT"), "rolled_back");
  EXPECT_EQ(by_name.at("MESSAGE_ID"), message_id_of("rolled_back"));
  EXPECT_EQ(by_name.at("CODE_FILE"), "tests/common/daemon/log/log_test.cc");
  EXPECT_EQ(to_journal(entry_of("x")).size(), 6u);
}

TEST(Log, LinesAreAboutTheJobThatWasSet) {
  const std::string written = stderr_of([] {
    Log log(kTask, config_of("info", "json"));
    log.set_job("digits");
    log.set_step(7);
    log.info("of the job");
    log.write(Level::kInfo, "of another", {.job = "letters"});
    log.set_job("");
    log.info("of none");
  });
  std::istringstream lines(written);
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(nlohmann::json::parse(line)["job"], "digits");
  EXPECT_EQ(nlohmann::json::parse(line)["step"], 7);
  std::getline(lines, line);
  EXPECT_EQ(nlohmann::json::parse(line)["job"], "letters");
  EXPECT_FALSE(nlohmann::json::parse(line).contains("step"));
  std::getline(lines, line);
  EXPECT_FALSE(nlohmann::json::parse(line).contains("job"));
}

// Users search systemd's journal by the message ids that docs/logs.md and docs/json.md list.
TEST(MessageIds, AreTheDocumentedOnes) {
  const auto text_of = [](const std::string& file) {
    std::ifstream in(DISTTRAIN_SOURCE_DIR "/docs/" + file);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  const std::string documented = text_of("logs.md");
  std::set<std::string> ids;
  for (const MessageId& message : message_ids()) {
    EXPECT_THAT(documented, HasSubstr("| `" + std::string(message.kind) + "` | `" + message.id + "` |"));
    EXPECT_EQ(std::string(message.id).size(), 32u);
    EXPECT_TRUE(ids.insert(message.id).second) << message.id << " twice";
  }
  const std::string kinds = text_of("json.md");
  const std::size_t begin = kinds.find("| kind | when |");
  std::istringstream rows(kinds.substr(begin, kinds.find("\n\n", begin) - begin));
  std::string row;
  std::getline(rows, row);
  std::getline(rows, row);
  std::size_t seen = 0;
  const std::regex quoted("`([a-z_]+)`");
  while (std::getline(rows, row)) {
    const std::string names = row.substr(0, row.find('|', 1));
    for (std::sregex_iterator name(names.begin(), names.end(), quoted); name != std::sregex_iterator(); ++name, ++seen)
      EXPECT_STRNE(message_id_of((*name)[1]), "") << (*name)[1];
  }
  EXPECT_GE(seen, 20u);
}

TEST(Log, BytesThatCommandATerminalAreShown) {
  EXPECT_THAT(to_text(LogLine{0, kTask, 1, "\x1b[2J\rx"}), HasSubstr("\\x1b[2J\\x0dx"));
  EXPECT_THAT(to_text(LogLine{0, kTask, 1, "a\n2026-01-01 forged"}), HasSubstr("a\n    2026-01-01 forged"))
      << "no line but the first begins like an entry";
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
    // One line may pass in each second. Two lines pass if a new second begins during the loop.
    for (int i = 0; i < 100; ++i) log.info("again and again");
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

// What stderr's pipe holds now.
std::string drain(int pipe) {
  std::string text(1 << 20, '\0');
  const ssize_t got = ::read(pipe, text.data(), text.size());
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return text;
}

TEST(Log, AStderrThatNobodyReadsDoesntBlockTheWriter) {
  int pipe[2];
  ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
  const int stderr_before = ::dup(STDERR_FILENO);
  ::dup2(pipe[1], STDERR_FILENO);
  ::close(pipe[1]);
  constexpr std::size_t kLines = 2000;
  std::string written;
  {
    Log log(kTask, config_of("info"));
    for (std::size_t i = 0; i < kLines; ++i) log.info("line " + std::to_string(i) + std::string(100, 'x'));
    log.info(std::string(3 * kMaxLogLineBytes, 'y'));
    written = drain(pipe[0]);
    log.info("read again");
    written += drain(pipe[0]);
  }
  ::dup2(stderr_before, STDERR_FILENO);
  ::close(stderr_before);
  ::close(pipe[0]);
  const auto whole = static_cast<std::size_t>(std::count(written.begin(), written.end(), 'l'));
  std::smatch note;
  ASSERT_TRUE(std::regex_search(
      written, note,
      std::regex("\n\\((\\d+) lines of this log were dropped here, because nobody read stderr\\)\n.*read again\n$")));
  // The note has two more letters "l". The immense line was dropped, too.
  EXPECT_EQ(whole - 2 + std::stoul(note[1]), kLines + 1);
}

}  // namespace
}  // namespace disttrain::daemon
