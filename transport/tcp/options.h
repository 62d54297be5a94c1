// Settings of the tcp transport that an operator or a test may change.
#pragma once

#include <string>

#include "common/result.h"
#include "common/time.h"

namespace disttrain::transport {

struct TcpOptions {
  // The setting [transport] congestion_control. If it is "", connections between hosts use the system's choice, and
  // connections within one host use a congestion control that doesn't pace packets.
  std::string congestion_control;
  // If the peer's system hasn't acknowledged sent bytes for this long, the kernel ends the connection
  // (TCP_USER_TIMEOUT). This also hits a living peer that doesn't read for this long, because its receive window stays
  // closed. So the time is long. Heartbeats detect a dead peer much earlier.
  Duration unacknowledged_timeout = std::chrono::minutes(2);
  // Payloads between hosts always carry a checksum. Within one host they carry one only if this is set, which tests do.
  bool checksum_on_one_host = false;
};

// Checks that the kernel has this congestion control; if it hasn't, returns kConfig.
Status validate(const TcpOptions& options);

}  // namespace disttrain::transport
