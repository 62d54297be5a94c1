// A file of a checkpoint or a package that is the input of a fuzzer, and a file system that has no other file.
#pragma once

#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/checkpoint/files.h"

namespace disttrain::checkpoint {

class MemoryInput final : public InputFile {
 public:
  explicit MemoryInput(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::uint64_t size() const override { return bytes_.size(); }
  Status read_at(std::uint64_t offset, MutableBytes out) override {
    if (offset > bytes_.size() || out.size() > bytes_.size() - offset)
      return fail(ErrorCode::kData, "the input ends too early");
    if (!out.empty()) std::memcpy(out.data(), bytes_.data() + offset, out.size());
    return {};
  }
  Result<bool> try_lock(LockKind) override { return true; }
  Status make_private() override { return {}; }

 private:
  const std::span<const std::byte> bytes_;
};

class OneFile final : public Files {
 public:
  explicit OneFile(std::span<const std::byte> bytes) : bytes_(bytes) {}

  Result<std::unique_ptr<InputFile>> open(const std::string&) override { return std::make_unique<MemoryInput>(bytes_); }
  Result<std::unique_ptr<OutputFile>> create(const std::string&) override { return refused(); }
  Result<std::unique_ptr<OutputFile>> create_private(const std::string&) override { return refused(); }
  Result<EntryKind> kind_of(const std::string&) override { return EntryKind::kFile; }
  Status make_directory(const std::string&) override { return refused(); }
  Result<std::vector<std::string>> list(const std::string&) override { return refused(); }
  Status rename(const std::string&, const std::string&) override { return refused(); }
  Status replace(const std::string&, const std::string&) override { return refused(); }
  Status remove_file(const std::string&) override { return refused(); }
  Status remove_directory(const std::string&) override { return refused(); }
  Status sync_directory(const std::string&) override { return refused(); }
  Result<std::string> follow_links(const std::string& path) override { return path; }

 private:
  static tl::unexpected<Error> refused() { return fail(ErrorCode::kNoInput, "there is only one file, to read"); }

  const std::span<const std::byte> bytes_;
};

}  // namespace disttrain::checkpoint
