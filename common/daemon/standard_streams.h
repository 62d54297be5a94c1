// For a process that was started without stdin, stdout or stderr.
#pragma once

namespace disttrain::daemon {

// Opens each of the descriptors 0 to 2 that is closed. Otherwise the next file that the process opens would get that
// descriptor, and messages for stderr would be written into the file. Reading or writing the new descriptors fails, as
// on closed ones. Call this first in main.
void open_standard_streams();

}  // namespace disttrain::daemon
