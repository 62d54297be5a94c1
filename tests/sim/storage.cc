#include "tests/sim/storage.h"

namespace disttrain::sim {

using checkpoint::MemoryFiles;

Storage::Storage(World& world) : world_(world), files_(std::make_unique<MemoryFiles>()) {
  install();
}

void Storage::install() {
  files_->fault = [this](MemoryFiles::Op op, const std::string& path) { return fault(op, path); };
  files_->lies = [this](MemoryFiles::Op, const std::string&) {
    has_lied_ = has_lied_ || trouble_ == Trouble::kLies;
    return trouble_ == Trouble::kLies;
  };
}

void Storage::begin(Trouble trouble) {
  static const char* const kWords[] = {"is well", "gets slow", "is full", "fails to write", "fails to sync", "lies"};
  world_.tell(std::string("the disk ") + kWords[static_cast<std::size_t>(trouble)]);
  trouble_ = trouble;
}

Duration Storage::delay() {
  const Duration longest = trouble_ == Trouble::kSlow ? std::chrono::milliseconds(3000) : slowest;
  return world_.between(Duration::zero(), longest);
}

std::optional<Error> Storage::fault(MemoryFiles::Op op, const std::string& path) {
  using Op = MemoryFiles::Op;
  if (op == Op::kOpen) return std::nullopt;  // what is there can be read
  const auto error = [this, &path](const char* what) {
    has_failed_ = true;
    return Error{ErrorCode::kFailed, "can't write " + path + ": " + what};
  };
  if (is_dark_) return error("the power is gone");
  if (operations_left_ && (*operations_left_)-- == 0) {
    operations_left_.reset();
    is_dark_ = true;
    world_.after(Duration::zero(), on_power_);
    return error("the power is gone");
  }
  const bool is_sync = op == Op::kSync || op == Op::kSyncDirectory;
  if (op == Op::kMakeDirectory && files_->list(path)) return std::nullopt;  // it is there
  if (trouble_ == Trouble::kFull &&
      (op == Op::kCreate || op == Op::kReserve || op == Op::kAppend || op == Op::kMakeDirectory))
    return error("no space is left");
  if (trouble_ == Trouble::kWriteFails && !is_sync && world_.chance(300)) return error("input/output error");
  if (trouble_ == Trouble::kSyncFails && is_sync && world_.chance(500)) return error("input/output error at sync");
  return std::nullopt;
}

void Storage::fail_power_in(std::uint64_t operations, std::function<void()> work) {
  operations_left_ = operations;
  on_power_ = std::move(work);
}

void Storage::lose_power() {
  world_.tell("the disk's host loses power");
  former_.push_back(std::move(files_));
  files_ = former_.back()->after_crash(former_.back()->operations(), world_.random());
  files_->assume_durable();
  former_.back()->fault = [](MemoryFiles::Op, const std::string&) { return Error{ErrorCode::kFailed, "gone"}; };
  operations_left_.reset();
  is_dark_ = false;
  install();
}

}  // namespace disttrain::sim
