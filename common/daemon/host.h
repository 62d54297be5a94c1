// Which addresses of a cluster belong to this host.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/config/cluster_config.h"
#include "common/result.h"

namespace disttrain::daemon {

std::string host_name();

// The bytes that a program may use if no limit is configured: three quarters of the host's memory. The rest is for the
// system and the sockets' buffers.
std::uint64_t memory_given();

// "127.0.0.1:7110" -> "127.0.0.1", "[::1]:7110" -> "::1".
std::string host_part(const std::string& address);

// Returns true if the host part of `address` is an address of this host, or a name that resolves to one. The call may
// wait for the resolver, so make it only at start-up. Fails if a name can't be resolved: with kUnavailable if a retry
// may help (no name server answered), else with kConfig.
Result<bool> is_own_address(const std::string& address);

// Finds this process's place in the cluster. If --index is given, that is the place; it must be in the file (else
// kConfig). Otherwise the place is the only task of this role with an address of this host. Fails with kConfig if there
// are several such tasks, or none. If there is none, but a task's host name can't be resolved and a retry may help,
// fails with kUnavailable instead. The chief is always chief/0.
Result<TaskId> find_own_task(const ClusterConfig& cluster, Role role, std::optional<std::uint32_t> index);

// If systemd or `disttrain up` passed a listening socket to this process (LISTEN_FDS, LISTEN_PID), returns "fd:3",
// which is an address for Transport::listen. Removes the two variables from the environment, so that child processes
// don't use them.
std::optional<std::string> inherited_listener();

}  // namespace disttrain::daemon
