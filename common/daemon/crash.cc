#include "common/daemon/crash.h"

#include <cxxabi.h>
#include <execinfo.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>
#include <typeinfo>

#include "common/check.h"
#include "common/daemon/clock.h"
#include "common/daemon/crash_text.h"
#include "common/daemon/exhaustion.h"
#include "common/daemon/log/journal_socket.h"
#include "common/daemon/log/log.h"
#include "common/daemon/log/message_ids.h"
#include "common/os/crash_stack.h"

namespace disttrain::daemon {

namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
constexpr int kMostFrames = 64;
constexpr std::size_t kMostBytes = 32 * 1024;

// A crash may leave no memory to allocate, so everything here is allocated at the start.
struct Report {
  std::array<char, 32> task{};
  LogForm form = LogForm::kText;
  JournalSocket journal;
  // the reason, if an uncaught exception or a failed check ends the process; note_why() writes it before the abort
  std::array<char, 1024> why{};
  std::atomic_flag has_why;
  std::array<char, 40> id{};        // MESSAGE_ID
  std::atomic<pid_t> reporter = 0;  // the thread that reports
  std::array<char, kMostBytes> frames{};
  std::array<char, kMostBytes> text{};
};
Report crash_report;

std::atomic<int> note_file = -1;
thread_local std::uint32_t work_number = 0;

void add_note() {
  const int file = note_file;
  if (file < 0 || work_number == 0) return;
  std::array<char, 16> bytes;
  CrashText line(bytes);
  line.add_number(work_number);
  line.add("\n");
  static_cast<void>(!::write(file, line.view().data(), line.view().size()));
}

void note_why(const char* sentence) {
  if (crash_report.has_why.test_and_set()) return;  // another thread's was first
  std::strncpy(crash_report.why.data(), sentence, crash_report.why.size() - 1);
}

[[noreturn]] void on_terminate() {
  end_if_exhausted();
  std::string why = "uncaught exception";
  if (const std::type_info* type = abi::__cxa_current_exception_type(); type != nullptr) {
    int failed = 0;
    char* const name = abi::__cxa_demangle(type->name(), nullptr, nullptr, &failed);
    why += std::string(" ") + (failed == 0 ? name : type->name());
    try {
      throw;
    } catch (const std::exception& error) {
      why += std::string(": ") + error.what();
    } catch (...) {
      why += ", which says nothing of itself";
    }
  }
  note_why(why.c_str());
  std::abort();
}

const char* name_of(int signal) {
  switch (signal) {
    case SIGSEGV:
      return "SIGSEGV";
    case SIGBUS:
      return "SIGBUS";
    case SIGILL:
      return "SIGILL";
    case SIGFPE:
      return "SIGFPE";
    default:
      return "SIGABRT";
  }
}

// True if a process sent the signal, as systemd's watchdog does. The abort() of this process isn't sent.
bool is_sent(int signal, const siginfo_t& info) {
  return info.si_code <= 0 && (signal != SIGABRT || info.si_pid != ::getpid());
}

// Writes a line such as "crashed: SIGSEGV at address 0x10, thread shard-0". The kernel delivers a sent signal to
// any thread that doesn't block it. The line then says that this thread may not be at fault.
void add_headline(CrashText& text, int signal, const siginfo_t& info) {
  text.add("crashed: ");
  text.add(name_of(signal));
  if (is_sent(signal, info)) {
    text.add(", sent by process ");
    text.add_number(static_cast<std::uint64_t>(info.si_pid));
  } else if (signal != SIGABRT) {
    text.add(" at address 0x");
    text.add_number(reinterpret_cast<std::uintptr_t>(info.si_addr), 16);
  }
  char thread[16] = "";
  ::prctl(PR_GET_NAME, thread);
  text.add(is_sent(signal, info) ? ", taken by the thread " : ", thread ");
  text.add(thread);
  if (is_sent(signal, info)) text.add("; another thread may be at fault");
  if (crash_report.why[0] == '\0') return;
  text.add(": ");
  text.add(crash_report.why.data());
}

// Returns the stack frames, one per line. They go through a file, because glibc can't write them to memory without
// allocating.
//
// glibc's backtrace() finds the frames. Debian 12 has no separate package of libbacktrace, and libraries that read
// debug information (DWARF) allocate memory. The programs export the names of our own functions for it
// (disttrain_program in tools/cmake/Disttrain.cmake).
std::string_view stack_frames() {
  void* addresses[kMostFrames];
  const int count = ::backtrace(addresses, kMostFrames);
  const int file = ::memfd_create("backtrace", MFD_CLOEXEC);
  if (file < 0) return "";
  ::backtrace_symbols_fd(addresses, count, file);
  const ssize_t size = ::pread(file, crash_report.frames.data(), crash_report.frames.size(), 0);
  ::close(file);
  return {crash_report.frames.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
}

// Calls `take` for each line, without the line feed.
template <typename Take>
void for_each_line(std::string_view text, Take take) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    take(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

bool tell_journal(std::string_view headline) {
  CrashText text(crash_report.text);
  text.add(headline);
  for_each_line(stack_frames(), [&text](std::string_view frame) {
    text.add("\n  ");
    text.add(frame);
  });
  const JournalField fields[] = {{"MESSAGE", text.view()},
                                 {"PRIORITY", "2"},
                                 {"SYSLOG_IDENTIFIER", program_invocation_short_name},
                                 {"DISTTRAIN_TASK", crash_report.task.data()},
                                 {"DISTTRAIN_EVENT", kCrashed},
                                 {"MESSAGE_ID", crash_report.id.data()}};
  return crash_report.journal.send(fields);
}

void tell_stderr(std::string_view headline) {
  const auto write_line = [](const char* level, std::string_view line, std::string_view event) {
    CrashText text(crash_report.text);
    text.add_log_line(crash_report.form == LogForm::kJson, wall_nanoseconds(), level, crash_report.task.data(), line,
                      event);
    static_cast<void>(!::write(STDERR_FILENO, text.view().data(), text.view().size()));
  };
  write_line("error", headline, kCrashed);  // write this line first, because the rest could fail in a crashed process
  for_each_line(stack_frames(), [&write_line](std::string_view frame) { write_line("info", frame, ""); });
}

void tell(int signal, const siginfo_t& info) {
  std::array<char, 2048> bytes;
  CrashText headline(bytes);
  add_headline(headline, signal, info);
  if (crash_report.form != LogForm::kJournal || !tell_journal(headline.view())) tell_stderr(headline.view());
}

void on_signal(int signal, siginfo_t* info, void*) {
  const pid_t self = ::gettid();
  pid_t first = 0;
  if (crash_report.reporter.compare_exchange_strong(first, self)) {
    // The note comes first, because the report may fail in a crashed process.
    if (!is_sent(signal, *info)) add_note();
    tell(signal, *info);
  } else {
    // If another thread reports, wait until that thread ends the process. If this thread crashed again while it
    // reported, end the process now.
    while (first != self) ::pause();
  }
  std::signal(signal, SIG_DFL);
  ::raise(signal);  // delivered when this handler returns
}

}  // namespace

void note_crashes_in(int file) {
  note_file = file;
}

void note_work(std::uint32_t number) {
  work_number = number;
}

void report_crashes(TaskId task, LogForm form) {
  std::strncpy(crash_report.task.data(), to_string(task).c_str(), crash_report.task.size() - 1);
  std::strncpy(crash_report.id.data(), message_id_of(kCrashed), crash_report.id.size() - 1);
  crash_report.form = form;
  if (form == LogForm::kJournal) crash_report.journal.open();
  void* warm[1];
  ::backtrace(warm, 1);  // loads libgcc, which allocates

  use_crash_stack();
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = static_cast<int>(SA_SIGINFO | SA_ONSTACK);
  for (const int signal : kSignals) {
    struct sigaction old {};
    ::sigaction(signal, nullptr, &old);
    if (old.sa_handler == SIG_DFL) ::sigaction(signal, &action, nullptr);
  }
  std::set_terminate(on_terminate);
  internal::on_failed_check = note_why;
}

}  // namespace disttrain::daemon
