// A file system in memory. It records every operation, lets operations fail, and builds the states that a crash could
// leave. It promises no more than POSIX: a name is durable only after sync_directory() of its folder, and bytes only
// after sync() of their file. A crash may leave any part of all other changes, in any order, cut off or as zeros.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/checkpoint/files.h"
#include "common/random.h"

namespace disttrain::checkpoint {

class MemoryFiles final : public Files {
 public:
  MemoryFiles();

  enum class Op { kCreate, kReserve, kAppend, kSync, kMakeDirectory, kRename, kRemove, kSyncDirectory, kOpen };
  // Called before each operation; if it returns an error, the operation fails with it and does nothing.
  std::function<std::optional<Error>(Op, const std::string& path)> fault;
  // Called for each sync. If it returns true, the sync reports success and does nothing.
  std::function<bool(Op, const std::string& path)> lies;

  // A hash of all names and bytes in a folder: folders with equal content have equal hashes. "": the whole file system.
  std::uint64_t fingerprint(const std::string& folder = "") const;

  // Number of operations so far that changed anything or made it durable.
  std::size_t operations() const { return log_.size(); }
  struct Done {
    Op op;
    std::string path;
    std::string to;  // kRename
  };
  Done done(std::size_t operation) const { return log_[operation].done; }
  // After this, after_crash() builds its states as if `operation` had never been done (forget), or had been done right
  // after `later` (put_off). The present content doesn't change.
  void forget(std::size_t operation) { log_[operation].done.op = Op::kOpen; }
  void put_off(std::size_t operation, std::size_t later);
  // A state that a crash could leave after this many operations.
  std::unique_ptr<MemoryFiles> after_crash(std::size_t operations, Random& random) const;

  // Makes everything durable, so that the state after a crash can be the beginning of another life.
  void assume_durable();

  // For tests that damage files.
  std::vector<std::byte>& content(const std::string& path);

  Result<std::unique_ptr<OutputFile>> create(const std::string& path) override;
  Result<std::unique_ptr<OutputFile>> create_private(const std::string& path) override;
  Result<EntryKind> kind_of(const std::string& path) override;
  Result<std::unique_ptr<InputFile>> open(const std::string& path) override;
  Status make_directory(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& path) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status replace(const std::string& from, const std::string& to) override;
  Status remove_file(const std::string& path) override;
  Status remove_directory(const std::string& path) override;
  Status sync_directory(const std::string& path) override;
  Result<std::string> follow_links(const std::string& path) override;

 private:
  friend class MemoryOutput;
  friend class MemoryInput;
  using NodeId = std::size_t;
  struct Node {
    bool is_directory = false;
    std::map<std::string, NodeId> entries;
    std::vector<std::byte> bytes;
    int readers = 0;  // locks
    bool writer = false;
  };
  struct Logged {
    Done done;
    NodeId node = 0;   // the file that was changed; for a change of names, the folder
    NodeId child = 0;  // kCreate, kMakeDirectory, kRename
    std::size_t bytes = 0;
  };

  std::optional<NodeId> find(const std::string& path) const;
  NodeId add(bool is_directory);
  static void leave(std::vector<std::byte>& bytes, const Node& from, std::size_t durable, std::size_t written,
                    Random& random);
  Status check(Op op, const std::string& path) const;
  void log(Logged entry) { log_.push_back(std::move(entry)); }

  std::vector<std::unique_ptr<Node>> nodes_;  // 0 is the root
  std::vector<Logged> log_;
};

}  // namespace disttrain::checkpoint
