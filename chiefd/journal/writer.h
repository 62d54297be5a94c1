// The thread that waits for the disk, so that the loop never does. Records that arrive during a write go together into
// the next write.
#pragma once

#include <asio/io_context.hpp>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "chiefd/core/events.h"
#include "chiefd/journal/file.h"

namespace disttrain::chiefd {

class JournalWriter {
 public:
  struct Handlers {
    std::function<void(Ticket)> on_persisted;     // in order
    std::function<void(const Error&)> on_failed;  // at most once; nothing is persisted after it
    // The journal couldn't be rewritten for lack of room; the writer goes on with the current file.
    std::function<void(const Error&)> on_put_off{};
  };
  // Handlers are called on `loop`, which must outlive this object. The destructor returns when all given records are
  // written; no handler is called after it.
  JournalWriter(asio::io_context& loop, JournalFile file, Handlers handlers);
  ~JournalWriter();

  // The most records that wait for a slow disk; one more is a failure.
  static constexpr std::size_t kMaxWaiting = 100'000;
  void write(Ticket ticket, Record record);

 private:
  void run();
  void tell(std::function<void(const Error&)> Handlers::*handler, const Error& error);

  // Constant after construction.
  asio::io_context& loop_;
  // Shared: a call posted to the loop may outlive this object, and then finds the handlers empty.
  const std::shared_ptr<Handlers> handlers_;

  // Owned by the thread.
  JournalFile file_;

  // Guarded by mutex_.
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Record> records_;
  std::vector<Ticket> tickets_;
  bool is_ending_ = false;
  bool has_overflowed_ = false;

  std::thread thread_;
};

}  // namespace disttrain::chiefd
