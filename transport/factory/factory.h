// Makes transports. Nobody else names one, but the tests of that one: a new transport is added here.
#pragma once

#include <memory>

#include "common/config/cluster_config.h"
#include "common/result.h"
#include "transport/connection.h"

namespace disttrain::transport {

// The transport that [transport] asks for. "auto": the fastest that this host has, which is tcp. kConfig: this version
// has no transport of that kind, or the kernel no such congestion control. kNoPermission, kUnavailable: as the kernel
// says.
Result<std::unique_ptr<Transport>> make_transport(const TransportConfig& config);

// For the command line, which dials tasks without the cluster's file: what reaches every task.
std::unique_ptr<Transport> make_client_transport();

}  // namespace disttrain::transport
