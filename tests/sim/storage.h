// The disk that all tasks share. For some time it may be slow, full, failing, lying (a sync does nothing), hanging or
// away. Its host may also lose power.
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
    kSyncFails,   // a part of all syncs fails, and the data isn't durable
    kLies,        // a sync reports success, but the data isn't durable
  };
  void begin(Trouble trouble);
  void end() {
    trouble_ = Trouble::kNone;
    reach_ = Reach::kHere;
  }

  enum class Reach {
    kHere,
    kUnreadable,  // now and then
    kAway,        // none of its paths exists
    kUnmounted,   // an empty mount point is in its place
  };
  void lose(Reach how);
  // The disk hangs from now on. An operation that begins before the time `until` ends only after this time.
  void hang(Instant until);
  Instant hangs_until() const { return hung_until_; }

  // The disk as tasks see it.
  checkpoint::Files& files() { return shared_; }
  // The disk itself. The reference becomes invalid when lose_power() is called.
  checkpoint::MemoryFiles& truth() { return *files_; }
  // How long an operation takes if it begins at the time `begins`. If the disk hangs then, this includes the time until
  // the disk works again.
  Duration delay(Instant begins);
  Duration delay() { return delay(world_.now()); }
  Duration slowest = std::chrono::milliseconds(5);

  // After `operations` more operations, the power fails. From then on, each operation fails. Then `work` is called: it
  // must kill all processes that write, and then call lose_power().
  void fail_power_in(std::uint64_t operations, std::function<void()> work);
  void cancel_power_failure() { operations_left_.reset(); }
  // After this, unsynced data is there completely, in part, or not at all.
  void lose_power();
  // Damages a checkpoint in the folder, usually the newest. Returns the checkpoint's path, or nullopt if nothing was
  // damaged.
  std::optional<std::string> damage(const std::string& folder, Random& random);
  // Returns true if the disk ever lied: a sync reported success, but its data could be lost.
  bool has_lied() const { return has_lied_; }
  // Returns true if an operation ever failed.
  bool has_failed() const { return has_failed_; }
  // Returns true if the disk ever hung.
  bool has_hung() const { return has_hung_; }
  // Returns true if the disk was ever away or unreadable.
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
  // Disks from before a loss of power; their files may still be open.
  std::vector<std::unique_ptr<checkpoint::MemoryFiles>> former_;
  std::optional<std::uint64_t> operations_left_;
  std::function<void()> on_power_;
  bool is_dark_ = false;
  bool has_lied_ = false;
  bool has_failed_ = false;
};

}  // namespace disttrain::sim
