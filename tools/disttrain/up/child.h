// One daemon as a child of `up`: it inherits a listening socket, and the kernel kills it when its parent dies.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "common/ids.h"
#include "common/os/descriptor.h"
#include "common/result.h"

namespace disttrain::cli {

struct ListeningSocket {
  Descriptor fd;
  std::string address;  // with the real port where 0 was asked for
};

// kUnavailable: the port is in use. kNoPermission: this user may not. kConfig: not an address of this host.
Result<ListeningSocket> bind_listener(const std::string& address);

class Child {
 public:
  // Starts `program` in a process group of its own, so that the terminal's Ctrl-C reaches only the parent. Its stdout
  // and stderr go to `log`; descriptor 3 is `listener` (LISTEN_FDS). The kernel kills it when the parent's thread that
  // started it ends: call this from the main thread.
  static Result<Child> start(TaskId task, const std::filesystem::path& program,
                             const std::vector<std::string>& arguments, const ListeningSocket& listener,
                             const std::filesystem::path& log);

  TaskId task() const { return task_; }
  pid_t pid() const { return pid_; }
  const std::filesystem::path& log() const { return log_; }
  bool is_running() const { return !status_.has_value(); }

  // Takes the exit status if the child has ended; true the first time.
  bool reap();
  // Waits for the end of a child that was sent SIGKILL.
  void reap_killed();
  void send(int signal) const;

  // "was killed by signal 9 (Killed)", "ended with exit code 78". Call when it has ended.
  std::string how_it_ended() const;
  // None where a signal ended it, or while it runs.
  std::optional<int> exit_code() const;
  // The signal that ended it. None where it ended by itself, or while it runs.
  std::optional<int> signal() const;

 private:
  Child(TaskId task, pid_t pid, std::filesystem::path log) : task_(task), pid_(pid), log_(std::move(log)) {}

  TaskId task_;
  pid_t pid_ = 0;
  std::filesystem::path log_;
  std::optional<int> status_;  // as of waitpid
};

// Whether an exit code is one of <sysexits.h>.
constexpr bool is_sysexit(int code) {
  return code >= 64 && code <= 78;
}

}  // namespace disttrain::cli
