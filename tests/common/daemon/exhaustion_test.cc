// Processes that run out of system resources. Each is a child process.
#include "common/daemon/exhaustion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>

#include "common/daemon/crash.h"
#include "common/daemon/log/log.h"
#include "common/daemon/signals.h"

namespace disttrain::daemon {
namespace {

using testing::ExitedWithCode;
using testing::HasSubstr;
using testing::KilledBySignal;

void limit(__rlimit_resource resource, rlim_t most) {
  const rlimit both{most, most};
  ::setrlimit(resource, &both);
}

// noexcept, because GoogleTest would catch the exception.
void uncaught(void (*work)()) noexcept {
  work();
}

void in_a_thread(void (*work)()) {
  std::thread(work).join();
}

void need_memory() {
  throw std::bad_alloc();
}
void need_thread() {
  throw std::system_error(EAGAIN, std::system_category());
}
void need_descriptor() {
  throw std::system_error(EMFILE, std::system_category(), "epoll");
}

TEST(ExhaustionDeathTest, EndsWithASentenceAnd75InEveryThread) {
  for (const bool has_log : {false, true}) {
    const auto begin = [has_log] {
      end_when_exhausted("psd");
      if (has_log) report_crashes(TaskId{Role::kPs, 1}, LogForm::kText);
    };
    EXPECT_EXIT((begin(), uncaught(need_memory)), ExitedWithCode(75), "psd: out of memory: raise `ulimit -v`");
    EXPECT_EXIT((begin(), in_a_thread(need_memory)), ExitedWithCode(75), "psd: out of memory: raise `ulimit -v`");
    EXPECT_EXIT((begin(), uncaught(need_thread)), ExitedWithCode(75), "psd: can't start a thread: raise `ulimit -u`");
    EXPECT_EXIT((begin(), uncaught(need_descriptor)), ExitedWithCode(75),
                "psd: out of file descriptors: raise `ulimit -n`");
  }
}

TEST(ExhaustionDeathTest, OtherExceptionsAreCrashes) {
  const auto fail = []() noexcept {
    end_when_exhausted("psd");
    report_crashes(TaskId{Role::kPs, 1}, LogForm::kText);
    uncaught([] { throw std::runtime_error("a bug"); });
  };
  EXPECT_EXIT(fail(), KilledBySignal(SIGABRT), "uncaught exception std::runtime_error: a bug");
}

TEST(ExhaustionTest, IsAnErrorToTryAgain) {
  const auto error = exhaustion_in(std::make_exception_ptr(std::bad_alloc()));
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::kTemporary);
  EXPECT_THAT(error->message, HasSubstr("out of memory"));
  EXPECT_FALSE(exhaustion_in(std::make_exception_ptr(std::runtime_error("a bug"))));
  EXPECT_FALSE(exhaustion_in(std::make_exception_ptr(std::system_error(ECONNRESET, std::system_category()))));
}

// Ends the process with exit code 0 if `is_right`. Only the child process of a death test calls this, because a lowered
// limit can't be raised again.
void end(bool is_right, const std::string& said) {
  ::write(STDERR_FILENO, said.data(), said.size());
  ::_exit(is_right ? 0 : 1);
}

TEST(LimitsDeathTest, TooFewDescriptorsAreRefused) {
  const auto begin = [] {
    limit(RLIMIT_NOFILE, 8);
    const Status raised = raise_limits(1024);
    end(!raised && raised.error().code == ErrorCode::kConfig, raised ? "no error" : raised.error().message);
  };
  EXPECT_EXIT(begin(), ExitedWithCode(0), "the limit of open files is 8; expected at least 64: raise `ulimit -n`");
}

TEST(LimitsDeathTest, TooSmallAStackIsRefused) {
  const auto begin = [] {
    limit(RLIMIT_STACK, 65536);
    const Status raised = raise_limits(0);
    end(!raised && raised.error().code == ErrorCode::kConfig, raised ? "no error" : raised.error().message);
  };
  EXPECT_EXIT(begin(), ExitedWithCode(0), "the limit of the stack is 64 KiB; expected at least 256: raise `ulimit -s`");
}

TEST(LimitsDeathTest, SoftLimitsAreRaised) {
  const auto begin = [] {
    rlimit files{};
    ::getrlimit(RLIMIT_NOFILE, &files);
    files.rlim_cur = 8;
    ::setrlimit(RLIMIT_NOFILE, &files);
    const bool is_raised = raise_limits(100).has_value();
    ::getrlimit(RLIMIT_NOFILE, &files);
    end(is_raised && files.rlim_cur == 100, "");
  };
  EXPECT_EXIT(begin(), ExitedWithCode(0), "");
}

TEST(LimitsDeathTest, WriteBeyondTheLimitOfAFileIsAnErrorOfTheWrite) {
  const auto begin = [] {
    ignore_write_signals();
    limit(RLIMIT_FSIZE, 0);
    std::FILE* const file = std::tmpfile();
    const ssize_t written = ::write(::fileno(file), "x", 1);
    ::_exit(written == -1 && errno == EFBIG ? 0 : 1);
  };
  EXPECT_EXIT(begin(), ExitedWithCode(0), "");
}

}  // namespace
}  // namespace disttrain::daemon
