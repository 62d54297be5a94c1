// RunningTrainer: one trainer process and the socket to it, from the start of the process to its end. It turns every
// way in which a trainer can fail into one error, which ends with the last lines that the trainer printed.
//
// Used by one thread (see trainer_process.h).
#pragma once

#include <asio/io_context.hpp>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>

#include "common/result.h"
#include "common/time.h"
#include "engine/trainer/message_socket.h"
#include "engine/trainer/trainer_process.h"
#include "engine/trainer/trainer_protocol.h"

namespace disttrain::workerd {

class RunningTrainer {
 public:
  // Errors: as TrainerProcess::start().
  static Result<std::unique_ptr<RunningTrainer>> start(const TrainerCommand& command, TrainerProcess::OnLine on_line,
                                                       Duration limit, const std::function<bool()>& is_cancelled);
  // Kills the process if it still runs.
  ~RunningTrainer();

  pid_t pid() const { return process_->pid(); }

  // The functions below return these errors. After an error the process is dead, and each call returns the same error.
  // kUnavailable: the trainer failed, was killed, or closed its socket; another trainer may do better. kConfig: it sent
  // something wrong, it said that it can't go on, or it ended with exit code 0. `what` in the texts is what the trainer
  // was doing, as in "in this worker's step 17".

  // If the trainer has closed its socket, the message is lost, and next() or wait() returns the error.
  Status send(const nlohmann::json& message, std::span<const int> descriptors);
  // The next message that has arrived, or none. Also passes on what the trainer has printed. Never waits for the
  // trainer, but an error may take the seconds in which the trainer may react to SIGTERM.
  Result<std::optional<TrainerMessage>> next();
  // Waits for the next message. Fails with kUnavailable at since + limit. Fails with kTemporary when is_cancelled(),
  // which is called several times a second, returns true.
  Result<TrainerMessage> wait(Instant since, Duration limit, const std::function<bool()>& is_cancelled);

  // A trainer that has closed its socket does nothing else any more.
  void set_activity(std::string what) {
    if (!closed_) activity_ = std::move(what);
  }

  // Calls `on_event` on the loop when next() may have something to do. Until the trainer is destroyed.
  void watch(asio::io_context& loop, std::function<void()> on_event);

  // Kills a trainer that doesn't answer. First it lets the package disttrain print where the Python threads are. The
  // error says "hasn't answered for ...".
  Error give_up_on(Duration waited);
  // Fails the trainer: it sent something that doesn't fit.
  Error refuse(const std::string& what);
  // How the process ended. None if it still runs, or was killed after an error.
  const std::optional<TrainerEnd>& how_it_ended() const { return how_it_ended_; }
  // Tells the trainer that the job is over, waits for its end, and kills it after `patience`. Calls `on_wait` several
  // times in each kReleasePatience (common/daemon/release_deadline.h) while it waits.
  void end(Duration patience, const std::function<void()>& on_wait = {});

 private:
  class Watch;

  RunningTrainer(std::unique_ptr<TrainerProcess> process, MessageSocket socket)
      : process_(std::move(process)), socket_(std::move(socket)) {}

  // The trainer has closed its socket.
  struct Closed {
    Instant at;
    std::string how;  // "closed its socket"
  };

  // Waits for the end of a process that has closed its socket.
  Result<std::optional<TrainerMessage>> next_after_close(bool has_ended);
  // Ends the process, if it still runs, and makes the error.
  Error fail_with(ErrorCode code, const std::string& what);
  // The error of a process that has ended.
  Error ended();
  void stop(Duration patience, const std::function<void()>& on_wait = {});
  bool wait_for_end(Duration limit, const std::function<void()>& on_wait);
  void stop_watching();

  const std::unique_ptr<TrainerProcess> process_;
  MessageSocket socket_;
  std::string activity_ = "while it started";
  bool has_sdk_ = false;  // it has sent a message, so it has the package disttrain
  std::optional<Closed> closed_;
  std::optional<Error> error_;
  std::optional<TrainerEnd> how_it_ended_;
  std::shared_ptr<Watch> watch_;  // shared with its handlers in the loop
};

}  // namespace disttrain::workerd
