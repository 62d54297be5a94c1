// Files whose operations fail with kTemporary once their user isn't needed any more. So slow work on files ends soon
// after it is cancelled: between two operations, and within a long read or write after some MiB. An operation that the
// kernel doesn't end, as on a file system that hangs, ends only there.
#pragma once

#include "common/checkpoint/files.h"

namespace disttrain::checkpoint {

class CancellableFiles final : public Files {
 public:
  // `files` must outlive this object. `is_cancelled` isn't empty, and may be called in every thread that uses this
  // object.
  CancellableFiles(Files& files, IsCancelled is_cancelled) : files_(files), is_cancelled_(std::move(is_cancelled)) {}

  Result<std::unique_ptr<OutputFile>> create(const std::string& path) override;
  Result<std::unique_ptr<InputFile>> open(const std::string& path) override;
  Result<std::unique_ptr<OutputFile>> create_private(const std::string& path) override;
  Result<EntryKind> kind_of(const std::string& path) override;
  Status make_directory(const std::string& path) override;
  Result<std::vector<std::string>> list(const std::string& path) override;
  Status rename(const std::string& from, const std::string& to) override;
  Status replace(const std::string& from, const std::string& to) override;
  Status remove_file(const std::string& path) override;
  Status remove_directory(const std::string& path) override;
  Status sync_directory(const std::string& path) override;
  Result<std::string> follow_links(const std::string& path) override;

 private:
  Status check(const std::string& path) const;

  Files& files_;
  const IsCancelled is_cancelled_;
};

}  // namespace disttrain::checkpoint
