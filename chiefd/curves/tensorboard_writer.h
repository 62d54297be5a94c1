// The thread that writes event files, so that the chief's loop never waits for a file system, and what goes wrong there
// costs points of a curve and nothing else.
#pragma once

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
  // One more makes the oldest go.
  static constexpr std::size_t kMaxWaiting = 10'000;

  // Why nothing can be written, once until something can be again; called on the thread.
  explicit TensorBoardWriter(std::function<void(const std::string&)> on_failed);
  // What was given is written before, if it can be; waits for what the file system is doing.
  ~TensorBoardWriter();
  TensorBoardWriter(const TensorBoardWriter&) = delete;

  // `record` goes into the newest file of `folder`, "<checkpoint.directory>/<job>/events"; a folder whose parent isn't
  // there isn't made: its file system may not be mounted. Another folder than the last one begins another file.
  // What can't be written is tried again after pauses that grow, and dropped once there is something for another
  // folder.
  void write(std::string folder, std::int64_t wall_nanoseconds, std::string record);
  // Nothing follows for now: the file is let go of, so that its file system can be unmounted.
  void close(std::string folder) { write(std::move(folder), 0, ""); }

 private:
  struct Entry {
    std::string folder;
    std::int64_t wall_nanoseconds = 0;
    std::string record;  // "": close
  };

  void run();
  bool try_append(const Entry& entry);
  Status append(const Entry& entry);

  const std::function<void(const std::string&)> on_failed_;

  // The thread's.
  std::optional<TensorBoardFile> file_;
  std::string folder_;
  bool is_failing_ = false;

  // Guarded by mutex_.
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Entry> waiting_;
  bool is_ending_ = false;

  std::thread thread_;  // last
};

}  // namespace disttrain::chiefd
