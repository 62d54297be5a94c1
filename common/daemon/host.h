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

// Bytes that a program may use if no limit is configured: three quarters of the host's memory. The rest is for the
// system and sockets.
std::uint64_t memory_given();

// "127.0.0.1:7110" -> "127.0.0.1", "[::1]:7110" -> "::1".
std::string host_part(const std::string& address);

// Whether the host part is, or resolves to, an address of this host. May wait for the resolver, so only for start-up.
// If the name can't be resolved: kUnavailable if it may be later (no name server answers), else kConfig.
Result<bool> is_own_address(const std::string& address);

// This process's place in the cluster. `index`: from --index; must be in the file (else kConfig). Without it: the only
// task of the role whose address is this host's. If none or several are: kConfig, with what to do. If none is, but some
// names may be resolved later: kUnavailable. The chief is always chief/0.
Result<TaskId> find_own_task(const ClusterConfig& cluster, Role role, std::optional<std::uint32_t> index);

// The listening socket that systemd or `disttrain up` passed to this process (LISTEN_FDS, LISTEN_PID): "fd:3", an
// address for Transport::listen. Clears the variables, so that child processes don't use them.
std::optional<std::string> inherited_listener();

}  // namespace disttrain::daemon
