// The shared disk, as the tasks see it: they reach its files only while the disk is there and can be read. The laws
// look at the disk directly.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/checkpoint/files.h"

namespace disttrain::sim {

class SharedFiles final : public checkpoint::Files {
 public:
  // SharedFiles calls both functions for each operation. disk() returns the disk, which must live longer than the files
  // that are open on it. trouble() returns the error with which an operation on `path` fails, or nullopt. `reads`: the
  // operation reads; otherwise it writes.
  std::function<checkpoint::Files&()> disk;
  std::function<std::optional<Error>(const std::string& path, bool reads)> trouble;

  Result<std::unique_ptr<checkpoint::OutputFile>> create(const std::string& path) override;
  Result<std::unique_ptr<checkpoint::InputFile>> open(const std::string& path) override;
  Result<std::unique_ptr<checkpoint::OutputFile>> create_private(const std::string& path) override;
  Result<checkpoint::EntryKind> kind_of(const std::string& path) override;
  Status make_directory(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& path) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status replace(const std::string& from, const std::string& to) override;
  Status remove_file(const std::string& path) override;
  Status remove_directory(const std::string& path) override;
  Status sync_directory(const std::string& path) override;
  Result<std::string> follow_links(const std::string& path) override;

 private:
  Status check(const std::string& path, bool reads) const;
};

}  // namespace disttrain::sim
