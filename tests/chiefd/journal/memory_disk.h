// The folder of a chief's journal in memory: fails where it is told to, and can be what a loss of power would leave of
// it. Of an operation that the power cut, any part may have reached the disk, in any order; a name that wasn't synced
// may be the old one or the new one.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chiefd/journal/disk.h"
#include "common/random.h"

namespace disttrain::chiefd {

// Outlives the disks that are open on it.
class JournalPlatter {
 public:
  using Bytes = std::vector<std::byte>;
  enum class Op { kRead, kCreate, kWrite, kRename, kSyncNames };

  // Asked before each operation; an error is what it returns then, and nothing is done.
  std::function<std::optional<Error>(Op, const std::string& name)> fault;
  // After so many more operations that change something the power goes, amid the next one. What it leaves is drawn.
  void cut_power_after(std::uint64_t operations, Random& random);
  bool is_dark() const { return is_dark_; }
  // Operations so far that change something.
  std::uint64_t operations() const { return operations_; }
  // The power is back: what was being done is torn, what wasn't synced may be lost.
  void restart(Random& random);

  // null: there is no such file. To be looked at, and damaged.
  Bytes* content(const std::string& name);
  void remove(const std::string& name);
  void put(const std::string& name, Bytes bytes);
  // Another folder with the same files.
  JournalPlatter copied() const;

  // kConfig: another one is open.
  Result<std::unique_ptr<JournalDisk>> open();

 private:
  friend class MemoryJournalDisk;
  using Names = std::map<std::string, std::shared_ptr<Bytes>>;
  struct NameChange {
    std::string from;  // kRename
    std::string to;
    std::shared_ptr<Bytes> file;
  };
  // Whether the power goes amid this operation.
  bool goes_dark();
  Status check(Op op, const std::string& name) const;

  Names names_;
  Names durable_;
  std::vector<NameChange> unsynced_;
  bool is_locked_ = false;
  bool is_dark_ = false;
  std::uint64_t operations_ = 0;
  std::optional<std::uint64_t> operations_left_;
  Random* random_ = nullptr;
};

}  // namespace disttrain::chiefd
