// The folder of a chief's journal, in memory. Tests inject faults, and get the state that a loss of power could leave.
// An operation that the power cut may have reached the disk in any part, in any order. A name that wasn't synced may be
// the old one or the new one.
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

// The files of the folder. A platter outlives the disks that are open on it.
class JournalPlatter {
 public:
  using Bytes = std::vector<std::byte>;
  enum class Op { kRead, kCreate, kWrite, kRename, kSyncNames };

  // Called before each operation. If it returns an error, the operation does nothing and returns the error.
  std::function<std::optional<Error>(Op, const std::string& name)> fault;
  // The power fails during a changing operation, after `operations` more of them are done. What the failure leaves is
  // drawn from `random`.
  void cut_power_after(std::uint64_t operations, Random& random);
  bool is_dark() const { return is_dark_; }
  // The number of changing operations so far.
  std::uint64_t operations() const { return operations_; }
  // The power is back. The interrupted operation is torn, and unsynced data may be lost.
  void restart(Random& random);

  // The file's bytes, which a test may read and damage; null if there is no such file.
  Bytes* content(const std::string& name);
  void remove(const std::string& name);
  void put(const std::string& name, Bytes bytes);
  // A copy of the folder with the same files.
  JournalPlatter copied() const;

  // Fails with kConfig if another disk is open on this platter.
  Result<std::unique_ptr<JournalDisk>> open();

 private:
  friend class MemoryJournalDisk;
  using Names = std::map<std::string, std::shared_ptr<Bytes>>;
  struct NameChange {
    std::string from;  // kRename
    std::string to;
    std::shared_ptr<Bytes> file;
  };
  // Whether the power fails during this operation.
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
