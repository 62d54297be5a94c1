#include "tools/disttrain/up/child.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "transport/tcp/socket.h"

extern char** environ;

namespace disttrain::cli {

using transport::system_words;

Result<ListeningSocket> bind_listener(const std::string& address) {
  auto parsed = transport::parse_address(address);
  if (!parsed) return tl::unexpected<Error>(std::move(parsed.error()));
  auto endpoints = transport::resolve(*parsed);
  if (!endpoints) return tl::unexpected<Error>(std::move(endpoints.error()));
  const transport::Endpoint& endpoint = endpoints->front();
  auto fd = transport::open_socket(endpoint.storage.ss_family, {});
  if (!fd) return tl::unexpected<Error>(std::move(fd.error()));
  const int on = 1;
  setsockopt(fd->get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (::bind(fd->get(), endpoint.get(), endpoint.length) != 0 || ::listen(fd->get(), SOMAXCONN) != 0) {
    const int error = errno;
    const ErrorCode code = error == EADDRINUSE                 ? ErrorCode::kUnavailable
                           : error == EACCES || error == EPERM ? ErrorCode::kNoPermission
                                                               : ErrorCode::kConfig;
    std::string message = "can't listen on " + address + ": " + system_words(error);
    if (error == EADDRINUSE) message += "; another process has this port: stop that process, or choose another port";
    return fail(code, message);
  }
  ListeningSocket listener;
  listener.address = transport::to_string(transport::local_endpoint(fd->get()));
  listener.fd = std::move(*fd);
  return listener;
}

namespace {

constexpr char kPidVariable[] = "LISTEN_PID=";

// The arguments and the environment for the child's execve(). They are built before fork(), because the child must not
// allocate memory before execve().
struct Exec {
  std::vector<std::string> arguments;
  std::vector<std::string> environment;
  std::string pid_variable = std::string(kPidVariable) + std::string(20, '\0');  // the child writes its pid here
  std::vector<char*> argv;
  std::vector<char*> envp;
};

void prepare(Exec& exec, Role role, const std::filesystem::path& program, const std::vector<std::string>& arguments) {
  exec.arguments = arguments;
  exec.arguments.insert(exec.arguments.begin(), program.string());
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (std::strncmp(*variable, "LISTEN_", 7) != 0) exec.environment.emplace_back(*variable);
  exec.environment.emplace_back("LISTEN_FDS=1");
  // Lets a worker use huge pages, unless the user has set this variable. When a process is killed, the kernel closes
  // its sockets only after it has freed the memory, and it frees huge pages faster. For 170 MB in small pages this took
  // 41 ms (median; 100 ms at worst), and in huge pages 15 ms (32 ms at worst). So the chief notices the death of a
  // worker with libtorch in less than half the time.
  if ((role == Role::kWorker || role == Role::kEvaluator) && std::getenv("GLIBC_TUNABLES") == nullptr)
    exec.environment.emplace_back("GLIBC_TUNABLES=glibc.malloc.hugetlb=1");
  for (std::string& argument : exec.arguments) exec.argv.push_back(argument.data());
  for (std::string& variable : exec.environment) exec.envp.push_back(variable.data());
  exec.envp.push_back(exec.pid_variable.data());
  exec.argv.push_back(nullptr);
  exec.envp.push_back(nullptr);
}

void write_number(char* to, unsigned long number) {
  char digits[20];
  int count = 0;
  do digits[count++] = static_cast<char>('0' + number % 10);
  while ((number /= 10) != 0);
  while (count > 0) *to++ = digits[--count];
  *to = '\0';
}

// Runs in the child process. It makes only calls that are safe between fork() and execve().
[[noreturn]] void become(Exec& exec, pid_t parent, int listener, int log, int null) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // the parent died before prctl()
  setpgid(0, 0);
  dup2(null, STDIN_FILENO);
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  if (listener == 3)
    fcntl(3, F_SETFD, 0);
  else
    dup2(listener, 3);
  write_number(exec.pid_variable.data() + sizeof(kPidVariable) - 1, static_cast<unsigned long>(getpid()));
  execve(exec.argv[0], exec.argv.data(), exec.envp.data());
  _exit(127);
}

}  // namespace

Result<Child> Child::start(TaskId task, const std::filesystem::path& program, const std::vector<std::string>& arguments,
                           const ListeningSocket& listener, const std::filesystem::path& log) {
  const std::string what = "can't start " + to_string(task) + " (" + program.string() + "): ";
  if (access(program.c_str(), X_OK) != 0)
    return fail(ErrorCode::kNoInput,
                what + system_words(errno) + "; it must be in the same folder as the program disttrain");
  const Descriptor log_fd(open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  const Descriptor null(open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!log_fd || !null) return fail(ErrorCode::kNoPermission, what + log.string() + ": " + system_words(errno));
  Exec exec;
  prepare(exec, task.role, program, arguments);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return fail(ErrorCode::kTemporary, what + system_words(errno));
  if (pid == 0) become(exec, parent, listener.fd.get(), log_fd.get(), null.get());
  return Child(task, pid, log);
}

bool Child::reap() {
  int status = 0;
  if (status_ || waitpid(pid_, &status, WNOHANG) != pid_) return false;
  status_ = status;
  return true;
}

void Child::reap_killed() {
  int status = 0;
  if (!status_ && waitpid(pid_, &status, 0) == pid_) status_ = status;
}

void Child::send(int signal) const {
  if (is_running()) kill(pid_, signal);  // the child isn't reaped yet, so no other process can have its pid
}

std::string Child::how_it_ended() const {
  const int status = status_.value_or(0);
  if (WIFSIGNALED(status))
    return "was killed by signal " + std::to_string(WTERMSIG(status)) + " (" + strsignal(WTERMSIG(status)) + ")";
  return "ended with exit code " + std::to_string(WEXITSTATUS(status));
}

std::optional<int> Child::exit_code() const {
  return status_ && WIFEXITED(*status_) ? std::optional(WEXITSTATUS(*status_)) : std::nullopt;
}

std::optional<int> Child::signal() const {
  return status_ && WIFSIGNALED(*status_) ? std::optional(WTERMSIG(*status_)) : std::nullopt;
}

}  // namespace disttrain::cli
