// A process that a bug ends first reports the bug. These tests check its report. Each crash happens in a child process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "common/check.h"
#include "common/daemon/crash.h"
#include "common/daemon/crash_text.h"
#include "common/daemon/log/log.h"
#include "common/daemon/threads.h"

namespace disttrain::daemon {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::KilledBySignal;

const TaskId kTask{Role::kPs, 1};

void report_as_text() {
  report_crashes(kTask, LogForm::kText);
}

bool is_taken(int signal) {
  struct sigaction action {};
  ::sigaction(signal, nullptr, &action);
  return action.sa_handler != SIG_DFL;
}

void fail_check() {
  const int found = 1;
  DISTTRAIN_CHECK_EQ(found, 2);
}

TEST(CrashDeathTest, NullPointerSaysWhereAndEndsBySegv) {
  if (is_taken(SIGSEGV)) GTEST_SKIP() << "a sanitizer has SIGSEGV";
  const auto crash = [] {
    report_as_text();
    name_thread("guilty");
    volatile int* nowhere = nullptr;
    *nowhere = 1;
  };
  EXPECT_EXIT(crash(), KilledBySignal(SIGSEGV),
              AllOf(ContainsRegex("20[0-9-]+ [0-9:.]+ error ps/1 crashed: SIGSEGV at address 0x0, thread guilty\n"),
                    ContainsRegex(" info  ps/1 .*common_daemon_crash_test.*\\[0x[0-9a-f]+\\]\n")));
}

// Calls itself until the stack is used up.
int recurse(int depth) {
  volatile char frame[4096] = {};
  frame[0] = static_cast<char>(depth);
  return depth < 0 ? 0 : recurse(depth + 1) + frame[0];
}

TEST(CrashDeathTest, StackOverflowOfAnyThreadIsReported) {
  if (is_taken(SIGSEGV)) GTEST_SKIP() << "a sanitizer has SIGSEGV";
  const auto crash = [] {
    report_as_text();
    std::thread([] {
      name_thread("deep");
      recurse(0);
    }).join();
  };
  EXPECT_EXIT(crash(), KilledBySignal(SIGSEGV), "error ps/1 crashed: SIGSEGV at address 0x[0-9a-f]+, thread deep\n");
}

TEST(CrashDeathTest, SentSignalNamesItsSender) {
  if (is_taken(SIGSEGV)) GTEST_SKIP() << "a sanitizer has SIGSEGV";
  const auto crash = [] {
    report_as_text();
    ::kill(::getpid(), SIGSEGV);
    ::pause();
  };
  EXPECT_EXIT(crash(), KilledBySignal(SIGSEGV),
              "crashed: SIGSEGV, sent by process [0-9]+, taken by the thread .*; another thread may be at fault");
}

// What a child process adds to its file of notes when `end` ends it.
template <typename End>
std::string note_of(int signal, End end) {
  const int file = ::memfd_create("notes", MFD_CLOEXEC);
  const auto crash = [file, end] {
    report_as_text();
    note_crashes_in(file);
    std::thread([end] {
      note_work(34);
      end();
    }).join();
  };
  EXPECT_EXIT(crash(), KilledBySignal(signal), "crashed: ");
  std::array<char, 16> text{};
  const ssize_t size = ::pread(file, text.data(), text.size(), 0);
  ::close(file);
  return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
}

TEST(CrashDeathTest, CrashIsNotedWithTheWorkOfItsThread) {
  EXPECT_EQ(note_of(SIGABRT, fail_check), "34\n");
}

TEST(CrashDeathTest, SentSignalIsNotNoted) {
  const auto send = [] {
    const pid_t daemon = ::getpid();
    const pid_t thread = ::gettid();
    if (::fork() == 0) {
      ::syscall(SYS_tgkill, daemon, thread, SIGABRT);
      ::_exit(0);
    }
    while (true) ::pause();
  };
  EXPECT_EQ(note_of(SIGABRT, send), "");
}

// The daemon doesn't call abort() itself: another process sends SIGABRT, as systemd's watchdog does.
TEST(CrashDeathTest, AbortFromOutsideNamesItsSender) {
  const auto crash = [] {
    report_as_text();
    const pid_t daemon = ::getpid();
    if (::fork() == 0) {
      ::kill(daemon, SIGABRT);
      ::_exit(0);
    }
    while (true) ::pause();
  };
  EXPECT_EXIT(crash(), KilledBySignal(SIGABRT), "crashed: SIGABRT, sent by process [0-9]+, taken by the thread");
}

TEST(CrashDeathTest, FailedCheckSaysBothValuesAndEndsByAbort) {
  const auto crash = [] {
    report_as_text();
    fail_check();
  };
  EXPECT_EXIT(crash(), KilledBySignal(SIGABRT),
              AllOf(ContainsRegex("crashed: SIGABRT, thread .*crash_test.cc:[0-9]+: check failed: found == 2 "),
                    HasSubstr("(1 and 2)"), HasSubstr(" info  ps/1 ")));
}

TEST(CrashDeathTest, UncaughtExceptionSaysItsTypeAndText) {
  const auto crash = [] {
    report_as_text();
    std::thread([] { throw std::out_of_range("no such place"); }).join();
  };
  EXPECT_EXIT(crash(), KilledBySignal(SIGABRT),
              "crashed: SIGABRT, thread .*: uncaught exception std::out_of_range: no such place");
}

TEST(CrashDeathTest, TwoThreadsAtOnceMakeOneReport) {
  const auto crash = [] {
    report_as_text();
    std::thread other([] { fail_check(); });
    fail_check();
    other.join();
  };
  EXPECT_EXIT(crash(), KilledBySignal(SIGABRT), ContainsRegex("crashed: "));
}

TEST(CrashDeathTest, JsonLinesStayJsonLines) {
  const auto crash = [] {
    report_crashes(kTask, LogForm::kJson);
    std::thread([] { throw std::runtime_error("a \"quote\""); }).join();
  };
  const auto all_lines_parse = [](const std::string& text) {
    std::istringstream lines(text);
    std::size_t count = 0;
    for (std::string line; std::getline(lines, line); ++count)
      if (nlohmann::json::parse(line).at("task") != "ps/1") return false;
    return count > 2;
  };
  EXPECT_EXIT(crash(), KilledBySignal(SIGABRT), AllOf(HasSubstr("a \\\"quote\\\""), testing::Truly(all_lines_parse)));
}

TEST(CrashDeathTest, OverflownStackIsToldFromAnotherOne) {
  if (is_taken(SIGSEGV)) GTEST_SKIP() << "a sanitizer has SIGSEGV";
  struct Endless {
    static int deeper(volatile char* above) {
      volatile char frame[1024];
      frame[0] = above[0];
      if (frame[0] != 0) return 0;  // never
      return deeper(frame) + frame[0];
    }
  };
  const auto crash = [] {
    report_as_text();
    volatile char top = 0;
    Endless::deeper(&top);
  };
  EXPECT_EXIT(crash(), KilledBySignal(SIGSEGV), "crashed: SIGSEGV at address 0x[0-9a-f]+");
}

TEST(CrashText, LinesLookAsTheLogs) {
  const LogLine line{1'700'000'000'123'456'789, kTask, 3, "hello"};
  std::array<char, 200> bytes;
  CrashText text(bytes);
  text.add_log_line(false, line.wall_nanoseconds, "error", "ps/1", "hello");
  EXPECT_EQ(text.view(), to_text(line) + "\n");
  CrashText json(bytes);
  json.add_log_line(true, line.wall_nanoseconds, "error", "ps/1", "hello");
  EXPECT_EQ(nlohmann::json::parse(json.view())["time"], "2023-11-14T22:13:20.123456Z");
}

TEST(CrashText, WhatDoesNotFitIsLeftOut) {
  std::array<char, 4> bytes;
  CrashText text(bytes);
  text.add("abc");
  text.add("def");
  EXPECT_EQ(text.view(), "abcd");
}

}  // namespace
}  // namespace disttrain::daemon
