#include "chiefd/event_writer.h"

#include <utility>

#include "common/daemon/threads.h"

namespace disttrain::chiefd {

EventWriter::EventWriter(std::function<void(const std::string&)> on_failed)
    : on_failed_(std::move(on_failed)), thread_([this] { run(); }) {}

EventWriter::~EventWriter() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void EventWriter::write(std::string folder, std::int64_t wall_nanoseconds, std::string record) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back({std::move(folder), wall_nanoseconds, std::move(record)});
    if (waiting_.size() > kMaxWaiting) waiting_.pop_front();
  }
  changed_.notify_one();
}

void EventWriter::run() {
  daemon::name_thread("event-files");
  while (true) {
    Entry entry;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return is_ending_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      entry = std::move(waiting_.front());
      waiting_.pop_front();
    }
    const Status written = append(entry);
    if (!written) file_.reset();
    if (!written && !is_failing_) on_failed_(written.error().message);
    is_failing_ = !written;
  }
}

Status EventWriter::append(const Entry& entry) {
  if (entry.folder != folder_ || (file_ && !file_->is_there())) file_.reset();
  folder_ = entry.folder;
  if (!file_) {
    Result<EventFile> created = EventFile::create(entry.folder, entry.wall_nanoseconds);
    if (!created) return tl::unexpected(created.error());
    file_.emplace(std::move(*created));
  }
  return file_->append(entry.record);
}

}  // namespace disttrain::chiefd
