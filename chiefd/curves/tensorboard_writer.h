// The thread that writes the event files of a job, so that neither the chief's loop nor another job waits for a file
// system. If a write fails, only points of a curve are lost.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "chiefd/curves/tensorboard_file.h"
#include "common/time.h"

namespace disttrain::chiefd {

class TensorBoardWriter {
 public:
  // The most records that wait for the thread. When there is one more, the oldest is dropped.
  static constexpr std::size_t kMaxWaiting = 10'000;

  // When a write fails, the thread calls `on_failed` with the reason. It then ignores further failures until a write
  // succeeds.
  // `folder` is "<checkpoint.directory>/<job>/events".
  TensorBoardWriter(std::string folder, std::function<void(const std::string&)> on_failed);
  // Calls end(), and waits until the thread has ended.
  ~TensorBoardWriter();
  TensorBoardWriter(const TensorBoardWriter&) = delete;

  // Appends `record` to the folder's current file. Creates the folder if it is missing, but not the folder's parent,
  // because its file system may not be mounted. The thread retries a failed write after growing pauses.
  void write(std::int64_t wall_nanoseconds, std::string record);
  // Closes the folder's current file, so that an operator can unmount its file system. A later record goes into a new
  // file.
  void close() { write(0, ""); }
  // The thread writes the waiting records and ends. If a write fails, it drops the rest.
  void end();
  // True once the thread has ended, so that the destructor doesn't wait.
  bool is_over() const { return is_over_; }

 private:
  struct Entry {
    std::int64_t wall_nanoseconds = 0;
    std::string record;  // "": close
  };

  void run();
  bool try_append(const Entry& entry);
  Status append(const Entry& entry);

  const std::string folder_;
  const std::function<void(const std::string&)> on_failed_;

  // Owned by the thread.
  std::optional<TensorBoardFile> file_;
  bool is_failing_ = false;

  // Guarded by mutex_.
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Entry> waiting_;
  bool is_ending_ = false;

  std::atomic<bool> is_over_ = false;
  std::thread thread_;  // last
};

}  // namespace disttrain::chiefd
