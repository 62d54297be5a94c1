// Finds out for `doctor` which processes answer at the cluster's ports. Each request takes at most twice kPortPatience.
#pragma once

#include <string>
#include <vector>

#include "common/config/cluster_config.h"
#include "common/time.h"
#include "tools/disttrain/doctor/checks.h"

namespace disttrain::cli {

inline constexpr Duration kPortPatience = std::chrono::seconds(2);

// Connects to each address, sends the hello of a command line, and disconnects. Returns one answer per address, in the
// same order.
std::vector<PortAnswer> say_hello(const ClusterConfig& cluster, const std::vector<std::string>& addresses);

// Returns the address where a task of this host serves its metrics. "": it serves none, or serves them at any free
// port.
std::string metrics_address(const ClusterConfig& cluster, const std::string& task_address);
PortAnswer ask_for_metrics(const std::string& address);

// `answer` is about `address`, an address of this host. Adds two facts to it: which process uses the port, and why a
// daemon can't listen at the address.
void look_behind(PortAnswer& answer, const std::string& address);

}  // namespace disttrain::cli
