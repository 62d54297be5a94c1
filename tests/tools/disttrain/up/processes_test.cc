// The child processes, sockets and folders of `up`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>

#include "common/daemon/startup.h"
#include "tools/disttrain/log_tail.h"
#include "tools/disttrain/up/child.h"
#include "tools/disttrain/up/runtime_folder.h"

namespace disttrain::cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const TaskId kTask{Role::kPs, 1};

// A folder that is this test's XDG_RUNTIME_DIR.
class Processes : public testing::Test {
 protected:
  Processes() {
    std::string pattern = (fs::temp_directory_path() / "disttrain-cli-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    setenv("XDG_RUNTIME_DIR", folder_.c_str(), 1);
    unsetenv("DISTTRAIN_CLUSTER");
  }
  ~Processes() override { fs::remove_all(folder_); }

  // Starts a shell as the child, which runs `script`. The child also gets a listening socket.
  Child start(const std::string& script) {
    auto listener = bind_listener("127.0.0.1:0");
    EXPECT_TRUE(listener) << listener.error().message;
    auto child = Child::start(kTask, "/bin/sh", {"-c", script}, *listener, folder_ / "log");
    EXPECT_TRUE(child) << child.error().message;
    return std::move(*child);
  }

  fs::path folder_;
};

TEST_F(Processes, ListenerGetsARealPort) {
  auto listener = bind_listener("127.0.0.1:0");
  ASSERT_TRUE(listener) << listener.error().message;
  EXPECT_THAT(listener->address, testing::MatchesRegex("127.0.0.1:[1-9][0-9]*"));
}

TEST_F(Processes, PortInUseIsUnavailable) {
  auto first = bind_listener("127.0.0.1:0");
  ASSERT_TRUE(first);
  auto second = bind_listener(first->address);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(second.error().message, HasSubstr(first->address));
}

TEST_F(Processes, AddressOfAnotherHostIsAConfigError) {
  auto listener = bind_listener("192.0.2.1:7100");  // reserved for documentation (RFC 5737)
  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error().code, ErrorCode::kConfig);
}

TEST_F(Processes, ChildGetsItsSocketAndItsLog) {
  Child child =
      start("test \"$LISTEN_FDS\" = 1 && test \"$LISTEN_PID\" = $$ && test -S /dev/fd/3 && echo well; exit 75");
  child.reap_killed();  // waits until the child has ended
  EXPECT_THAT(last_lines(child.log(), 10), testing::ElementsAre("well"));
  EXPECT_EQ(child.exit_code(), 75);
  EXPECT_EQ(child.how_it_ended(), "ended with exit code 75");
}

TEST_F(Processes, KilledChildSaysItsSignal) {
  Child child = start("exec sleep 1000");
  EXPECT_TRUE(child.is_running());
  child.send(SIGKILL);
  child.reap_killed();
  EXPECT_FALSE(child.is_running());
  EXPECT_EQ(child.how_it_ended(), "was killed by signal 9 (Killed)");
  EXPECT_EQ(child.exit_code(), std::nullopt);
}

TEST_F(Processes, ChildDiesWithItsParent) {
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const pid_t parent = fork();
  if (parent == 0) {
    // The grandchild keeps one end of the pipe open until it dies.
    close(pipe_ends[0]);
    auto listener = bind_listener("127.0.0.1:0");
    auto child = Child::start(kTask, "/bin/sh", {"-c", "kill -STOP $$"}, *listener, folder_ / "log");
    kill(getpid(), SIGKILL);
  }
  close(pipe_ends[1]);
  waitpid(parent, nullptr, 0);
  char byte = 0;
  EXPECT_EQ(read(pipe_ends[0], &byte, 1), 0);  // read() returns only after every other process has closed its end
  close(pipe_ends[0]);
}

TEST_F(Processes, MissingProgramIsNamed) {
  auto listener = bind_listener("127.0.0.1:0");
  auto child = Child::start(kTask, folder_ / "psd", {}, *listener, folder_ / "log");
  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().code, ErrorCode::kNoInput);
  EXPECT_THAT(child.error().message, HasSubstr("can't start ps/1"));
}

TEST_F(Processes, LastLinesOfAMissingFileAreNone) {
  EXPECT_TRUE(last_lines(folder_ / "nothing", 5).empty());
  EXPECT_EQ(last_error(folder_ / "nothing", 0), "");
}

TEST_F(Processes, LastErrorIsTheWholeSentenceInEachFormOfALog) {
  const fs::path log = folder_ / "log";
  const auto error_of = [&log](const std::string& lines) {
    std::ofstream(log) << lines;
    return last_error(log, 0);
  };
  EXPECT_EQ(error_of("chiefd: no room\n2026-11-20 23:45:01.123 info  chief/0 ends\n"), "no room");
  EXPECT_EQ(error_of("psd: old\n2026-11-20 23:45:01.123 error ps/1 no room\n"), "no room");
  EXPECT_EQ(error_of(R"({"time": "2026-11-20T23:45:01Z", "level": "error", "task": "ps/1", "message": "no room"})"),
            "no room");
  EXPECT_EQ(error_of("2026-11-20 23:45:01.123 info  chief/0 no error \n{\n{}\n\n"), "");
}

TEST_F(Processes, ErrorsBeforeTheGivenByteDontCount) {
  const std::string before = "chiefd: old\n";
  std::ofstream(folder_ / "log") << before << "up\n";
  EXPECT_EQ(last_error(folder_ / "log", before.size()), "");
  EXPECT_EQ(last_error(folder_ / "log", 0), "old");
}

TEST_F(Processes, ClusterComesFromTheOptionThenTheVariableThenTheLiveUp) {
  auto live = Registration::make("job-1", "# it\n");
  ASSERT_TRUE(live) << live.error().message;
  EXPECT_EQ(find_cluster("").value(), (folder_ / "disttrain/job-1/cluster.toml").string());
  setenv("DISTTRAIN_CLUSTER", "/variable.toml", 1);
  EXPECT_EQ(find_cluster("").value(), "/variable.toml");
  EXPECT_EQ(find_cluster("/option.toml").value(), "/option.toml");
  unsetenv("DISTTRAIN_CLUSTER");
}

TEST_F(Processes, SeveralLiveUpsAreListed) {
  auto first = Registration::make("job-1", "");
  auto second = Registration::make("job-2", "");
  const auto found = find_cluster("");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::kUsage);
  EXPECT_THAT(found.error().message, testing::AllOf(HasSubstr("job-1/cluster.toml"), HasSubstr("job-2/cluster.toml")));
}

TEST_F(Processes, FolderOfADeadUpIsRemoved) {
  fs::create_directories(folder_ / "disttrain/old");
  std::ofstream(folder_ / "disttrain/old/cluster.toml") << "";
  EXPECT_TRUE(live_clusters().value().empty());
  EXPECT_FALSE(fs::exists(folder_ / "disttrain/old"));
}

TEST_F(Processes, RegistrationGoesWithItsObject) {
  {
    auto live = Registration::make("job-1", "");
    EXPECT_EQ(live_clusters().value().size(), 1u);
    auto same_name = Registration::make("job-1", "");
    ASSERT_FALSE(same_name);
    EXPECT_EQ(same_name.error().code, ErrorCode::kTemporary);
  }
  EXPECT_FALSE(fs::exists(folder_ / "disttrain/job-1"));
}

// In /tmp, anybody can create this folder before `up` does, and put a cluster of their own into it.
class StrangersFolder : public Processes {
 protected:
  StrangersFolder() {
    fs::create_directories(root_ / "theirs");
    std::ofstream(root_ / "theirs/cluster.toml") << "# theirs\n";
    fs::create_symlink(folder_ / "victim", root_ / "theirs/lock");
  }
  void expect_refused(const std::string& why) {
    for (const Error& error : {live_clusters().error(), Registration::make("job-1", "").error()}) {
      EXPECT_EQ(error.code, ErrorCode::kNoPermission);
      EXPECT_THAT(error.message, testing::AllOf(HasSubstr(root_.string()), HasSubstr(why),
                                                HasSubstr("set XDG_RUNTIME_DIR to a folder of your own")));
    }
    const auto found = find_cluster("");
    EXPECT_TRUE(!found || *found == daemon::kDefaultClusterFile) << *found;
    EXPECT_TRUE(fs::exists(root_ / "theirs/cluster.toml"));
    EXPECT_FALSE(fs::exists(folder_ / "victim"));
  }

  const fs::path root_ = folder_ / "disttrain";
};

TEST_F(StrangersFolder, WritableByOthersIsRefused) {
  fs::permissions(root_, fs::perms::others_write, fs::perm_options::add);
  expect_refused("others can write into it");
}

TEST_F(StrangersFolder, OfAnotherOwnerIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder away";
  constexpr uid_t kSomebody = 12345;
  ASSERT_EQ(lchown(root_.c_str(), kSomebody, kSomebody), 0);
  expect_refused("it belongs to user 12345, expected 0");
}

TEST_F(StrangersFolder, LinkIsRefused) {
  fs::rename(root_, folder_ / "elsewhere");
  fs::create_directory_symlink(folder_ / "elsewhere", root_);
  expect_refused("Not a directory");
}

TEST_F(StrangersFolder, LinkInPlaceOfALockIsNotFollowed) {
  EXPECT_TRUE(live_clusters().value().empty());
  EXPECT_FALSE(fs::exists(folder_ / "victim"));
}

TEST_F(Processes, NoClusterAtAllSaysWhatToDo) {
  if (fs::exists(daemon::kDefaultClusterFile)) GTEST_SKIP() << "this host has " << daemon::kDefaultClusterFile;
  const auto found = find_cluster("");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::kNoInput);
  EXPECT_THAT(found.error().message, HasSubstr("disttrain up --job"));
}

}  // namespace
}  // namespace disttrain::cli
