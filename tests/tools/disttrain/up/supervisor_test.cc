// When a daemon has ended, the supervisor either restarts it at its address or leaves it down, and reports what it
// does. Here, shells play the daemons.
#include "tools/disttrain/up/supervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>

#include "tools/disttrain/log_tail.h"
#include "tools/disttrain/up/missing_tasks.h"

namespace disttrain::cli {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr TaskId kPs0{Role::kPs, 0};
constexpr TaskId kPs1{Role::kPs, 1};
constexpr TaskId kChief{Role::kChief, 0};

// A script that runs until a signal ends it, like a daemon.
constexpr char kRun[] = "kill -STOP $$";

class Supervised : public testing::Test {
 protected:
  Supervised() {
    std::string pattern = (fs::temp_directory_path() / "disttrain-supervisor-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
  }
  ~Supervised() override {
    if (supervisor_) supervisor_->stop(10s);
    fs::remove_all(folder_);
  }

  void begin(bool restarts) {
    supervisor_ = std::make_unique<Supervisor>(loop_, restarts, [this](const std::string& line) {
      said_.push_back(line);
      if (on_said_) on_said_();
    });
  }

  // Returns the daemon's address.
  std::string start(TaskId task, const std::string& script) {
    auto listener = bind_listener("127.0.0.1:0");
    EXPECT_TRUE(listener) << listener.error().message;
    const std::string address = listener->address;
    const Status started = supervisor_->start(
        DaemonProgram{task, "/bin/sh", {"-c", script}, folder_ / std::to_string(task.index)}, std::move(*listener));
    EXPECT_TRUE(started) << started.error().message;
    return address;
  }

  template <typename Condition>
  void until(Condition is_true) {
    const auto end = std::chrono::steady_clock::now() + 60s;
    while (!is_true() && std::chrono::steady_clock::now() < end) {
      loop_.restart();
      loop_.run_one_for(10ms);
    }
    EXPECT_TRUE(is_true());
  }

  std::vector<std::string> log_of(TaskId task) { return last_lines(supervisor_->log_of(task), 100); }

  // A script that kills its own process in its first run. A later run lasts until a signal ends it.
  std::string crash_once(const std::string& before = ":") {
    const std::string mark = (folder_ / "mark").string();
    return before + "; echo up; if [ -e " + mark + " ]; then " + kRun + "; else touch " + mark + "; kill -9 $$; fi";
  }

  asio::io_context loop_;
  fs::path folder_;
  std::vector<std::string> said_;
  std::function<void()> on_said_;
  std::unique_ptr<Supervisor> supervisor_;
};

TEST_F(Supervised, CrashedDaemonIsRestarted) {
  begin(true);
  start(kPs1, crash_once());
  until([this] { return log_of(kPs1).size() == 2; });
  EXPECT_THAT(
      said_,
      ElementsAre(testing::MatchesRegex("ps/1 \\(pid [0-9]+\\) was killed by signal 9 \\(Killed\\); restarting it")));
  EXPECT_EQ(supervisor_->ended().size(), 1u);
  EXPECT_FALSE(supervisor_->stays_down(kPs1));
  EXPECT_EQ(supervisor_->first_that_stays_down(), nullptr);
}

TEST_F(Supervised, SuccessorListensAtTheSameAddress) {
  begin(true);
  const std::string address = start(kPs1, crash_once("test -S /dev/fd/3 && test $LISTEN_PID = $$ || exit 78"));
  until([this] { return log_of(kPs1).size() == 2; });
  const auto taken = bind_listener(address);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, ErrorCode::kUnavailable);
}

TEST_F(Supervised, PortOfADeadDaemonIsClosed) {
  begin(false);
  const std::string address = start(kPs1, "exit 1");
  until([this] { return supervisor_->stays_down(kPs1); });
  EXPECT_TRUE(bind_listener(address));
}

TEST_F(Supervised, PortThatIsTakenForAMomentIsWaitedFor) {
  begin(true);
  std::string address;
  Result<ListeningSocket> thief = fail(ErrorCode::kUnavailable, "");
  // Takes the port after the daemon has crashed and before it is started again.
  on_said_ = [&] { thief = bind_listener(address); };
  address = start(kPs1, crash_once());
  until([&] { return thief.has_value(); });
  loop_.restart();
  loop_.run_one();  // tries to start the daemon, and finds its port taken
  thief->fd = {};
  until([this] { return log_of(kPs1).size() == 2; });
  EXPECT_FALSE(supervisor_->stays_down(kPs1));
}

TEST_F(Supervised, WrongConfigurationStaysDown) {
  begin(true);
  start(kPs1, "exit 78");
  until([this] { return supervisor_->stays_down(kPs1); });
  ASSERT_NE(supervisor_->first_that_stays_down(), nullptr);
  EXPECT_EQ(error_code_of(*supervisor_->first_that_stays_down()), ErrorCode::kConfig);
  EXPECT_THAT(said_, ElementsAre(HasSubstr("ended with exit code 78; it stays down: a restart would fail in the "
                                           "same way")));
}

TEST_F(Supervised, LastErrorIsReportedWithTheExitCode) {
  begin(true);
  start(kPs1, "echo 'psd: no room'; exit 78");
  until([this] { return supervisor_->stays_down(kPs1); });
  EXPECT_THAT(said_, ElementsAre(HasSubstr("ended with exit code 78 (no room); it stays down")));
}

TEST_F(Supervised, ErrorOfThePreviousProcessIsNotReported) {
  begin(true);
  const std::string mark = (folder_ / "mark").string();
  start(kPs1, "if [ -e " + mark + " ]; then exit 78; else touch " + mark + "; echo 'psd: no room'; exit 69; fi");
  until([this] { return supervisor_->stays_down(kPs1); });
  EXPECT_THAT(said_, ElementsAre(HasSubstr("exit code 69 (no room); restarting"), HasSubstr("exit code 78; it stays")));
}

TEST_F(Supervised, SilentDaemonIsKilledAndRestarted) {
  begin(true);
  start(kChief, std::string("echo up; ") + kRun);
  until([this] { return log_of(kChief).size() == 1; });
  EXPECT_TRUE(supervisor_->end_silent(kChief, 1h)) << "one that has just been started is left alone";
  EXPECT_TRUE(said_.empty());
  EXPECT_TRUE(supervisor_->end_silent(kChief, Duration::zero()));
  until([this] { return log_of(kChief).size() == 2; });
  EXPECT_THAT(said_, ElementsAre(HasSubstr("hasn't answered for 0 s: killing it"), HasSubstr("restarting it")));
}

TEST_F(Supervised, SilentDaemonThatWouldStayDownIsntKilled) {
  begin(false);
  start(kChief, kRun);
  EXPECT_FALSE(supervisor_->end_silent(kChief, Duration::zero()));
  EXPECT_FALSE(supervisor_->end_silent(kPs0, Duration::zero())) << "it isn't one of these";
  EXPECT_TRUE(said_.empty());
}

TEST_F(Supervised, NothingIsRestartedWithNoRestart) {
  begin(false);
  start(kPs1, crash_once());
  until([this] { return supervisor_->stays_down(kPs1); });
  EXPECT_THAT(said_, ElementsAre(HasSubstr("it stays down: --no-restart")));
  EXPECT_EQ(error_code_of(*supervisor_->first_that_stays_down()), ErrorCode::kFailed);
}

TEST_F(Supervised, StopEndsAllAndRestartsNothing) {
  begin(true);
  start(kPs0, kRun);
  start(kPs1, "trap 'exit 1' TERM; echo up; while :; do kill -STOP $$; done");
  until([this] { return log_of(kPs1).size() == 1; });
  supervisor_->stop(10s);
  EXPECT_TRUE(supervisor_->ended().empty());
  EXPECT_TRUE(said_.empty());
}

TEST_F(Supervised, DaemonThatIgnoresTermIsKilled) {
  begin(true);
  start(kPs1, "trap '' TERM; echo up; while :; do kill -STOP $$; done");
  until([this] { return log_of(kPs1).size() == 1; });
  supervisor_->stop(100ms);
  EXPECT_TRUE(supervisor_->ended().empty());
}

// ---- the conclusions that `up` draws about the job

Json awaited(const Json& task, const char* what) {
  return {{"task", task}, {"count", 1}, {"since", 1.0}, {"for", what}};
}
// The text in "reason" names all tasks. waits_for() must read only "waits_for".
Json paused(const std::vector<Json>& waits_for) {
  return {{"state", "paused"},
          {"reason", "waiting for ps/0, ps/1, worker/0, worker/1, 1 more worker; waiting for it to return"},
          {"waits_for", waits_for}};
}

TEST(WaitsFor, WorkerThatIsNamed) {
  const Json status = paused({awaited("worker/10", "hello")});
  EXPECT_TRUE(waits_for(status, TaskId{Role::kWorker, 10}));
  EXPECT_FALSE(waits_for(status, TaskId{Role::kWorker, 1}));
}

TEST(WaitsFor, AnyWorkerWhereTooFewAreLeft) {
  const Json status = paused({awaited(nullptr, "hello")});
  EXPECT_TRUE(waits_for(status, TaskId{Role::kWorker, 1}));
  EXPECT_FALSE(waits_for(status, kPs0));
}

TEST(WaitsFor, SilentPs) {
  const Json status = paused({awaited("ps/1", "heartbeat")});
  EXPECT_TRUE(waits_for(status, kPs1));
  EXPECT_FALSE(waits_for(status, kPs0));
}

TEST(WaitsFor, LostTaskOnlyWhileItIsMissing) {
  EXPECT_TRUE(waits_for(paused({awaited("ps/1", "hello"), awaited("ps/0", "hello")}), kPs0));
  EXPECT_FALSE(waits_for(paused({awaited("ps/1", "hello")}), kPs0));
  EXPECT_FALSE(waits_for(paused({awaited("ps/0", "shards")}), kPs0)) << "it is there";
  EXPECT_FALSE(waits_for(paused({}), kPs0));
}

TEST(WaitsFor, EveryTaskBeforeTheStartAndNoneWhileItRuns) {
  for (const Json& status : {Json(), Json{{"state", "queued"}}, Json{{"state", "starting"}}})
    EXPECT_TRUE(waits_for(status, kPs0)) << status;
  for (const char* state : {"running", "evaluating", "stopping"})
    EXPECT_FALSE(waits_for(Json{{"state", state}, {"waits_for", {awaited("ps/0", "hello")}}}, kPs0)) << state;
}

TEST_F(Supervised, JobIsGivenUpWhenTheChiefStaysDown) {
  begin(false);
  start(kChief, "exit 3");
  MissingTasks missing(*supervisor_, 1);
  const Json status = {{"state", "running"}};
  EXPECT_FALSE(missing.judge(status));
  until([this] { return supervisor_->stays_down(kChief); });
  const auto error = missing.judge(status);
  ASSERT_TRUE(error);
  EXPECT_THAT(error->message, HasSubstr("ended with exit code 3"));
  EXPECT_EQ(missing.blamed()->task, kChief);
}

TEST_F(Supervised, JobIsGivenUpForTheLastPs) {
  begin(false);
  start(kPs0, "exit 1");
  until([this] { return supervisor_->stays_down(kPs0); });
  MissingTasks alone(*supervisor_, 1);
  until([&alone] { return alone.judge(paused({awaited("ps/0", "hello")})).has_value(); });
  EXPECT_EQ(alone.blamed()->task, kPs0);
}

TEST_F(Supervised, JobIsntGivenUpWhileTheChiefFindsAnotherPs) {
  begin(false);
  start(kPs0, "exit 1");
  until([this] { return supervisor_->stays_down(kPs0); });
  MissingTasks with_another(*supervisor_, 2);
  MissingTasks at_the_start(*supervisor_, 2);
  until([&] {
    EXPECT_FALSE(with_another.judge(paused({awaited("ps/0", "hello")})));
    return at_the_start.judge(Json{{"state", "starting"}}).has_value();  // every ps is needed there
  });
}

}  // namespace
}  // namespace disttrain::cli
