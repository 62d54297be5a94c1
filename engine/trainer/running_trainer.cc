// The process descriptor shows a trainer's end, and not the socket: a forked child may keep the socket open.
#include "engine/trainer/running_trainer.h"

#include <fcntl.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>
#include <csignal>
#include <nlohmann/json.hpp>
#include <utility>

#include "common/daemon/clock.h"
#include "common/format_duration.h"

namespace disttrain::workerd {

namespace {

using namespace std::chrono_literals;

constexpr Duration kSendLimit = 10s;     // a trainer that waits for a message reads it at once
constexpr Duration kTraceTime = 1s;      // the most time that Python gets to print where its threads are
constexpr int kTraceShare = 6;           // and the share of the time that the trainer had to answer
constexpr Duration kTerminateTime = 2s;  // between SIGTERM and SIGKILL
// For the end of a process that has closed its socket. Python closes it before it ends: with PyTorch or CUDA the end
// takes up to some seconds, and longer on a busy machine.
constexpr Duration kEndTime = 5s;
constexpr Duration kPollEvery = 100ms;
constexpr Duration kEndSendLimit = 1s;  // a trainer at the end of its job waits for a message
constexpr Duration kWaitStep = 500ms;   // how often end() tells that it waits

int milliseconds(Duration duration) {
  return static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
}

}  // namespace

// Waits in the loop until a descriptor is readable, and then calls a function. It waits on copies of the descriptors,
// so that the owner may close its own at any time.
//
// The function may run the loop, and may destroy the watch. It isn't called within itself.
class RunningTrainer::Watch : public std::enable_shared_from_this<Watch> {
 public:
  Watch(asio::io_context& loop, std::function<void()> on_event) : loop_(loop), on_event_(std::move(on_event)) {}

  // `is_over`: there will be nothing more to read.
  void add(int fd, std::function<bool()> is_over) {
    const int copy = fd < 0 ? -1 : ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (copy < 0) return;
    entries_.push_back(std::make_unique<Entry>(Entry{{loop_, copy}, std::move(is_over), false}));
    wait_for(*entries_.back());
  }

  // Calls the function once after this time.
  void call_after(Duration time) {
    timer_.emplace(loop_, time);
    timer_->async_wait([self = shared_from_this()](asio::error_code failed) {
      if (!failed) self->call();
    });
  }

  void close() {
    is_closed_ = true;
    timer_.reset();
    for (const auto& entry : entries_) entry->descriptor.close();
  }

 private:
  struct Entry {
    asio::posix::stream_descriptor descriptor;
    std::function<bool()> is_over;
    bool is_readable = false;
  };

  void wait_for(Entry& entry) {
    entry.is_readable = false;
    entry.descriptor.async_wait(asio::posix::stream_descriptor::wait_read,
                                [self = shared_from_this(), &entry](asio::error_code failed) {
                                  if (!failed) self->handle(entry);
                                });
  }

  // Returns false if it is called within itself: the outer call looks at everything before it returns.
  bool call() {
    if (is_busy_) return false;
    is_busy_ = true;
    if (!is_closed_) on_event_();
    is_busy_ = false;
    return true;
  }

  void handle(Entry& readable) {
    readable.is_readable = true;
    if (!call() || is_closed_) return;
    for (const auto& entry : entries_)
      if (entry->is_readable && !entry->is_over()) wait_for(*entry);
  }

  asio::io_context& loop_;
  const std::function<void()> on_event_;
  std::vector<std::unique_ptr<Entry>> entries_;
  std::optional<asio::steady_timer> timer_;
  bool is_busy_ = false;
  bool is_closed_ = false;
};

Result<std::unique_ptr<RunningTrainer>> RunningTrainer::start(const TrainerCommand& command,
                                                              TrainerProcess::OnLine on_line, Duration limit,
                                                              const std::function<bool()>& is_cancelled) {
  Result<MessageSocket::Pair> pair = MessageSocket::make_pair();
  if (!pair) return tl::unexpected(pair.error());
  Result<std::unique_ptr<TrainerProcess>> process =
      TrainerProcess::start(command, std::move(pair->trainer), std::move(on_line), limit, is_cancelled);
  if (!process) return tl::unexpected(process.error());
  return std::unique_ptr<RunningTrainer>(
      new RunningTrainer(std::move(*process), MessageSocket(std::move(pair->worker))));
}

RunningTrainer::~RunningTrainer() {
  stop_watching();
}

void RunningTrainer::watch(asio::io_context& loop, std::function<void()> on_event) {
  watch_ = std::make_shared<Watch>(loop, std::move(on_event));
  const auto never = [] { return false; };
  watch_->add(socket_.fd(), [this] { return closed_.has_value(); });
  watch_->add(process_->pidfd(), never);
  watch_->add(process_->stdout_fd(), [this] { return process_->stdout_fd() < 0; });
  watch_->add(process_->stderr_fd(), [this] { return process_->stderr_fd() < 0; });
}

void RunningTrainer::stop_watching() {
  if (watch_) std::exchange(watch_, nullptr)->close();
}

Status RunningTrainer::send(const nlohmann::json& message, std::span<const int> descriptors) {
  if (error_) return tl::unexpected(*error_);
  const Status sent = socket_.send(message, descriptors, kSendLimit);
  // The trainer may have said why it closed its socket, and it may not have ended yet: see next().
  if (sent || sent.error().code == ErrorCode::kUnavailable) return {};
  return tl::unexpected(fail_with(ErrorCode::kUnavailable, sent.error().message));
}

Result<std::optional<TrainerMessage>> RunningTrainer::next() {
  if (error_) return tl::unexpected(*error_);
  // The order matters: all that the trainer wrote before its end is read before its end is noticed.
  const bool has_ended = process_->check_end().has_value();
  process_->read_output();
  if (closed_) return next_after_close(has_ended);
  Result<std::optional<RawMessage>> raw = socket_.receive();
  if (!raw.has_value()) {
    if (raw.error().code != ErrorCode::kUnavailable)
      return tl::unexpected(fail_with(raw.error().code, raw.error().message));
    closed_ = Closed{daemon::now(), raw.error().message};
    if (watch_) watch_->call_after(kEndTime);
    return next_after_close(has_ended);
  }
  if (!raw->has_value()) {
    if (has_ended) return tl::unexpected(ended());
    return std::optional<TrainerMessage>();
  }
  has_sdk_ = true;
  Result<TrainerMessage> message = parse_trainer_message(**raw);
  if (!message) return tl::unexpected(fail_with(message.error().code, message.error().message));
  if (const auto* failed = std::get_if<TrainerFailed>(&*message))
    return tl::unexpected(fail_with(ErrorCode::kConfig, "can't go on: " + failed->message));
  return std::optional(std::move(*message));
}

Result<std::optional<TrainerMessage>> RunningTrainer::next_after_close(bool has_ended) {
  if (has_ended) return tl::unexpected(ended());
  if (daemon::now() - closed_->at >= kEndTime) return tl::unexpected(fail_with(ErrorCode::kUnavailable, closed_->how));
  return std::optional<TrainerMessage>();
}

Result<TrainerMessage> RunningTrainer::wait(Instant since, Duration limit, const std::function<bool()>& is_cancelled) {
  for (;;) {
    Result<std::optional<TrainerMessage>> message = next();
    if (!message.has_value()) return tl::unexpected(message.error());
    if (message->has_value()) return std::move(**message);
    if (is_cancelled()) return fail(ErrorCode::kTemporary, "stopped waiting for the trainer");
    if (daemon::now() - since >= limit) return tl::unexpected(give_up_on(limit));
    // poll() ignores a negative descriptor.
    std::array<pollfd, 4> fds{pollfd{closed_ ? -1 : socket_.fd(), POLLIN, 0}, pollfd{process_->pidfd(), POLLIN, 0},
                              pollfd{process_->stdout_fd(), POLLIN, 0}, pollfd{process_->stderr_fd(), POLLIN, 0}};
    ::poll(fds.data(), fds.size(), milliseconds(kPollEvery));
  }
}

Error RunningTrainer::give_up_on(Duration waited) {
  if (has_sdk_ && !process_->check_end()) {
    process_->signal_group(SIGUSR1);  // the package disttrain registers faulthandler for it
    process_->wait_for_end(std::min(kTraceTime, waited / kTraceShare));
  }
  // The chief's own limit ends soon (job.stall_timeout), so there is no time for SIGTERM.
  process_->signal_group(SIGKILL);
  return fail_with(ErrorCode::kUnavailable, closed_ ? closed_->how : "hasn't answered for " + format_duration(waited));
}

Error RunningTrainer::refuse(const std::string& what) {
  return fail_with(ErrorCode::kConfig, what);
}

Error RunningTrainer::ended() {
  process_->read_output();
  how_it_ended_ = process_->check_end();
  const std::string what = how_it_ended_->sentence();
  if (!how_it_ended_->is_success()) return fail_with(ErrorCode::kUnavailable, what);
  return fail_with(ErrorCode::kConfig,
                   what + (has_sdk_ ? " before the job was over; its loop must run until job.batches() ends by itself: "
                                      "to end a job earlier, set train.steps, train.epochs or evaluate.stop_after"
                                    : " before it had called disttrain.init(); model.trainer must name a script that "
                                      "trains with the package disttrain"));
}

Error RunningTrainer::fail_with(ErrorCode code, const std::string& what) {
  if (error_) return *error_;
  stop_watching();
  stop(Duration::zero());
  process_->read_output();
  const std::string lines = process_->last_lines().text();
  error_ = Error{code, "the trainer " + what + " (" + activity_ + ")" +
                           (lines.empty() ? "; it has printed nothing" : "; its last lines:" + lines)};
  return *error_;
}

void RunningTrainer::end(Duration patience, const std::function<void()>& on_wait) {
  stop_watching();
  if (error_ || process_->check_end()) return;
  const Status told = socket_.send(end_message(), {}, std::min(patience, kEndSendLimit));
  stop(told ? patience : Duration::zero(), on_wait);
}

void RunningTrainer::stop(Duration patience, const std::function<void()>& on_wait) {
  if (wait_for_end(patience, on_wait)) return;
  process_->signal_group(SIGTERM);
  if (wait_for_end(kTerminateTime, on_wait)) return;
  process_->signal_group(SIGKILL);
  wait_for_end(kTerminateTime, on_wait);
}

bool RunningTrainer::wait_for_end(Duration limit, const std::function<void()>& on_wait) {
  for (Duration left = limit; on_wait && left > kWaitStep; left -= kWaitStep) {
    if (process_->wait_for_end(kWaitStep)) return true;
    on_wait();
    limit = left - kWaitStep;
  }
  return process_->wait_for_end(limit);
}

}  // namespace disttrain::workerd
