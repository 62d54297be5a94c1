#include "tests/sim/storage.h"

#include "common/checkpoint/job_folder.h"

namespace disttrain::sim {

using checkpoint::MemoryFiles;

Storage::Storage(World& world) : world_(world), files_(std::make_unique<MemoryFiles>()) {
  install();
  shared_.disk = [this]() -> checkpoint::Files& {
    if (reach_ == Reach::kUnmounted) return mount_point_;
    return *files_;
  };
  shared_.trouble = [this](const std::string& path, bool reads) { return trouble_with(path, reads); };
  if (!mount_point_.make_directory("/c")) world_.tell("the simulator can't make the mount point");
}

void Storage::install() {
  files_->fault = [this](MemoryFiles::Op op, const std::string& path) { return fault(op, path); };
  files_->lies = [this](MemoryFiles::Op, const std::string&) {
    has_lied_ = has_lied_ || trouble_ == Trouble::kLies;
    if (trouble_ == Trouble::kLies) world_.count(Happening::kSyncLied);
    return trouble_ == Trouble::kLies;
  };
}

void Storage::begin(Trouble trouble) {
  static const char* const kWords[] = {"works", "gets slow", "is full", "fails to write", "fails to sync", "lies"};
  world_.tell(std::string("the disk ") + kWords[static_cast<std::size_t>(trouble)]);
  trouble_ = trouble;
}

void Storage::hang(Instant until) {
  world_.tell("the disk hangs for " +
              std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(until - world_.now()).count()) +
              " ms");
  hung_until_ = std::max(hung_until_, until);
}

void Storage::lose(Reach how) {
  static const char* const kWords[] = {"is there", "can't be read", "is away", "isn't mounted"};
  world_.tell(std::string("the disk ") + kWords[static_cast<std::size_t>(how)]);
  reach_ = how;
  was_away_ = was_away_ || how != Reach::kHere;
}

std::optional<Error> Storage::trouble_with(const std::string& path, bool reads) {
  if (reach_ == Reach::kUnmounted) world_.count(Happening::kFolderUnmounted);
  if (reach_ == Reach::kAway) {
    world_.count(Happening::kFolderAway);
    return Error{ErrorCode::kNoInput, path + " isn't there: the disk is away"};
  }
  if (reach_ != Reach::kUnreadable || !reads || !world_.chance(300)) return std::nullopt;
  world_.count(Happening::kFolderUnreadable);
  return Error{ErrorCode::kFailed, "can't read " + path + ": input/output error"};
}

std::optional<std::string> Storage::damage(const std::string& folder, Random& random) {
  const auto found = checkpoint::list_checkpoints(*files_, folder);
  if (!found || found->empty()) return std::nullopt;
  const std::size_t which = random.below(3) == 0 ? random.below(found->size()) : 0;
  const std::string path = (*found)[which].path;
  const Result<std::vector<std::string>> names = files_->list(path);
  if (!names || names->empty()) return std::nullopt;
  const std::string file = path + "/" + (*names)[random.below(names->size())];
  const std::uint64_t how = random.below(4);
  // If this is the folder's only checkpoint, it isn't removed completely, because the chief would then wait for it.
  if (how == 0 && found->size() > 1) {
    world_.tell(path + " vanishes");
    if (!checkpoint::remove_all(*files_, path)) return path;
  } else if (how == 1 || files_->content(file).empty()) {
    world_.tell(file + " vanishes");
    if (!files_->remove_file(file)) return path;
  } else {
    world_.tell("a bit flips in " + file);
    std::vector<std::byte>& bytes = files_->content(file);
    // Half of the flipped bits are in the last 16 bytes, because a file ends with its values, and simulated shards have
    // only few.
    const std::size_t end = std::min<std::size_t>(bytes.size(), 16);
    const std::size_t at = random.below(2) == 0 ? bytes.size() - 1 - random.below(end) : random.below(bytes.size());
    bytes[at] ^= std::byte(1 << random.below(8));
  }
  return path;
}

Duration Storage::delay(Instant begins) {
  const Duration longest = trouble_ == Trouble::kSlow ? std::chrono::milliseconds(3000) : slowest;
  const Duration hangs = std::max(Duration::zero(), hung_until_ - begins);
  if (hangs > Duration::zero()) {
    has_hung_ = true;
    world_.count(Happening::kDiskHung);
  } else if (trouble_ == Trouble::kSlow) {
    world_.count(Happening::kDiskSlow);
  }
  return hangs + world_.between(Duration::zero(), longest);
}

std::optional<Error> Storage::fault(MemoryFiles::Op op, const std::string& path) {
  using Op = MemoryFiles::Op;
  if (op == Op::kOpen) return std::nullopt;  // these faults hit only writes
  const auto error = [this, &path](const char* what, std::optional<Happening> happening = std::nullopt) {
    has_failed_ = true;
    if (happening) world_.count(*happening);
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
  if (op == Op::kMakeDirectory && files_->list(path)) return std::nullopt;  // the folder exists
  if (trouble_ == Trouble::kFull &&
      (op == Op::kCreate || op == Op::kReserve || op == Op::kAppend || op == Op::kMakeDirectory))
    return error("no space is left", Happening::kDiskFull);
  if (trouble_ == Trouble::kWriteFails && !is_sync && world_.chance(300))
    return error("input/output error", Happening::kWriteFailed);
  if (trouble_ == Trouble::kSyncFails && is_sync && world_.chance(500))
    return error("input/output error at sync", Happening::kSyncFailed);
  return std::nullopt;
}

void Storage::fail_power_in(std::uint64_t operations, std::function<void()> work) {
  operations_left_ = operations;
  on_power_ = std::move(work);
}

void Storage::lose_power() {
  world_.tell("the disk's host loses power");
  world_.count(Happening::kPowerLost);
  former_.push_back(std::move(files_));
  files_ = former_.back()->after_crash(former_.back()->operations(), world_.random());
  files_->assume_durable();
  former_.back()->fault = [](MemoryFiles::Op, const std::string&) { return Error{ErrorCode::kFailed, "gone"}; };
  operations_left_.reset();
  is_dark_ = false;
  install();
}

}  // namespace disttrain::sim
