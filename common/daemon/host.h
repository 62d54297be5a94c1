// Which of a cluster's addresses are this host's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/config/cluster_config.h"
#include "common/result.h"

namespace disttrain::daemon {

std::string host_name();

// Bytes that a program may use where nobody says how many: three quarters of what the host has. The rest is for the
// system and for sockets.
std::uint64_t memory_given();

// "127.0.0.1:7110" -> "127.0.0.1", "[::1]:7110" -> "::1".
std::string host_part(const std::string& address);

// True where the host part is, or resolves to, an address of one of this host's interfaces. May ask the resolver, and
// wait for it: for start-up only. The name can't be resolved: kUnavailable where it may be later (no name server
// answers), else kConfig.
Result<bool> is_own_address(const std::string& address);

// The place of this process in the cluster. `index` as given by --index: must be in the file (else kConfig). Without
// it: the only task of the role whose address is this host's; none or several: kConfig, and the message says what to
// do; none, but names that may be resolved later: kUnavailable. The chief is always chief/0.
Result<TaskId> find_own_task(const ClusterConfig& cluster, Role role, std::optional<std::uint32_t> index);

// A listening socket that systemd or `disttrain up` passed to this process (LISTEN_FDS, LISTEN_PID): "fd:3", the
// address to give to Transport::listen. Clears the variables, so that children don't take it for theirs.
std::optional<std::string> inherited_listener();

}  // namespace disttrain::daemon
