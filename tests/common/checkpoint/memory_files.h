// A file system in memory that records every operation, fails on order, and can become what a crash would leave of it.
// Pessimistic: a name is durable only after sync_directory() of its folder, bytes only after sync() of their file. Of
// everything else any part may be left, in any order, torn or as zeros.
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
  // Called for each sync; true: the sync reports success and does nothing.
  std::function<bool(Op, const std::string& path)> lies;

  // Hash of all names and bytes in a folder: equal for equal content. "": everything.
  std::uint64_t fingerprint(const std::string& folder = "") const;

  // Number of operations so far that changed anything or made it durable.
  std::size_t operations() const { return log_.size(); }
  struct Done {
    Op op;
    std::string path;
    std::string to;  // kRename
  };
  Done done(std::size_t operation) const { return log_[operation].done; }
  // After a crash it is as if `operation` had never been done, or right after `later`. The present content stays as it
  // is.
  void forget(std::size_t operation) { log_[operation].done.op = Op::kOpen; }
  void put_off(std::size_t operation, std::size_t later);
  // What a crash right after this many operations may leave.
  std::unique_ptr<MemoryFiles> after_crash(std::size_t operations, Random& random) const;

  // Makes everything durable: what one crash left is the start of the next.
  void assume_durable();

  // For tests that damage files.
  std::vector<std::byte>& content(const std::string& path);

  Result<std::unique_ptr<OutputFile>> create(const std::string& path) override;
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
    NodeId node = 0;   // the file; of names: the folder
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
