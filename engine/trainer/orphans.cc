#include "engine/trainer/orphans.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <vector>

#include "common/daemon/clock.h"

namespace disttrain::workerd {

namespace {

constexpr Duration kLongest = std::chrono::seconds(1);
constexpr int kPauseMs = 1;

std::vector<pid_t> children() {
  std::vector<pid_t> found;
  std::error_code failed;
  for (std::filesystem::directory_iterator task("/proc/self/task", failed), end; !failed && task != end;
       task.increment(failed)) {
    std::ifstream file(task->path() / "children");
    for (pid_t child = 0; file >> child;) found.push_back(child);
  }
  return found;
}

// Returns false if no child of the group is left.
bool reap_group(pid_t group) {
  for (;;) {
    const pid_t ended = ::waitpid(-group, nullptr, WNOHANG);
    if (ended <= 0) return ended == 0;
  }
}

bool is_orphan(pid_t child) {
  const pid_t group = ::getpgid(child);
  return group >= 0 && group != ::getpgrp();
}

// Returns false if there was no orphan.
bool kill_orphans() {
  bool found = false;
  for (const pid_t child : children()) {
    if (!is_orphan(child)) continue;
    found = true;
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, WNOHANG);
  }
  return found;
}

}  // namespace

void adopt_orphans() {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

void reap_orphans(pid_t trainer) {
  for (;;) {
    siginfo_t ended{};
    if (::waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) != 0 || ended.si_pid == 0) return;
    if (ended.si_pid == trainer || !is_orphan(ended.si_pid)) return;
    ::waitpid(ended.si_pid, nullptr, WNOHANG);
  }
}

void end_orphans(pid_t group) {
  const Instant until = daemon::now() + kLongest;
  for (;;) {
    const bool has_group = reap_group(group);
    const bool has_orphans = kill_orphans();
    if ((!has_group && !has_orphans) || daemon::now() >= until) return;
    ::poll(nullptr, 0, kPauseMs);
  }
}

}  // namespace disttrain::workerd
