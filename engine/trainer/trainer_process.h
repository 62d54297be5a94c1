// TrainerProcess: the process of a trainer, from its start to its end. It runs in a process group of its own, and the
// kernel kills it if the worker dies. What it prints goes to the worker's log line by line.
//
// Used by one thread. That thread must live as long as the process, because the kernel kills the process when the
// thread that started it ends.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/os/descriptor.h"
#include "common/result.h"
#include "common/time.h"
#include "engine/trainer/output_lines.h"

namespace disttrain::workerd {

// The environment variable that tells a trainer the number of its socket's descriptor.
inline constexpr char kSocketVariable[] = "DISTTRAIN_TRAINER";

struct TrainerCommand {
  std::vector<std::string> argv;  // at least one; argv[0] is looked up in PATH unless it has a "/"
  std::string folder;             // the working directory
  // Becomes OMP_NUM_THREADS, unless the worker's own environment has this variable. 0: doesn't set it.
  std::uint32_t threads = 0;
};

// How a process ended.
struct TrainerEnd {
  int exit_code = 0;  // if signal is 0
  int signal = 0;
  bool out_of_memory = false;  // the kernel killed it because memory was short
  bool is_success() const { return signal == 0 && exit_code == 0; }
  std::string sentence() const;  // "ended with exit code 1"
};

class TrainerProcess {
 public:
  // Gets the lines that the process prints, safe to show, but not more than LineLimit admits. A line of its own says
  // how many were left out.
  using OnLine = std::function<void(const std::string& line)>;

  // The process inherits `socket`. Returns when its program runs. Errors: kConfig if the program or the folder can't be
  // used; kUnavailable if the system has no more processes or descriptors, or if the program doesn't run after `limit`;
  // kTemporary if is_cancelled() returns true meanwhile.
  static Result<std::unique_ptr<TrainerProcess>> start(const TrainerCommand& command, Descriptor socket, OnLine on_line,
                                                       Duration limit, const std::function<bool()>& is_cancelled);
  // Kills the whole process group, waits some seconds for the process, and ends what it leaves (end_orphans()).
  ~TrainerProcess();
  TrainerProcess(const TrainerProcess&) = delete;
  TrainerProcess& operator=(const TrainerProcess&) = delete;

  pid_t pid() const { return pid_; }

  // These descriptors become readable when read_output() or check_end() has something to do.
  int stdout_fd() const { return stdout_.get(); }
  int stderr_fd() const { return stderr_.get(); }
  int pidfd() const { return pidfd_.get(); }

  // Reads what the process has printed so far. Never blocks. Returns false if neither stream can bring more.
  bool read_output();
  // Whether the process has ended, and how. When it has ended, all other processes of its group are killed, and those
  // that it has started in other groups (end_orphans()). Until then, reaps what it has left (reap_orphans()).
  const std::optional<TrainerEnd>& check_end();

  // Sends a signal to the whole group. Does nothing if the process has ended.
  void signal_group(int signal);
  // Waits until the process has ended, at most for this time, and reads its output meanwhile.
  bool wait_for_end(Duration limit);

  const LastLines& last_lines() const { return last_lines_; }

 private:
  TrainerProcess(pid_t pid, OnLine on_line) : pid_(pid), on_line_(std::move(on_line)) {}
  void read_stream(Descriptor& from, OutputLines& lines);
  void log(const std::string& line);
  void log_dropped();

  const pid_t pid_;
  const OnLine on_line_;
  std::uint64_t oom_kills_before_ = 0;
  Descriptor pidfd_;
  Descriptor stdout_;  // closed after the stream's end
  Descriptor stderr_;
  OutputLines stdout_lines_;
  OutputLines stderr_lines_;
  LastLines last_lines_;
  LineLimit limit_;
  std::optional<TrainerEnd> end_;
};

// The number behind "oom_kill" in the text of /proc/vmstat: how many processes the kernel has killed for memory. 0 if
// the text doesn't say.
std::uint64_t oom_kills_in(const std::string& vmstat);

}  // namespace disttrain::workerd
