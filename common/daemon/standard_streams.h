// Stdin, stdout and stderr for a process that was started without them.
#pragma once

namespace disttrain::daemon {

// Opens the numbers 0 to 2 if they are closed: otherwise the next opened file gets one of them, and output for stderr
// is written into it. Reading and writing them fails as if they were closed. Call first in main.
void open_standard_streams();

}  // namespace disttrain::daemon
