// The disk that all tasks share: slow, full, failing, lying or away for a while, and what is left of it when its host
// loses power.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/common/checkpoint/memory_files.h"
#include "tests/sim/shared_files.h"
#include "tests/sim/world.h"

namespace disttrain::sim {

class Storage {
 public:
  explicit Storage(World& world);

  enum class Trouble {
    kNone,
    kSlow,
    kFull,        // no room for anything new
    kWriteFails,  // now and then
    kSyncFails,   // now and then; what it was for isn't durable
    kLies,        // says that it has synced
  };
  void begin(Trouble trouble);
  void end() {
    trouble_ = Trouble::kNone;
    reach_ = Reach::kHere;
  }

  enum class Reach {
    kHere,
    kUnreadable,  // now and then
    kAway,        // no path of it is there
    kUnmounted,   // an empty folder is in its place
  };
  void lose(Reach how);
  // What is begun before then takes until then.
  void hang(Instant until);
  Instant hangs_until() const { return hung_until_; }

  // As tasks see it.
  checkpoint::Files& files() { return shared_; }
  // As it is. Valid until lose_power().
  checkpoint::MemoryFiles& truth() { return *files_; }
  // What an operation takes that begins then: what is begun while the disk hangs waits for its end.
  Duration delay(Instant begins);
  Duration delay() { return delay(world_.now()); }
  Duration slowest = std::chrono::milliseconds(5);

  // After so many more operations none is done any more; `work` is called at once, and is to kill whoever writes and
  // then to call lose_power().
  void fail_power_in(std::uint64_t operations, std::function<void()> work);
  void cancel_power_failure() { operations_left_.reset(); }
  // What wasn't synced is there, or isn't, or in part.
  void lose_power();
  // Does something to a checkpoint in the folder, most often to the newest; says to which.
  std::optional<std::string> damage(const std::string& folder, Random& random);
  // It did lose what it had said was durable, or may have.
  bool has_lied() const { return has_lied_; }
  // Something failed, ever.
  bool has_failed() const { return has_failed_; }
  // It hung, ever.
  bool has_hung() const { return has_hung_; }
  // It couldn't be reached or read, ever.
  bool was_away() const { return was_away_; }

 private:
  std::optional<Error> fault(checkpoint::MemoryFiles::Op op, const std::string& path);
  void install();

  std::optional<Error> trouble_with(const std::string& path, bool reads);

  World& world_;
  SharedFiles shared_;
  checkpoint::MemoryFiles mount_point_;
  Reach reach_ = Reach::kHere;
  bool was_away_ = false;
  Instant hung_until_;
  bool has_hung_ = false;
  Trouble trouble_ = Trouble::kNone;
  std::unique_ptr<checkpoint::MemoryFiles> files_;
  std::vector<std::unique_ptr<checkpoint::MemoryFiles>> former_;  // files of it may still be open
  std::optional<std::uint64_t> operations_left_;
  std::function<void()> on_power_;
  bool is_dark_ = false;
  bool has_lied_ = false;
  bool has_failed_ = false;
};

}  // namespace disttrain::sim
