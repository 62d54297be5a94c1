#include "tools/disttrain/bench/thread_usage.h"

#include <filesystem>
#include <fstream>
#include <string>

namespace disttrain::cli {

namespace fs = std::filesystem;

namespace {

// Returns the number behind `name` in a file such as /proc/PID/status, or 0.
std::uint64_t number_in(const fs::path& file, const std::string& name) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(name)) return std::stoull("0" + line.substr(line.find_first_of("0123456789", name.size())));
  return 0;
}

fs::path folder_of(pid_t process) {
  return fs::path("/proc") / std::to_string(process);
}

Usage usage_in(const fs::path& thread) {
  Usage usage;
  double nanoseconds = 0.0;
  std::ifstream(thread / "schedstat") >> nanoseconds;
  usage.cpu_seconds = nanoseconds / 1e9;
  usage.wakeups = number_in(thread / "status", "voluntary_ctxt_switches:");
  usage.preemptions = number_in(thread / "status", "nonvoluntary_ctxt_switches:");
  return usage;
}

}  // namespace

Usage& Usage::operator+=(const Usage& other) {
  cpu_seconds += other.cpu_seconds;
  wakeups += other.wakeups;
  preemptions += other.preemptions;
  return *this;
}

Usage Usage::operator-(const Usage& before) const {
  return {cpu_seconds - before.cpu_seconds, wakeups - before.wakeups, preemptions - before.preemptions};
}

Usage usage_of_thread(pid_t process, pid_t thread) {
  return usage_in(folder_of(process) / "task" / std::to_string(thread));
}

Usage usage_of_process(pid_t process) {
  Usage usage;
  std::error_code error;
  for (fs::directory_iterator thread(folder_of(process) / "task", error), end; !error && thread != end;
       thread.increment(error))
    usage += usage_in(thread->path());
  return usage;
}

std::uint64_t peak_memory(pid_t process) {
  return number_in(folder_of(process) / "status", "VmHWM:") * 1024;
}

void forget_peak_memory(pid_t process) {
  std::ofstream(folder_of(process) / "clear_refs") << "5";  // see proc(5)
}

}  // namespace disttrain::cli
