// The thread that writes event files, so that the chief's loop never waits for a file system. If a write fails, only
// points of a curve are lost.
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
  // The most records that wait for the thread. When there is one more, the oldest is dropped.
  static constexpr std::size_t kMaxWaiting = 10'000;

  // When a write fails, the thread calls `on_failed` with the reason. It then ignores further failures until a write
  // succeeds.
  explicit TensorBoardWriter(std::function<void(const std::string&)> on_failed);
  // Waits until the thread has written the waiting records. If a write fails, drops the rest.
  ~TensorBoardWriter();
  TensorBoardWriter(const TensorBoardWriter&) = delete;

  // Appends `record` to the current file of `folder`, which is "<checkpoint.directory>/<job>/events". Creates the
  // folder if it is missing, but not the folder's parent, because its file system may not be mounted. A record for
  // another folder than before goes into a new file. The thread retries a failed write after growing pauses. When a
  // record for another folder arrives, it gives up the failed folder and drops that folder's records.
  void write(std::string folder, std::int64_t wall_nanoseconds, std::string record);
  // Closes the folder's current file, so that an operator can unmount its file system. A later record goes into a new
  // file.
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
