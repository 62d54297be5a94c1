// The tcp settings for an operator or a test.
#pragma once

#include <string>

#include "common/result.h"
#include "common/time.h"

namespace disttrain::transport {

struct TcpOptions {
  // [transport] congestion_control. "" = the system's choice between hosts; within one host one that doesn't pace.
  std::string congestion_control;
  // A peer whose system has acknowledged nothing for this long is gone (TCP_USER_TIMEOUT). It must be longer than a
  // living peer may go without reading, because a peer whose window stays closed is cut off too. Heartbeats detect a
  // dead peer long before.
  Duration unacknowledged_timeout = std::chrono::minutes(2);
  // Payloads between hosts always carry a checksum. Within one host they don't need one, but a test asks for it.
  bool checksum_on_one_host = false;
};

// kConfig if the kernel has no such congestion control.
Status validate(const TcpOptions& options);

}  // namespace disttrain::transport
