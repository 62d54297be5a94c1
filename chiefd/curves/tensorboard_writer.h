// The thread that writes event files. So the chief's loop never waits for a file system, and an error there costs only
// points of a curve.
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
  // Records that wait; one more drops the oldest.
  static constexpr std::size_t kMaxWaiting = 10'000;

  // `on_failed`, called on the thread, says why writing fails: once per run of failures.
  explicit TensorBoardWriter(std::function<void(const std::string&)> on_failed);
  // First writes what was given, if possible. Waits for the file system.
  ~TensorBoardWriter();
  TensorBoardWriter(const TensorBoardWriter&) = delete;

  // Appends `record` to the newest file of `folder`, "<checkpoint.directory>/<job>/events". A folder without a parent
  // isn't made: its file system may not be mounted. Another folder than the last one starts a new file. A failed write
  // is retried after growing pauses, and given up once there is a record for another folder.
  void write(std::string folder, std::int64_t wall_nanoseconds, std::string record);
  // Closes the file, as nothing follows for now, so that its file system can be unmounted.
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

  // Owned by the thread.
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
