// One daemon as a child of `up`: started with a listening socket, gone with its parent whatever happens.
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

// kUnavailable: in use; kNoPermission; kConfig: not this host's.
Result<ListeningSocket> bind_listener(const std::string& address);

class Child {
 public:
  // Starts `program` with stdout and stderr into `log`, `listener` as descriptor 3 (LISTEN_FDS), in a process group of
  // its own (Ctrl-C of the terminal reaches the parent only), killed by the kernel when the parent dies. Call from the
  // main thread: the kernel watches the thread that started it.
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
  // None where a signal ended it, or where it runs.
  std::optional<int> exit_code() const;
  // That ended it. None where it ended by itself, or where it runs.
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
