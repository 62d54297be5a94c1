// What `doctor` finds on this host: limits, interfaces, devices, the clock, folders. Reads only; what can't be read is
// what isn't known. Nothing here waits longer than kHostPatience.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/time.h"
#include "tools/disttrain/doctor/checks.h"

namespace disttrain::cli {

inline constexpr Duration kHostPatience = std::chrono::seconds(5);

Memlock find_memlock(bool wants_rdma);

// The user in whose name an installed unit ("chiefd") runs; "": none is installed.
std::string user_of_unit(const std::string& daemon);

// An interface with one of its addresses.
struct Interface {
  Link link;
  std::string address;  // "10.0.0.1"
};
std::vector<Interface> find_interfaces();

// Of the host part of an address: whether it is this host's, and what it resolves to.
struct HostName {
  bool is_own = false;
  std::string address;    // of several the first, "" = none
  std::string problem{};  // it can't be resolved: why
};
HostName find_host(const std::string& address);

std::vector<RdmaDevice> find_rdma_devices();
Gpus find_gpus();

// None: it doesn't say.
std::optional<bool> is_clock_synchronised();

// `unit`: the daemon that uses it, as in user_of_unit.
Folder find_folder(FolderUse use, const std::string& path, const std::string& unit);

// Processes that listen at a port of this host, or are connected from it: "python3 (pid 4711)"; "": nobody, or it can't
// be told.
std::string find_holder(std::uint16_t port);

}  // namespace disttrain::cli
