// The real file system, but a test may hold back operations of a kind, or let them fail. So a test can send an event in
// the middle of a restore or of a write, however slow the machine is.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/checkpoint/disk_files.h"

namespace disttrain::shards::test {

class GatedFiles final : public checkpoint::Files {
 public:
  enum class Op { kRead, kReserve, kAppend, kSync };

  GatedFiles() = default;
  // Releases all held operations.
  ~GatedFiles() override { let_go(); }

  // Holds operations of this kind on files whose path contains `part` until let_go() is called.
  void hold(Op op, const std::string& part);
  void let_go();
  // Returns true if an operation is held now.
  bool is_waiting() const;
  // Makes each operation of this kind fail with the error. nullopt: they work again.
  void fail_with(Op op, std::optional<Error> error);

  // Paths that were opened for reading, in order.
  std::vector<std::string> opened() const;
  // Number of files that are open for writing.
  int being_written() const;

  // The files that create() and open() return call these two functions.
  Status pass(Op op, const std::string& path);
  void count_written(int by);

  Result<std::unique_ptr<checkpoint::OutputFile>> create(const std::string& path) override;
  Result<std::unique_ptr<checkpoint::InputFile>> open(const std::string& path) override;
  Result<std::unique_ptr<checkpoint::OutputFile>> create_private(const std::string& path) override {
    return create(path);
  }
  Result<checkpoint::EntryKind> kind_of(const std::string& path) override { return disk_.kind_of(path); }
  Status make_directory(const std::string& path) override { return disk_.make_directory(path); }
  Result<std::vector<std::string>> list(const std::string& path) override { return disk_.list(path); }
  Status rename(const std::string& from, const std::string& to) override { return disk_.rename(from, to); }
  Status replace(const std::string& from, const std::string& to) override { return disk_.replace(from, to); }
  Status remove_file(const std::string& path) override { return disk_.remove_file(path); }
  Status remove_directory(const std::string& path) override { return disk_.remove_directory(path); }
  Status sync_directory(const std::string& path) override { return disk_.sync_directory(path); }
  Result<std::string> follow_links(const std::string& path) override { return disk_.follow_links(path); }

 private:
  checkpoint::DiskFiles disk_;

  mutable std::mutex mutex_;  // guards all members below; no other lock is taken while it is held
  std::condition_variable changed_;
  std::optional<std::pair<Op, std::string>> held_;
  int waiting_ = 0;
  std::map<Op, Error> errors_;
  std::vector<std::string> opened_;
  int being_written_ = 0;
};

}  // namespace disttrain::shards::test
