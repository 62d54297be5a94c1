// What an operator or a test may choose about tcp.
#pragma once

#include <string>

#include "common/result.h"
#include "common/time.h"

namespace disttrain::transport {

struct TcpOptions {
  // [transport] congestion_control. "" = the system's between hosts; on one host one that doesn't pace.
  std::string congestion_control;
  // A peer whose system has acknowledged nothing for so long is gone (TCP_USER_TIMEOUT). It must outlast the longest
  // time that a living peer may not read, for a peer whose window stays closed is cut off too; heartbeats tell the dead
  // from the living long before.
  Duration unacknowledged_timeout = std::chrono::minutes(2);
  // Payloads between hosts always carry a checksum. On one host they don't need any; a test wants them.
  bool checksum_on_one_host = false;
};

// kConfig if the kernel has no such congestion control.
Status validate(const TcpOptions& options);

}  // namespace disttrain::transport
