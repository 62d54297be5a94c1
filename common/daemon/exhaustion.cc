// C++ reports exhaustion as std::bad_alloc and std::system_error. Most code doesn't catch these, because it may be in
// the middle of a change when one is thrown. So the exception reaches the program's terminate handler, which ends the
// process with exit code 75 and one sentence. The command line catches both, because it must stop the daemons that it
// started. A daemon catches std::bad_alloc in a few places that need much memory, such as reading a data set. It then
// reports an error of the job and goes on.
#include "common/daemon/exhaustion.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <string>
#include <system_error>

namespace disttrain::daemon {

namespace {

constexpr rlim_t kStackBytes = 8 << 20;
constexpr rlim_t kLeastStackBytes = 256 << 10;

std::array<char, 32> program_name{};

const char* words_for(int error) {
  switch (error) {
    case EMFILE:
      return "out of file descriptors: raise `ulimit -n`, or LimitNOFILE of the unit";
    case ENFILE:
      return "this host is out of file descriptors: end other programs, or raise fs.file-max";
    case EAGAIN:
      return "can't start a thread: raise `ulimit -u` and `ulimit -v`, or TasksMax of the unit";
    case ENOMEM:
      return "out of memory: raise `ulimit -v` or MemoryMax of the unit, or use a host with more memory";
    default:
      return nullptr;
  }
}

// Returns the message for the exception that is being handled, or null if the exception doesn't mean exhaustion.
const char* words_for_current() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return words_for(ENOMEM);
  } catch (const std::system_error& error) {
    return words_for(error.code().value());
  } catch (...) {
    return nullptr;
  }
}

void say(const char* text) {
  static_cast<void>(!::write(STDERR_FILENO, text, std::strlen(text)));
}

// An exception that doesn't mean exhaustion is a bug in this program. Its text is the best clue, so print it.
void tell_exception() {
  try {
    if (std::current_exception() != nullptr) throw;
  } catch (const std::exception& error) {
    say(program_name.data());
    say(": ended by a bug: uncaught exception: ");
    say(error.what());
    say("\n");
  } catch (...) {
  }
}

void tell_and_abort() {
  end_if_exhausted();
  tell_exception();
  std::abort();
}

// Raises the soft limit to `wanted`, or as far as the hard limit allows. Returns the new soft limit.
rlim_t raise_limit(int resource, rlim_t wanted) {
  rlimit limit{};
  if (::getrlimit(static_cast<__rlimit_resource>(resource), &limit) != 0) return RLIM_INFINITY;
  if (limit.rlim_cur >= wanted) return limit.rlim_cur;
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  ::setrlimit(static_cast<__rlimit_resource>(resource), &limit);
  ::getrlimit(static_cast<__rlimit_resource>(resource), &limit);
  return limit.rlim_cur;
}

// By default, a new thread's stack is as large as the stack limit was at the start of the process. So raising that
// limit isn't enough: this raises the default for new threads.
void raise_stack_of_threads() {
  pthread_attr_t attributes;
  if (::pthread_getattr_default_np(&attributes) != 0) return;
  std::size_t bytes = 0;
  if (::pthread_attr_getstacksize(&attributes, &bytes) == 0 && bytes < kStackBytes &&
      ::pthread_attr_setstacksize(&attributes, kStackBytes) == 0)
    ::pthread_setattr_default_np(&attributes);
  ::pthread_attr_destroy(&attributes);
}

}  // namespace

void end_when_exhausted(const char* program) {
  std::strncpy(program_name.data(), program, program_name.size() - 1);
  std::set_terminate(tell_and_abort);
}

std::optional<Error> exhaustion_in(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (...) {
    const char* const words = words_for_current();
    if (words == nullptr) return std::nullopt;
    return Error{ErrorCode::kTemporary, words};
  }
}

void end_if_exhausted() noexcept {
  if (std::current_exception() == nullptr) return;
  const char* const words = words_for_current();
  if (words == nullptr) return;
  say(program_name.data());
  say(": ");
  say(words);
  say("\n");
  ::_exit(static_cast<int>(ErrorCode::kTemporary));
}

Status raise_limits(std::size_t descriptors) {
  const rlim_t stack = raise_limit(RLIMIT_STACK, kStackBytes);
  if (stack < kLeastStackBytes)
    return fail(ErrorCode::kConfig, "the limit of the stack is " + std::to_string(stack / 1024) +
                                        " KiB; expected at least 256: raise `ulimit -s`, or LimitSTACK of the unit");
  raise_stack_of_threads();
  if (descriptors == 0) return {};
  const rlim_t files = raise_limit(RLIMIT_NOFILE, descriptors);
  if (files < kLeastDescriptors)
    return fail(ErrorCode::kConfig, "the limit of open files is " + std::to_string(files) + "; expected at least " +
                                        std::to_string(kLeastDescriptors) +
                                        ": raise `ulimit -n`, or LimitNOFILE of the unit");
  return {};
}

}  // namespace disttrain::daemon
