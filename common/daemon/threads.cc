#include "common/daemon/threads.h"

#include <pthread.h>
#include <sched.h>

#include <cerrno>
#include <cstring>

#include "common/os/crash_stack.h"

namespace disttrain::daemon {

void name_thread(const std::string& name) {
  use_crash_stack();
  pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
}

Status pin_thread(const std::vector<std::uint32_t>& cores) {
  if (cores.empty()) return {};
  cpu_set_t given;
  CPU_ZERO(&given);
  sched_getaffinity(0, sizeof(given), &given);
  cpu_set_t wanted;
  CPU_ZERO(&wanted);
  for (std::uint32_t core : cores) {
    if (core >= CPU_SETSIZE || !CPU_ISSET(core, &given))
      return fail(ErrorCode::kConfig, "the cluster file's `cores` has core " + std::to_string(core) +
                                          ", which this host doesn't have or doesn't give to this process");
    CPU_SET(core, &wanted);
  }
  if (const int error = pthread_setaffinity_np(pthread_self(), sizeof(wanted), &wanted); error != 0)
    return fail(ErrorCode::kConfig,
                std::string("can't pin a thread to the cores in the cluster file: ") + std::strerror(error));
  return {};
}

std::uint32_t cores_given() {
  cpu_set_t given;
  CPU_ZERO(&given);
  if (sched_getaffinity(0, sizeof(given), &given) != 0) return 1;
  const int count = CPU_COUNT(&given);
  return count < 1 ? 1 : static_cast<std::uint32_t>(count);
}

}  // namespace disttrain::daemon
