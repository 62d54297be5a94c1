// Polling before a sleep: whether a thread polls or sleeps, it runs each handler once, and ends when there is no work.
#include "transport/spin.h"

#include <gtest/gtest.h>

#include <asio/executor_work_guard.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <optional>
#include <thread>
#include <vector>

namespace disttrain::transport {
namespace {

TEST(Spin, HandlersRunOneAtATimeInOrder) {
  asio::io_context loop;
  Spinner spinner;
  std::vector<int> ran;
  for (int i = 0; i < 3; ++i) asio::post(loop, [&ran, i] { ran.push_back(i); });
  for (std::size_t i = 1; i <= 3; ++i) {
    EXPECT_EQ(spinner.run_one(loop), 1u);
    EXPECT_EQ(ran.size(), i);
  }
  EXPECT_EQ(ran, (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(spinner.run_one(loop), 0u) << "a loop without work doesn't wait";
}

// Runs a loop on a thread of its own, until it is destroyed.
class OtherThread {
 public:
  ~OtherThread() {
    loop.stop();
    thread_.join();
  }
  asio::io_context loop;

 private:
  const asio::executor_work_guard<asio::io_context::executor_type> work_{loop.get_executor()};
  std::thread thread_{[this] { loop.run(); }};
};

// Events that come at once make the thread poll, and a late one makes it sleep. It must notice each of both.
TEST(Spin, EventsOfAnotherThreadArriveWhetherItPollsOrSleeps) {
  for (const bool is_of_one_host : {false, true}) {
    std::optional<SpinReason> reason;
    if (is_of_one_host) reason.emplace();
    asio::io_context loop;
    const auto work = asio::make_work_guard(loop);
    OtherThread other;
    Spinner spinner;
    int answers = 0;
    for (int i = 0; i < 2000; ++i) {
      asio::post(other.loop, [&loop, &answers] { asio::post(loop, [&answers] { ++answers; }); });
      ASSERT_EQ(spinner.run_one(loop), 1u);
      ASSERT_EQ(answers, i + 1);
      if (i % 500 != 499) continue;
      asio::steady_timer late(loop, std::chrono::milliseconds(2));
      bool has_fired = false;
      late.async_wait([&has_fired](const asio::error_code&) { has_fired = true; });
      ASSERT_EQ(spinner.run_one(loop), 1u);
      ASSERT_TRUE(has_fired);
    }
  }
}

TEST(Spin, AReasonCountsOnlyOnItsThread) {
  EXPECT_FALSE(SpinReason::exists());
  {
    const SpinReason first, second;
    EXPECT_TRUE(SpinReason::exists());
    std::thread([] { EXPECT_FALSE(SpinReason::exists()); }).join();
  }
  EXPECT_FALSE(SpinReason::exists());
}

TEST(Spin, AStoppedLoopEndsTheWait) {
  asio::io_context loop;
  const auto work = asio::make_work_guard(loop);
  Spinner spinner;
  std::thread stopper([&loop] { loop.stop(); });
  EXPECT_EQ(spinner.run_one(loop), 0u);
  stopper.join();
}

}  // namespace
}  // namespace disttrain::transport
