// What a process does where the system has no more memory, threads or descriptors for it, or too few from the start.
// That is no bug: the process ends with a sentence that says what to raise, and without a core dump.
#pragma once

#include <exception>
#include <optional>

#include "common/result.h"

namespace disttrain::daemon {

// The least descriptors that a daemon can begin with: listener, log, loop, HTTP threads, a peer or two.
inline constexpr std::size_t kLeastDescriptors = 64;

// Call first in main. From now on an exception of exhaustion that nobody catches, in any thread, says
// "PROGRAM: out of ..." on stderr and ends the process with 75 (kTemporary). Others end it as before.
void end_when_exhausted(const char* program);

// What such an exception is an error of; none: it is another one.
std::optional<Error> exhaustion_in(const std::exception_ptr& exception);

// For a handler of std::terminate: doesn't return where exhaustion is what ends the process. Allocates nothing.
void end_if_exhausted() noexcept;

// Raises the soft limits of this process as far as it may: `descriptors` to be opened, a stack of 8 MiB, also for
// threads to come. kConfig where the limits stay below kLeastDescriptors (0 of `descriptors`: any number will do) or
// below 256 KiB of stack.
Status raise_limits(std::size_t descriptors);

}  // namespace disttrain::daemon
