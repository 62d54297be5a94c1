// A file system in memory that records what is done to it, fails where it is told to, and can be what a crash would
// leave of it. Pessimistic: a name is durable only by sync_directory() of its folder, bytes only by sync() of their
// file; of what isn't, any part may be there, in any order, torn or as zeros.
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
  // Asked before each operation; an error is what it returns then, and nothing is done.
  std::function<std::optional<Error>(Op, const std::string& path)> fault;
  // Asked of each sync; true: it says that it is done, and isn't.
  std::function<bool(Op, const std::string& path)> lies;

  // Of all that a folder holds, names and bytes: equal where two are. "": everything.
  std::uint64_t fingerprint(const std::string& folder = "") const;

  // Operations so far that changed anything or made it durable.
  std::size_t operations() const { return log_.size(); }
  struct Done {
    Op op;
    std::string path;
    std::string to;  // kRename
  };
  Done done(std::size_t operation) const { return log_[operation].done; }
  // As if `operation` had never been done, or right after `later`. For crashes only: what is there stays as it is.
  void forget(std::size_t operation) { log_[operation].done.op = Op::kOpen; }
  void put_off(std::size_t operation, std::size_t later);
  // What a crash right after so many operations may leave.
  std::unique_ptr<MemoryFiles> after_crash(std::size_t operations, Random& random) const;

  // All that is there is durable from now on: what a crash left is what the next one begins with.
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
