#include "common/checkpoint/cancellable_files.h"

#include <algorithm>
#include <utility>

namespace disttrain::checkpoint {
namespace {

constexpr std::size_t kPiece = std::size_t{4} << 20;

Status cancelled(const std::string& path) {
  return fail(ErrorCode::kTemporary, path + ": the work on this file was abandoned, because its job has ended");
}

class CancellableOutput final : public OutputFile {
 public:
  CancellableOutput(std::unique_ptr<OutputFile> file, std::string path, const IsCancelled& is_cancelled)
      : file_(std::move(file)), path_(std::move(path)), is_cancelled_(is_cancelled) {}
  Status reserve(std::uint64_t bytes) override { return is_cancelled_() ? cancelled(path_) : file_->reserve(bytes); }
  Status append(Bytes bytes) override {
    while (!bytes.empty()) {
      if (is_cancelled_()) return cancelled(path_);
      const std::size_t count = std::min(bytes.size(), kPiece);
      if (Status written = file_->append(bytes.first(count)); !written) return written;
      bytes = bytes.subspan(count);
    }
    return {};
  }
  Status sync() override { return is_cancelled_() ? cancelled(path_) : file_->sync(); }

 private:
  const std::unique_ptr<OutputFile> file_;
  const std::string path_;
  const IsCancelled is_cancelled_;
};

class CancellableInput final : public InputFile {
 public:
  CancellableInput(std::unique_ptr<InputFile> file, std::string path, const IsCancelled& is_cancelled)
      : file_(std::move(file)), path_(std::move(path)), is_cancelled_(is_cancelled) {}
  std::uint64_t size() const override { return file_->size(); }
  Status read_at(std::uint64_t offset, MutableBytes out) override {
    while (!out.empty()) {
      if (is_cancelled_()) return cancelled(path_);
      const std::size_t count = std::min(out.size(), kPiece);
      if (Status read = file_->read_at(offset, out.first(count)); !read) return read;
      offset += count;
      out = out.subspan(count);
    }
    return {};
  }
  Result<bool> try_lock(LockKind kind) override {
    if (is_cancelled_()) return tl::unexpected(cancelled(path_).error());
    return file_->try_lock(kind);
  }
  Status make_private() override { return is_cancelled_() ? cancelled(path_) : file_->make_private(); }

 private:
  const std::unique_ptr<InputFile> file_;
  const std::string path_;
  const IsCancelled is_cancelled_;
};

}  // namespace

Status CancellableFiles::check(const std::string& path) const {
  return is_cancelled_() ? cancelled(path) : Status();
}

Result<std::unique_ptr<OutputFile>> CancellableFiles::create(const std::string& path) {
  if (Status may = check(path); !may) return tl::unexpected(may.error());
  Result<std::unique_ptr<OutputFile>> file = files_.create(path);
  if (!file) return file;
  return std::make_unique<CancellableOutput>(std::move(*file), path, is_cancelled_);
}

Result<std::unique_ptr<InputFile>> CancellableFiles::open(const std::string& path) {
  if (Status may = check(path); !may) return tl::unexpected(may.error());
  Result<std::unique_ptr<InputFile>> file = files_.open(path);
  if (!file) return file;
  return std::make_unique<CancellableInput>(std::move(*file), path, is_cancelled_);
}

Result<std::unique_ptr<OutputFile>> CancellableFiles::create_private(const std::string& path) {
  if (Status may = check(path); !may) return tl::unexpected(may.error());
  Result<std::unique_ptr<OutputFile>> file = files_.create_private(path);
  if (!file) return file;
  return std::make_unique<CancellableOutput>(std::move(*file), path, is_cancelled_);
}

Result<EntryKind> CancellableFiles::kind_of(const std::string& path) {
  if (Status may = check(path); !may) return tl::unexpected(may.error());
  return files_.kind_of(path);
}

Status CancellableFiles::make_directory(const std::string& path) {
  const Status may = check(path);
  return may ? files_.make_directory(path) : may;
}

Result<std::vector<std::string>> CancellableFiles::list(const std::string& path) {
  if (Status may = check(path); !may) return tl::unexpected(may.error());
  return files_.list(path);
}

Status CancellableFiles::rename(const std::string& from, const std::string& to) {
  const Status may = check(from);
  return may ? files_.rename(from, to) : may;
}

Status CancellableFiles::replace(const std::string& from, const std::string& to) {
  const Status may = check(from);
  return may ? files_.replace(from, to) : may;
}

Status CancellableFiles::remove_file(const std::string& path) {
  const Status may = check(path);
  return may ? files_.remove_file(path) : may;
}

Status CancellableFiles::remove_directory(const std::string& path) {
  const Status may = check(path);
  return may ? files_.remove_directory(path) : may;
}

Status CancellableFiles::sync_directory(const std::string& path) {
  const Status may = check(path);
  return may ? files_.sync_directory(path) : may;
}

Result<std::string> CancellableFiles::follow_links(const std::string& path) {
  if (Status may = check(path); !may) return tl::unexpected(may.error());
  return files_.follow_links(path);
}

}  // namespace disttrain::checkpoint
