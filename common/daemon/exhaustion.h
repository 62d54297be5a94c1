// What a process does when the system gives it no more memory, threads or descriptors, or too few from the start. That
// is no bug: the process ends with a sentence that says which limit to raise, and without a core dump.
#pragma once

#include <exception>
#include <optional>

#include "common/result.h"

namespace disttrain::daemon {

// The fewest descriptors for a daemon to start: listener, log, loop, HTTP threads, a peer or two.
inline constexpr std::size_t kLeastDescriptors = 64;

// Call first in main. From now on an uncaught exception of exhaustion, in any thread, writes "PROGRAM: out of ..." to
// stderr and ends the process with 75 (kTemporary). Other exceptions end it as before.
void end_when_exhausted(const char* program);

// The error for such an exception; none for any other exception.
std::optional<Error> exhaustion_in(const std::exception_ptr& exception);

// For a handler of std::terminate: if exhaustion ended the process, it doesn't return. Allocates nothing.
void end_if_exhausted() noexcept;

// Raises the soft limits as far as allowed: open files up to `descriptors`, the stack to 8 MiB, for threads to come
// too. kConfig if the limits stay below kLeastDescriptors (not checked if `descriptors` is 0) or below 256 KiB of
// stack.
Status raise_limits(std::size_t descriptors);

}  // namespace disttrain::daemon
