// The shared disk as the tasks see it: they get its files only while it can be reached and read. The laws look at the
// disk itself.
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
  // Both are called for each operation. The disk must outlive the files that are open on it. trouble() returns the
  // error of an operation on `path` that reads, or else writes; nullopt lets the operation through.
  std::function<checkpoint::Files&()> disk;
  std::function<std::optional<Error>(const std::string& path, bool reads)> trouble;

  Result<std::unique_ptr<checkpoint::OutputFile>> create(const std::string& path) override;
  Result<std::unique_ptr<checkpoint::InputFile>> open(const std::string& path) override;
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
