// Handles exhaustion: the system refuses memory, a thread or a file descriptor, or a limit is too low at the start.
// Exhaustion isn't a bug, so the process ends without a core dump, with an error that says which limit to raise.
#pragma once

#include <exception>
#include <optional>

#include "common/result.h"

namespace disttrain::daemon {

// The fewest descriptors with which a daemon starts: for the listener, the log, the loop, the HTTP threads and a few
// peers.
inline constexpr std::size_t kLeastDescriptors = 64;

// Call this first in main. Afterwards, if an uncaught exception in any thread means exhaustion, the process writes
// "PROGRAM: out of ..." to stderr and ends with exit code 75 (kTemporary). Any other uncaught exception still aborts
// the process.
void end_when_exhausted(const char* program);

// Returns the error for an exception that means exhaustion, and none for any other exception.
std::optional<Error> exhaustion_in(const std::exception_ptr& exception);

// For a handler of std::terminate. If the exception being handled means exhaustion, ends the process with a message and
// doesn't return. Allocates nothing.
void end_if_exhausted() noexcept;

// Raises the soft limits as far as the hard limits allow: open files up to `descriptors`, and the stack to 8 MiB, also
// for new threads. Fails with kConfig if the limit on open files stays below kLeastDescriptors or the stack limit below
// 256 KiB. If `descriptors` is 0, leaves the limit on open files alone.
Status raise_limits(std::size_t descriptors);

}  // namespace disttrain::daemon
