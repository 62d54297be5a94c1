#include "common/daemon/service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include <asio/post.hpp>

#include "common/daemon/clock.h"

namespace disttrain::daemon {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// The watchdog's time. It sets how often the loops are checked. A loop counts as hung if it hasn't run for a number of
// checks. The time between the checks doesn't matter, so a loop on a slow machine doesn't count as hung.
constexpr Duration kWatchdog = milliseconds(40);

// Stands in for systemd.
class ServiceTest : public testing::Test {
 protected:
  ServiceTest() {
    LogConfig config;
    config.level = "error";
    log_ = std::make_unique<Log>(TaskId{Role::kPs, 0}, config);
    fd_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    // The name of an abstract socket begins with a 0 byte, for which sd_notify writes "@".
    const std::string name = "disttrain-service-test-" + std::to_string(getpid());
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), length), 0);
    setenv("NOTIFY_SOCKET", ("@" + name).c_str(), 1);
  }
  ~ServiceTest() override {
    close(fd_);
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
  }

  void start(std::vector<WatchedLoop> loops = {}) {
    service_ = std::make_unique<Service>(loop_, *log_, std::move(loops), [this] { return state_; });
  }
  void watch(Duration every) {
    setenv("WATCHDOG_USEC", std::to_string(every / std::chrono::microseconds(1)).c_str(), 1);
  }

  // The messages since the last call.
  std::vector<std::string> heard() {
    std::vector<std::string> messages;
    char text[4096];
    for (ssize_t size; (size = recv(fd_, text, sizeof(text), 0)) >= 0;)
      messages.emplace_back(text, static_cast<std::size_t>(size));
    return messages;
  }
  // Returns all messages up to the first that contains `what`. Fails after 10 s without such a message.
  std::vector<std::string> hear_until(const std::string& what) {
    std::vector<std::string> all;
    for (const Instant end = now() + seconds(10); now() < end;) {
      loop_.run_one_for(milliseconds(10));
      for (std::string& message : heard()) all.push_back(std::move(message));
      for (const std::string& message : all)
        if (message.find(what) != std::string::npos) return all;
    }
    ADD_FAILURE() << "nobody said " << what;
    return all;
  }

  asio::io_context loop_{1};
  std::unique_ptr<Log> log_;
  ServiceState state_{"makes its shards", false, false};
  std::unique_ptr<Service> service_;
  int fd_ = -1;
};

TEST_F(ServiceTest, ReadinessIsToldOnceAndAfterTheStatusBeforeIt) {
  start();
  EXPECT_THAT(hear_until("STATUS"), ElementsAre("STATUS=makes its shards\n"));
  state_ = ServiceState{"job mnist, step 1", true, false};
  EXPECT_THAT(hear_until("READY=1"), ElementsAre("READY=1\nSTATUS=job mnist, step 1\n"));
  state_.status = "job mnist, step 2";
  EXPECT_THAT(hear_until("step 2"), ElementsAre("STATUS=job mnist, step 2\n"));
}

TEST_F(ServiceTest, StatusIsOneLineOfBoundedLength) {
  state_.status = "first\nREADY=1";
  start();
  EXPECT_THAT(hear_until("STATUS"), ElementsAre("STATUS=first\n"));
  tell_status(std::string(10'000, 'x'));
  EXPECT_LT(heard().front().size(), 1000u);
}

TEST_F(ServiceTest, SystemdThatDoesNotReadHoldsNobodyUpAndHearsTheNewestLater) {
  for (int i = 0; i < 1000; ++i) tell_status("many");  // more messages than the socket's queue can hold
  start();
  loop_.run_one_for(seconds(10));
  service_->reloading();
  service_->reloaded();
  state_ = ServiceState{"job mnist, step 3", true, false};
  heard();
  EXPECT_THAT(hear_until("step 3"), ElementsAre("READY=1\nSTATUS=job mnist, step 3\n"));
}

TEST_F(ServiceTest, BusyDaemonAsksForMoreTime) {
  state_.is_busy = true;
  start();
  EXPECT_THAT(hear_until("STATUS").front(), HasSubstr("EXTEND_TIMEOUT_USEC="));
}

TEST_F(ServiceTest, WatchdogHearsOfLoopsThatTurn) {
  watch(kWatchdog);
  start({{"shard-0", [this](const std::function<void()>& task) { asio::post(loop_, task); }, {}}});
  hear_until("WATCHDOG=1");
  hear_until("WATCHDOG=1");
}

// While a loop hangs, a busy daemon must not ask systemd for more time: systemd would then notice the hang later.
TEST_F(ServiceTest, WatchdogHearsNothingOnceALoopHangsHoweverBusyItIs) {
  watch(kWatchdog);
  state_.is_busy = true;
  bool hangs = false;
  int looks = 0;
  start({{"shard-0",
          [this, &hangs](const std::function<void()>& task) {
            if (!hangs) asio::post(loop_, task);
          },
          [&looks] { return ++looks, 0; }}});
  hear_until("WATCHDOG=1");
  hangs = true;
  std::string said;
  log_->set_listener([this, &said] { said = log_->take(1).lines.front().text; });
  testing::internal::CaptureStderr();
  const auto take_turns = [this](const auto& is_over) {
    std::vector<std::string> all;
    for (const Instant end = now() + seconds(60); !is_over() && now() < end;) {
      loop_.run_one_for(milliseconds(10));
      // a full socket would drop later messages
      for (std::string& message : heard()) all.push_back(std::move(message));
    }
    EXPECT_TRUE(is_over());
    return all;
  };
  take_turns([&said] { return !said.empty(); });
  testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("the loop of thread shard-0 hasn't run"));
  // After ten more checks the loop still hasn't moved.
  heard();
  const std::vector<std::string> messages = take_turns([&looks, before = looks] { return looks >= before + 10; });
  EXPECT_THAT(messages, Not(Contains(HasSubstr("WATCHDOG=1"))));
  EXPECT_THAT(messages, Not(Contains(HasSubstr("EXTEND_TIMEOUT_USEC"))));
}

TEST_F(ServiceTest, LoopThatIsAtOneLongTaskIsWellAsLongAsItCountsTurns) {
  watch(kWatchdog);
  std::uint64_t turns = 0;
  start({{"shard-0", [](const std::function<void()>&) {}, [&turns] { return ++turns; }}});
  for (int i = 0; i < 10; ++i) hear_until("WATCHDOG=1");
}

TEST_F(ServiceTest, ReloadIsToldWithItsTimeAndItsEnd) {
  state_.is_ready = true;
  start();
  hear_until("READY=1");
  const auto before = now().time_since_epoch() / std::chrono::microseconds(1);
  service_->reloading();
  service_->reloaded();
  const std::vector<std::string> messages = heard();
  ASSERT_EQ(messages.size(), 2u);
  const std::string begin = "RELOADING=1\nMONOTONIC_USEC=";
  ASSERT_EQ(messages[0].substr(0, begin.size()), begin);
  EXPECT_GE(std::stoll(messages[0].substr(begin.size())), before);
  EXPECT_EQ(messages[1], "READY=1\nSTATUS=makes its shards");
}

TEST_F(ServiceTest, ReloadMakesNobodyReady) {
  start();
  hear_until("STATUS");
  service_->reloading();
  service_->reloaded();
  EXPECT_THAT(heard(), Not(Contains(HasSubstr("READY=1"))));
}

TEST_F(ServiceTest, EndIsToldWithWhatItWaitsFor) {
  start();
  hear_until("STATUS");
  state_ = ServiceState{"told to end", true, true};
  service_->stopping();
  const std::vector<std::string> messages = heard();
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_EQ(messages[0], "STOPPING=1\n");
  EXPECT_THAT(messages[1], HasSubstr("STATUS=told to end"));
}

TEST_F(ServiceTest, ProcessThatIsNoServiceSaysNothing) {
  const std::string name = std::getenv("NOTIFY_SOCKET");
  unsetenv("NOTIFY_SOCKET");
  watch(kWatchdog);
  start();
  service_->reloading();
  service_->reloaded();
  service_->stopping();
  EXPECT_EQ(loop_.run(), 0u) << "it posts nothing for later, either";
  setenv("NOTIFY_SOCKET", name.c_str(), 1);
  EXPECT_THAT(heard(), ElementsAre());
}

TEST_F(ServiceTest, PortInUseIsAskedForAgainAndTheStatusSaysSo) {
  int tries = 0;
  const Status listens = try_patiently([&tries]() -> Status {
    if (++tries < 2) return fail(ErrorCode::kUnavailable, "can't listen on 127.0.0.1:7110: Address already in use");
    return {};
  });
  EXPECT_TRUE(listens);
  EXPECT_EQ(tries, 2);
  EXPECT_THAT(heard(),
              ElementsAre(HasSubstr("Address already in use; tries again in"), HasSubstr("EXTEND_TIMEOUT_USEC=")));
}

TEST_F(ServiceTest, OtherProblemsOfListeningAreFinal) {
  int tries = 0;
  const Status listens = try_patiently([&tries]() -> Status {
    ++tries;
    return fail(ErrorCode::kNoPermission, "no");
  });
  EXPECT_FALSE(listens);
  EXPECT_EQ(tries, 1);
}

}  // namespace
}  // namespace disttrain::daemon
