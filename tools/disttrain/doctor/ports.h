// What `doctor` hears at ports of the cluster. Each question ends within twice kPortPatience.
#pragma once

#include <string>
#include <vector>

#include "common/config/cluster_config.h"
#include "common/time.h"
#include "tools/disttrain/doctor/checks.h"

namespace disttrain::cli {

inline constexpr Duration kPortPatience = std::chrono::seconds(2);

// Says hello at all addresses, as a command line says it to the chief, and hangs up. In their order.
std::vector<PortAnswer> say_hello(const ClusterConfig& cluster, const std::vector<std::string>& addresses);

// Where a task of this host serves its metrics, as one on the same host reaches it; "": nowhere, or at any free port.
std::string metrics_address(const ClusterConfig& cluster, const std::string& task_address);
PortAnswer ask_for_metrics(const std::string& address);

// Of an address of this host where somebody is or where nobody listens: who it is, or why a daemon couldn't listen
// there.
void look_behind(PortAnswer& answer, const std::string& address);

}  // namespace disttrain::cli
