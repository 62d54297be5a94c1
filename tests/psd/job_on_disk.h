// A ps whose job keeps checkpoints in a folder on the disk.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <string>

#include "common/checkpoint/job_folder.h"
#include "common/checkpoint/shard_file.h"
#include "tests/psd/shell_fixture.h"

namespace disttrain::psd::test {

class PsWithFolder : public PsShell {
 protected:
  explicit PsWithFolder(std::uint32_t threads = 2, Duration patience = std::chrono::minutes(1))
      : PsShell(threads, std::chrono::milliseconds(500), 4, "error", "auto", patience) {
    std::string pattern = testing::TempDir() + "ps-folder-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    EXPECT_TRUE(checkpoint::write_token(files_, folder_, kMark));
  }
  ~PsWithFolder() override { std::filesystem::remove_all(folder_); }

  // The order to create a job whose checkpoints are in folder_. Without `stall_timeout`, the default applies.
  CreateShards order_with_folder(std::uint32_t shards, std::uint32_t workers, const std::string& mode,
                                 std::optional<Duration> stall_timeout = std::nullopt) {
    CreateShards created = order(shards, workers, mode);
    created.checkpoint_folder = folder_;
    created.checkpoint_mark = kMark;
    if (stall_timeout) {
      auto config = std::make_shared<JobConfig>(*created.config);
      config->job.stall_timeout = *stall_timeout;
      created.config = config;
    }
    return created;
  }

  // Creates the attempt's folder, as the chief does.
  std::string begin_attempt(std::uint64_t attempt) {
    EXPECT_TRUE(checkpoint::begin_attempt(files_, folder_, Generation(3), attempt));
    return checkpoint::attempt_path(folder_, Generation(3), attempt);
  }
  std::string prepare(std::uint64_t attempt, bool holds = false) {
    const std::string path = begin_attempt(attempt);
    chief_.send(PrepareCheckpoint{JobId(5), Generation(3), attempt, path, holds});
    return path;
  }
  template <typename Message>
  std::optional<Message> hears() {
    std::optional<Message> message;
    EXPECT_TRUE(until([&] { return (message = chief_.take<Message>()).has_value(); }));
    return message;
  }
  // The ps answers orders one after the other. So this waits until the ps has carried out all earlier orders, and their
  // answers have arrived.
  void settle() {
    const std::uint32_t number = ++last_settled_;
    chief_.send(CloseJob{JobId(1000 + number), Generation(1), "no such job"});
    EXPECT_TRUE(until([&] {
      const auto closed = chief_.take<JobClosed>();
      return closed && closed->job == JobId(1000 + number);
    }));
  }

  static constexpr std::uint64_t kMark = 77;
  std::string folder_;
  std::uint32_t last_settled_ = 0;
};

}  // namespace disttrain::psd::test
