// The thread that writes the journal, so that the chief's loop never waits for the disk. Records that arrive during a
// write go into the next write together.
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
    std::function<void(Ticket)> on_persisted;  // in order
    // Called at most once for each of two failures:
    // - A write fails. The thread then ends, and no further record becomes durable.
    // - kMaxWaiting records wait, and write() is called again. write() drops the new record, and each further one
    //   while kMaxWaiting records wait. The thread still writes the other records and reports their tickets.
    // After either failure the journal lacks records, so the chief must end.
    std::function<void(const Error&)> on_failed;
    // Called when the journal couldn't be rewritten, for example because the disk is full. The writer keeps appending
    // to the current file.
    std::function<void(const Error&)> on_put_off{};
  };
  // `loop` calls the handlers, and must outlive this object. The destructor waits until all given records are written,
  // or a write has failed. No handler is called after that.
  JournalWriter(asio::io_context& loop, JournalFile file, Handlers handlers);
  ~JournalWriter();

  // The most records that may wait for a slow disk. When one more comes, on_failed is called and the record is dropped.
  static constexpr std::size_t kMaxWaiting = 100'000;
  void write(Ticket ticket, Record record);

 private:
  void run();
  void tell(std::function<void(const Error&)> Handlers::*handler, const Error& error);

  // Constant after construction.
  asio::io_context& loop_;
  // Calls that were posted to the loop share the handlers, because they may run after this object is destroyed. The
  // destructor empties the handlers, so that such a call does nothing.
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
