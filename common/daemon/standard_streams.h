// Stdin, stdout and stderr of a process that was started without them.
#pragma once

namespace disttrain::daemon {

// Gives the numbers 0 to 2 to somebody where they are closed: else the next file that is opened has them, and what is
// meant for stderr is written into it. Reading and writing there fail as on a closed one. The first call of main.
void open_standard_streams();

}  // namespace disttrain::daemon
