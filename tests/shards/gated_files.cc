#include "tests/shards/gated_files.h"

#include <utility>

namespace disttrain::shards::test {

namespace {

using checkpoint::Bytes;
using checkpoint::InputFile;
using checkpoint::LockKind;
using checkpoint::MutableBytes;
using checkpoint::OutputFile;

class GatedOutput final : public OutputFile {
 public:
  GatedOutput(GatedFiles& files, std::string path, std::unique_ptr<OutputFile> file)
      : files_(files), path_(std::move(path)), file_(std::move(file)) {
    files_.count_written(1);
  }
  ~GatedOutput() override { files_.count_written(-1); }
  Status reserve(std::uint64_t bytes) override {
    const Status passed = files_.pass(GatedFiles::Op::kReserve, path_);
    return passed ? file_->reserve(bytes) : passed;
  }
  Status append(Bytes bytes) override {
    const Status passed = files_.pass(GatedFiles::Op::kAppend, path_);
    return passed ? file_->append(bytes) : passed;
  }
  Status sync() override {
    const Status passed = files_.pass(GatedFiles::Op::kSync, path_);
    return passed ? file_->sync() : passed;
  }

 private:
  GatedFiles& files_;
  const std::string path_;
  std::unique_ptr<OutputFile> file_;
};

class GatedInput final : public InputFile {
 public:
  GatedInput(GatedFiles& files, std::string path, std::unique_ptr<InputFile> file)
      : files_(files), path_(std::move(path)), file_(std::move(file)) {}
  std::uint64_t size() const override { return file_->size(); }
  Status read_at(std::uint64_t offset, MutableBytes out) override {
    const Status passed = files_.pass(GatedFiles::Op::kRead, path_);
    return passed ? file_->read_at(offset, out) : passed;
  }
  Result<bool> try_lock(LockKind kind) override { return file_->try_lock(kind); }
  Status make_private() override { return file_->make_private(); }

 private:
  GatedFiles& files_;
  const std::string path_;
  std::unique_ptr<InputFile> file_;
};

}  // namespace

void GatedFiles::hold(Op op, const std::string& part) {
  const std::lock_guard lock(mutex_);
  held_ = std::pair(op, part);
}

void GatedFiles::let_go() {
  const std::lock_guard lock(mutex_);
  held_.reset();
  changed_.notify_all();
}

bool GatedFiles::is_waiting() const {
  const std::lock_guard lock(mutex_);
  return waiting_ > 0;
}

void GatedFiles::fail_with(Op op, std::optional<Error> error) {
  const std::lock_guard lock(mutex_);
  errors_.erase(op);
  if (error) errors_.emplace(op, *error);
}

std::vector<std::string> GatedFiles::opened() const {
  const std::lock_guard lock(mutex_);
  return opened_;
}

int GatedFiles::being_written() const {
  const std::lock_guard lock(mutex_);
  return being_written_;
}

void GatedFiles::count_written(int by) {
  const std::lock_guard lock(mutex_);
  being_written_ += by;
}

Status GatedFiles::pass(Op op, const std::string& path) {
  std::unique_lock lock(mutex_);
  const auto is_free = [&] { return !held_ || held_->first != op || path.find(held_->second) == std::string::npos; };
  ++waiting_;
  changed_.wait(lock, is_free);
  --waiting_;
  const auto error = errors_.find(op);
  return error == errors_.end() ? Status() : tl::unexpected(error->second);
}

Result<std::unique_ptr<OutputFile>> GatedFiles::create(const std::string& path) {
  auto file = disk_.create(path);
  if (!file) return file;
  return std::make_unique<GatedOutput>(*this, path, std::move(*file));
}

Result<std::unique_ptr<InputFile>> GatedFiles::open(const std::string& path) {
  {
    const std::lock_guard lock(mutex_);
    opened_.push_back(path);
  }
  auto file = disk_.open(path);
  if (!file) return file;
  return std::make_unique<GatedInput>(*this, path, std::move(*file));
}

}  // namespace disttrain::shards::test
