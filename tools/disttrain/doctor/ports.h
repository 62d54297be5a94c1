// What answers at the cluster's ports. Each question ends within twice kPortPatience.
#pragma once

#include <string>
#include <vector>

#include "common/config/cluster_config.h"
#include "common/time.h"
#include "tools/disttrain/doctor/checks.h"

namespace disttrain::cli {

inline constexpr Duration kPortPatience = std::chrono::seconds(2);

// Says hello at each address, as a command line does to the chief, then hangs up. Answers in the order of the
// addresses.
std::vector<PortAnswer> say_hello(const ClusterConfig& cluster, const std::vector<std::string>& addresses);

// The address at which a task of this host serves its metrics; "": it serves none, or at any free port.
std::string metrics_address(const ClusterConfig& cluster, const std::string& task_address);
PortAnswer ask_for_metrics(const std::string& address);

// Completes an answer from an address of this host: who holds the port, and why a daemon can't listen there.
void look_behind(PortAnswer& answer, const std::string& address);

}  // namespace disttrain::cli
