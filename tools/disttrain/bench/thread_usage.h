// What threads have used of the machine, as the kernel counts it in /proc.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace disttrain::cli {

struct Usage {
  double cpu_seconds = 0.0;
  std::uint64_t wakeups = 0;      // how often a thread has slept, because it waited for something
  std::uint64_t preemptions = 0;  // how often the kernel gave a thread's core to another thread

  Usage& operator+=(const Usage& other);
  Usage operator-(const Usage& before) const;
};

// All zeros if there is no such thread any more.
Usage usage_of_thread(pid_t process, pid_t thread);
// The sum over the threads that the process has now.
Usage usage_of_process(pid_t process);

// The most memory that the process has used at one time since its start, or since forget_peak_memory(). 0: not known.
std::uint64_t peak_memory(pid_t process);
// Has no effect if the kernel doesn't allow it.
void forget_peak_memory(pid_t process);

}  // namespace disttrain::cli
