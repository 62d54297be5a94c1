// The real file system, where a test may hold operations of a kind until it lets them go on, or have them fail. So what
// happens during a restore or a write happens exactly then, however slow the machine is.
#pragma once

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/checkpoint/disk_files.h"

namespace disttrain::psd::test {

class GatedFiles final : public checkpoint::Files {
 public:
  enum class Op { kRead, kReserve, kAppend, kSync };

  GatedFiles() = default;
  // Nobody is held any more.
  ~GatedFiles() override { let_go(); }

  // Operations on files whose path has `part` wait until let_go().
  void hold(Op op, const std::string& part);
  void let_go();
  // Somebody waits there at this moment.
  bool is_waiting() const;
  // Each such operation fails with this; none: it works again.
  void fail_with(Op op, std::optional<Error> error);

  // Paths that were opened to be read, in turn.
  std::vector<std::string> opened() const;
  // Files that are open to be written.
  int being_written() const;

  // By the files that it made.
  Status pass(Op op, const std::string& path);
  void count_written(int by);

  Result<std::unique_ptr<checkpoint::OutputFile>> create(const std::string& path) override;
  Result<std::unique_ptr<checkpoint::InputFile>> open(const std::string& path) override;
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

  mutable std::mutex mutex_;  // guards all below; nothing else is locked under it
  std::condition_variable changed_;
  std::optional<std::pair<Op, std::string>> held_;
  int waiting_ = 0;
  std::map<Op, Error> errors_;
  std::vector<std::string> opened_;
  int being_written_ = 0;
};

}  // namespace disttrain::psd::test
