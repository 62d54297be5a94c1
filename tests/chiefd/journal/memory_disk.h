// The folder of a chief's journal, in memory. Tests inject faults, and see the states that a loss of power can leave.
// If the power fails during an operation, any part of it may have reached the disk. After a rename that wasn't synced,
// the file may have its old or its new name.
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

// The content of the disk: the files of the folder. It outlives the JournalDisk objects that open it.
class JournalPlatter {
 public:
  using Bytes = std::vector<std::byte>;
  enum class Op { kRead, kCreate, kWrite, kRename, kSyncNames };

  // Called before each operation. If it returns an error, the operation does nothing and returns the error.
  std::function<std::optional<Error>(Op, const std::string& name)> fault;
  // The power fails during a changing operation, after `operations` others have completed. `random` chooses how much of
  // the interrupted operation reaches the disk.
  void cut_power_after(std::uint64_t operations, Random& random);
  bool is_dark() const { return is_dark_; }
  // The number of operations so far that changed something.
  std::uint64_t operations() const { return operations_; }
  // Turns the power on again. The interrupted operation may be done in part, and unsynced data may be lost.
  void restart(Random& random);

  // The file's bytes, which a test may read and damage; null if there is no such file.
  Bytes* content(const std::string& name);
  void remove(const std::string& name);
  void put(const std::string& name, Bytes bytes);
  // A copy of the folder with the same files.
  JournalPlatter copied() const;

  // Fails with kConfig if another JournalDisk is open on this content.
  Result<std::unique_ptr<JournalDisk>> open();

 private:
  friend class MemoryJournalDisk;
  using Names = std::map<std::string, std::shared_ptr<Bytes>>;
  struct NameChange {
    std::string from;  // kRename
    std::string to;
    std::shared_ptr<Bytes> file;
  };
  // Counts a changing operation. Returns whether the power fails during it.
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
