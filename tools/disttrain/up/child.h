// A daemon as a child process of `up`. It inherits its listening socket from `up`. If `up` dies, the kernel kills it.
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
  std::string address;  // its port is the real one even if port 0 was asked for
};

// Opens a socket that listens at the address. Error kUnavailable: the port is in use. kNoPermission: this user may not
// use the port. kConfig: the address doesn't belong to this host.
Result<ListeningSocket> bind_listener(const std::string& address);

class Child {
 public:
  // Starts `program` in its own process group, so that Ctrl-C on the terminal reaches only the parent. The program's
  // stdout and stderr go to `log`. It inherits `listener` as descriptor 3, as from systemd (LISTEN_FDS). Call this from
  // the main thread, because the kernel kills the child when the thread that started it ends.
  static Result<Child> start(TaskId task, const std::filesystem::path& program,
                             const std::vector<std::string>& arguments, const ListeningSocket& listener,
                             const std::filesystem::path& log);

  TaskId task() const { return task_; }
  pid_t pid() const { return pid_; }
  const std::filesystem::path& log() const { return log_; }
  bool is_running() const { return !status_.has_value(); }

  // If the child has ended, takes its exit status. Returns true only the first time.
  bool reap();
  // Waits until the child ends. Call it only after SIGKILL.
  void reap_killed();
  void send(int signal) const;

  // Returns "was killed by signal 9 (Killed)" or "ended with exit code 78". Call it only when the child has ended.
  std::string how_it_ended() const;
  // Returns none if the child still runs, or if a signal ended it.
  std::optional<int> exit_code() const;
  // Returns the signal that ended the child. None: it still runs, or it ended by itself.
  std::optional<int> signal() const;

 private:
  Child(TaskId task, pid_t pid, std::filesystem::path log) : task_(task), pid_(pid), log_(std::move(log)) {}

  TaskId task_;
  pid_t pid_ = 0;
  std::filesystem::path log_;
  std::optional<int> status_;  // the status from waitpid(); none while the child runs
};

// Returns true if <sysexits.h> defines this exit code.
constexpr bool is_sysexit(int code) {
  return code >= 64 && code <= 78;
}

}  // namespace disttrain::cli
