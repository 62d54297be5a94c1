// Makes transports. All other code uses only the interface Transport, except the tests of a certain transport. So a new
// transport must be added only here.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "common/config/cluster_config.h"
#include "common/result.h"
#include "transport/connection.h"

namespace disttrain::transport {

// Makes the transport that [transport] in cluster.toml asks for. With "auto" each connection of a step takes shared
// memory if both ends are on one host and belong to one user, else RDMA if both hosts have a device, and else tcp.
// `cluster` is the cluster's name. kConfig: this version has no transport of that kind, or the kernel lacks the
// congestion control. kNoPermission and kUnavailable are errors of the kernel. With "auto", `warn` logs why a
// connection doesn't use RDMA; any thread may call it.
Result<std::unique_ptr<Transport>> make_transport(const TransportConfig& config, const std::string& cluster,
                                                  std::function<void(const std::string&)> warn = {});

// Finds out whether this host has the devices that the transport can't do without. kUnavailable: it lacks one, so a
// task with this configuration would end at once. Only looks at files, so it costs little.
Status check_devices(const TransportConfig& config);

// Makes a transport for the command line, which has no cluster.toml. This transport reaches every task.
std::unique_ptr<Transport> make_client_transport();

}  // namespace disttrain::transport
