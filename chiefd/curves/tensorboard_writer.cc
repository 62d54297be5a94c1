#include "chiefd/curves/tensorboard_writer.h"

#include <algorithm>
#include <utility>

#include "common/daemon/threads.h"

namespace disttrain::chiefd {
namespace {

constexpr Duration kShortestPause = std::chrono::seconds(1);
constexpr Duration kLongestPause = std::chrono::seconds(30);

}  // namespace

TensorBoardWriter::TensorBoardWriter(std::string folder, std::function<void(const std::string&)> on_failed)
    : folder_(std::move(folder)), on_failed_(std::move(on_failed)), thread_([this] {
        run();
        file_.reset();
        is_over_ = true;
      }) {}

TensorBoardWriter::~TensorBoardWriter() {
  end();
  thread_.join();
}

void TensorBoardWriter::end() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_one();
}

void TensorBoardWriter::write(std::int64_t wall_nanoseconds, std::string record) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back({wall_nanoseconds, std::move(record)});
    if (waiting_.size() > kMaxWaiting) waiting_.pop_front();
  }
  changed_.notify_one();
}

void TensorBoardWriter::run() {
  daemon::name_thread("event-files");
  Duration pause = kShortestPause;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return is_ending_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    Entry entry = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    const bool is_written = try_append(entry);
    lock.lock();
    if (is_written) {
      pause = kShortestPause;
      continue;
    }
    if (is_ending_) return;
    if (waiting_.size() < kMaxWaiting) waiting_.push_front(std::move(entry));
    changed_.wait_for(lock, pause, [this] { return is_ending_; });
    pause = std::min(2 * pause, kLongestPause);
  }
}

bool TensorBoardWriter::try_append(const Entry& entry) {
  if (entry.record.empty()) {
    file_.reset();
    return true;
  }
  const Status written = append(entry);
  if (!written) file_.reset();
  if (!written && !is_failing_) on_failed_(written.error().message);
  is_failing_ = !written;
  return !is_failing_;
}

Status TensorBoardWriter::append(const Entry& entry) {
  if (file_ && !file_->is_there()) file_.reset();
  if (!file_) {
    Result<TensorBoardFile> created = TensorBoardFile::create(folder_, entry.wall_nanoseconds);
    if (!created) return tl::unexpected(created.error());
    file_.emplace(std::move(*created));
  }
  return file_->append(entry.record);
}

}  // namespace disttrain::chiefd
