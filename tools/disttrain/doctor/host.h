// Collects facts about this host for `doctor`: limits, interfaces, devices, the clock, folders. These functions only
// read. A fact that can't be read counts as unknown. No function waits longer than kHostPatience.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/time.h"
#include "tools/disttrain/doctor/checks.h"

namespace disttrain::cli {

inline constexpr Duration kHostPatience = std::chrono::seconds(5);

Memlock find_memlock(RdmaWish rdma);

// Returns the user that a daemon ("chiefd") runs as, according to its systemd unit. "": the unit isn't installed.
std::string user_of_unit(const std::string& daemon);

// A network interface and one of its addresses.
struct Interface {
  Link link;
  std::string address;  // "10.0.0.1"
};
std::vector<Interface> find_interfaces();

// The host part of a task's address, looked up.
struct HostName {
  bool is_own = false;    // true: the address belongs to this host
  std::string address;    // the first address that the name resolves to; "" = none
  std::string problem{};  // why the name can't be resolved; "" = it can be
};
HostName find_host(const std::string& address);

std::vector<RdmaDevice> find_rdma_devices();
bool may_use_rdma_cm();
Gpus find_gpus();

// Returns none if the kernel doesn't say.
std::optional<bool> is_clock_synchronised();

// `unit` is the daemon that uses the folder, such as "chiefd".
Folder find_folder(FolderUse use, const std::string& path, const std::string& unit);

// Returns the processes that use a port of this host, such as "python3 (pid 4711)": those that listen there or, if
// nobody listens, those with a connection from this port. "": nobody uses it, or this user can't see who does.
std::string find_holder(std::uint16_t port);

}  // namespace disttrain::cli
