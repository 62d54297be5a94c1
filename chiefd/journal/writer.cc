#include "chiefd/journal/writer.h"

#include <asio/post.hpp>
#include <memory>
#include <utility>

#include "common/daemon/threads.h"

namespace disttrain::chiefd {

JournalWriter::JournalWriter(asio::io_context& loop, JournalFile file, Handlers handlers)
    : loop_(loop),
      handlers_(std::make_shared<Handlers>(std::move(handlers))),
      file_(std::move(file)),
      thread_([this] { run(); }) {}

JournalWriter::~JournalWriter() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_one();
  thread_.join();
  *handlers_ = Handlers{};
}

void JournalWriter::write(Ticket ticket, Record record) {
  {
    const std::lock_guard lock(mutex_);
    // After a record was dropped, none may be written: the journal would have a gap.
    if (has_overflowed_) return;
    if (records_.size() >= kMaxWaiting) {
      has_overflowed_ = true;
      asio::post(loop_, [handlers = handlers_] {
        if (handlers->on_failed)
          handlers->on_failed(
              Error{ErrorCode::kFailed, "the disk of the chief's journal hangs: " + std::to_string(kMaxWaiting) +
                                            " records wait for a write that doesn't finish; check the "
                                            "disk of chief.state_directory"});
      });
      return;
    }
    records_.push_back(std::move(record));
    tickets_.push_back(ticket);
  }
  changed_.notify_one();
}

void JournalWriter::run() {
  daemon::name_thread("journal");
  while (true) {
    std::vector<Record> records;
    std::vector<Ticket> tickets;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return is_ending_ || !records_.empty(); });
      if (records_.empty()) return;
      records.swap(records_);
      tickets.swap(tickets_);
    }
    if (Status status = file_.append(records); !status) return tell(&Handlers::on_failed, status.error());
    asio::post(loop_, [handlers = handlers_, tickets = std::move(tickets)] {
      for (Ticket ticket : tickets)
        if (handlers->on_persisted) handlers->on_persisted(ticket);
    });
    // Nobody waits for this.
    const Result<std::optional<Error>> rewritten = file_.rewrite_if_far_grown();
    if (!rewritten.has_value()) return tell(&Handlers::on_failed, rewritten.error());
    if (*rewritten) tell(&Handlers::on_put_off, **rewritten);
  }
}

void JournalWriter::tell(std::function<void(const Error&)> Handlers::*handler, const Error& error) {
  asio::post(loop_, [handlers = handlers_, handler, error] {
    if (const auto& call = *handlers.*handler) call(error);
  });
}

}  // namespace disttrain::chiefd
