#include "engine/trainer/trainer_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "common/check.h"
#include "common/counted.h"
#include "common/daemon/clock.h"
#include "common/format_duration.h"
#include "common/printable.h"
#include "engine/trainer/orphans.h"

extern char** environ;

namespace disttrain::workerd {

namespace {

constexpr std::size_t kPipeReadBytes = 16 * 1024;
// With the default of 64 KiB, a trainer that prints much would wait for the worker's thread each time.
constexpr int kPipeBytes = 1024 * 1024;
constexpr Duration kKillTime = std::chrono::seconds(2);  // for the end of a process after SIGKILL
constexpr int kStartPollMs = 100;
constexpr std::size_t kReadsInARow = 64;  // a process that prints without end must not keep the worker's thread

std::uint64_t oom_kills_now() {
  std::ifstream file("/proc/vmstat");
  std::ostringstream text;
  text << file.rdbuf();
  return oom_kills_in(text.str());
}

// What the child needs. All of it is made before fork(), because the child must not allocate memory before exec.
struct Exec {
  std::vector<std::string> arguments;
  std::vector<std::string> environment;
  std::vector<char*> argv;
  std::vector<char*> envp;
  std::string folder;
  int socket = -1;
  int out = -1;
  int err = -1;
  int null = -1;
  int failure = -1;  // the child writes a Failure here if exec fails
};

enum class Stage : int { kFolder, kProgram };
struct Failure {
  Stage stage = Stage::kFolder;
  int error = 0;
};

void prepare(Exec& exec, const TrainerCommand& command) {
  exec.arguments = command.argv;
  exec.folder = command.folder;
  const std::string socket = std::string(kSocketVariable) + "=";
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (std::strncmp(*variable, socket.c_str(), socket.size()) != 0) exec.environment.emplace_back(*variable);
  exec.environment.push_back(socket + std::to_string(exec.socket));
  // Without this variable Python keeps what it prints until it has some KiB.
  if (std::getenv("PYTHONUNBUFFERED") == nullptr) exec.environment.emplace_back("PYTHONUNBUFFERED=1");
  if (command.threads > 0 && std::getenv("OMP_NUM_THREADS") == nullptr)
    exec.environment.push_back("OMP_NUM_THREADS=" + std::to_string(command.threads));
  for (std::string& argument : exec.arguments) exec.argv.push_back(argument.data());
  for (std::string& variable : exec.environment) exec.envp.push_back(variable.data());
  exec.argv.push_back(nullptr);
  exec.envp.push_back(nullptr);
}

[[noreturn]] void give_up(const Exec& exec, Stage stage) {
  const Failure failure{stage, errno};
  [[maybe_unused]] const auto written = ::write(exec.failure, &failure, sizeof(failure));
  ::_exit(127);
}

// Runs in the child process. It makes only calls that are safe between fork() and exec.
[[noreturn]] void become(Exec& exec, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // the parent died before prctl()
  ::setpgid(0, 0);
  // If memory is short, the kernel kills the trainer before the worker.
  const int score = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (score >= 0) [[maybe_unused]]
    const auto written = ::write(score, "500", 3);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  ::dup2(exec.null, STDIN_FILENO);
  ::dup2(exec.out, STDOUT_FILENO);
  ::dup2(exec.err, STDERR_FILENO);
  ::fcntl(exec.socket, F_SETFD, 0);
  if (::chdir(exec.folder.c_str()) != 0) give_up(exec, Stage::kFolder);
  ::execvpe(exec.argv[0], exec.argv.data(), exec.envp.data());
  give_up(exec, Stage::kProgram);
}

struct Pipe {
  Descriptor read;
  Descriptor write;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> fds{};
  if (::pipe2(fds.data(), O_CLOEXEC) != 0)
    return fail(ErrorCode::kUnavailable, std::string("can't make a pipe for the trainer: ") + std::strerror(errno));
  ::fcntl(fds[1], F_SETPIPE_SZ, kPipeBytes);  // a smaller pipe does, too
  return Pipe{Descriptor(fds[0]), Descriptor(fds[1])};
}

// Waits at most for the limit, and not longer than until is_cancelled() is true.
bool becomes_readable(int fd, Duration limit, const std::function<bool()>& is_cancelled) {
  const Instant until = daemon::now() + limit;
  do {
    pollfd readable{fd, POLLIN, 0};
    if (::poll(&readable, 1, kStartPollMs) > 0) return true;
  } while (daemon::now() < until && !is_cancelled());
  return false;
}

}  // namespace

std::string TrainerEnd::sentence() const {
  if (signal == 0) return "ended with exit code " + std::to_string(exit_code);
  const std::string name = signal == SIGKILL ? "SIGKILL" : ::strsignal(signal);
  const std::string killed = "was killed by signal " + std::to_string(signal) + " (" + name + ")";
  if (out_of_memory)
    return killed + " while the kernel killed for memory, of this host or of a cgroup with a limit: see `dmesg | tail`";
  // Not every container shows the kernel's count.
  if (signal == SIGKILL)
    return killed + "; possibly by the kernel for this host's memory or a cgroup's limit: see `dmesg | tail`";
  return killed;
}

std::uint64_t oom_kills_in(const std::string& vmstat) {
  std::istringstream lines(vmstat);
  std::string name;
  std::uint64_t value = 0;
  while (lines >> name >> value)
    if (name == "oom_kill") return value;
  return 0;
}

Result<std::unique_ptr<TrainerProcess>> TrainerProcess::start(const TrainerCommand& command, Descriptor socket,
                                                              OnLine on_line, Duration limit,
                                                              const std::function<bool()>& is_cancelled) {
  DISTTRAIN_CHECK(!command.argv.empty());
  const std::string what = "can't start the trainer \"" + command.argv.front() + "\": ";
  Result<Pipe> out = make_pipe();
  if (!out) return tl::unexpected(out.error());
  Result<Pipe> err = make_pipe();
  if (!err) return tl::unexpected(err.error());
  Result<Pipe> failure = make_pipe();
  if (!failure) return tl::unexpected(failure.error());
  const Descriptor null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  Exec exec;
  exec.socket = socket.get();
  exec.out = out->write.get();
  exec.err = err->write.get();
  exec.null = null.get();
  exec.failure = failure->write.get();
  prepare(exec, command);
  const std::uint64_t oom_kills = oom_kills_now();
  adopt_orphans();
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return fail(ErrorCode::kUnavailable, what + std::strerror(errno));
  if (pid == 0) become(exec, parent);
  std::unique_ptr<TrainerProcess> process(new TrainerProcess(pid, std::move(on_line)));
  process->oom_kills_before_ = oom_kills;
  ::setpgid(pid, pid);  // also here, because the child may not have come to it yet
  // The declaration of pidfd_open() in glibc 2.36 can't be used from C++.
  process->pidfd_ = Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!process->pidfd_) return fail(ErrorCode::kUnavailable, what + std::strerror(errno));
  failure->write = Descriptor();
  if (!becomes_readable(failure->read.get(), limit, is_cancelled)) {
    if (is_cancelled()) return fail(ErrorCode::kTemporary, "stopped waiting for the trainer");
    return fail(ErrorCode::kUnavailable, what + "it hasn't begun after " + format_duration(limit) +
                                             ": does the file system of its program, or of its folder \"" +
                                             command.folder + "\", answer?");
  }
  Failure found;
  // The pipe ends without data when exec succeeds.
  if (::read(failure->read.get(), &found, sizeof(found)) == sizeof(found)) {
    const std::string why = std::strerror(found.error);
    if (found.stage == Stage::kFolder)
      return fail(ErrorCode::kConfig, what + "its folder \"" + command.folder + "\" can't be used: " + why +
                                          "; every worker's host must have the folder of the job file");
    return fail(ErrorCode::kConfig,
                what + why + "; model.trainer must begin with a program that every worker's host has");
  }
  process->stdout_ = std::move(out->read);
  process->stderr_ = std::move(err->read);
  ::fcntl(process->stdout_.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(process->stderr_.get(), F_SETFL, O_NONBLOCK);
  return process;
}

TrainerProcess::~TrainerProcess() {
  if (!end_) {
    signal_group(SIGKILL);
    // A process that waits for a device or a file server may take for ever. Then it stays, and reap_orphans() of the
    // next trainer reaps it.
    if (pidfd_) {
      if (!wait_for_end(kKillTime) && on_line_)
        on_line_("(process " + std::to_string(pid_) +
                 " can't be ended: it waits for a device or a file system, as `ps -o stat,wchan " +
                 std::to_string(pid_) + "` shows)");
    } else {
      while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
      }
      end_orphans(pid_);
    }
  }
  // The streams may still be open, as when the trainer printed more than read_output() reads at once. No further line
  // comes that would tell how many were left out before it.
  read_output();
  log_dropped();
}

void TrainerProcess::read_stream(Descriptor& from, OutputLines& lines) {
  const auto keep = [this](const std::string& line) {
    last_lines_.add(line);
    log(line);
  };
  std::array<char, kPipeReadBytes> buffer{};
  for (std::size_t i = 0; from && i < kReadsInARow; ++i) {
    const ssize_t got = ::read(from.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got > 0) {
      lines.add({buffer.data(), static_cast<std::size_t>(got)}, keep);
    } else {
      lines.end(keep);
      from = Descriptor();
    }
  }
}

void TrainerProcess::log(const std::string& line) {
  if (!on_line_ || !limit_.admits(daemon::now())) return;
  log_dropped();
  on_line_(printable(line));
}

void TrainerProcess::log_dropped() {
  if (const std::uint64_t dropped = limit_.take_dropped(); dropped > 0 && on_line_)
    on_line_("(" + counted(dropped, "line") + (dropped == 1 ? " is" : " are") +
             " left out, because it prints too fast for the log)");
}

bool TrainerProcess::read_output() {
  read_stream(stdout_, stdout_lines_);
  read_stream(stderr_, stderr_lines_);
  if (!stdout_ && !stderr_) log_dropped();
  return stdout_ || stderr_;
}

const std::optional<TrainerEnd>& TrainerProcess::check_end() {
  siginfo_t info{};
  const auto id = static_cast<id_t>(pid_);
  if (end_) return end_;
  if (::waitid(P_PID, id, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) {
    reap_orphans(pid_);
    return end_;
  }
  // The process isn't reaped yet, so no other process group can have its number.
  ::kill(-pid_, SIGKILL);
  ::waitid(P_PID, id, &info, WEXITED);
  end_orphans(pid_);
  TrainerEnd end;
  if (info.si_code == CLD_EXITED)
    end.exit_code = info.si_status;
  else
    end.signal = info.si_status;
  end.out_of_memory = end.signal == SIGKILL && oom_kills_now() > oom_kills_before_;
  end_ = end;
  return end_;
}

void TrainerProcess::signal_group(int signal) {
  if (!end_) ::kill(-pid_, signal);
}

bool TrainerProcess::wait_for_end(Duration limit) {
  const Instant until = daemon::now() + limit;
  for (;;) {
    read_output();
    if (check_end()) return true;
    const Duration left = until - daemon::now();
    if (left <= Duration::zero()) return false;
    std::array<pollfd, 3> fds{pollfd{pidfd_.get(), POLLIN, 0}, pollfd{stdout_.get(), POLLIN, 0},
                              pollfd{stderr_.get(), POLLIN, 0}};
    ::poll(fds.data(), fds.size(),
           static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(left).count()) + 1);
  }
}

}  // namespace disttrain::workerd
