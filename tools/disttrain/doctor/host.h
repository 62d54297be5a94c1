// What `doctor` finds on this host: limits, interfaces, devices, the clock, folders. Only reads; what can't be read
// counts as unknown. Nothing here waits longer than kHostPatience.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/time.h"
#include "tools/disttrain/doctor/checks.h"

namespace disttrain::cli {

inline constexpr Duration kHostPatience = std::chrono::seconds(5);

Memlock find_memlock(bool wants_rdma);

// The user that an installed unit ("chiefd") runs as; "": the unit isn't installed.
std::string user_of_unit(const std::string& daemon);

// An interface with one of its addresses.
struct Interface {
  Link link;
  std::string address;  // "10.0.0.1"
};
std::vector<Interface> find_interfaces();

// What is known of the host part of an address.
struct HostName {
  bool is_own = false;
  std::string address;    // the first that it resolves to; "" = none
  std::string problem{};  // why it can't be resolved; "" = it can
};
HostName find_host(const std::string& address);

std::vector<RdmaDevice> find_rdma_devices();
Gpus find_gpus();

// None: the kernel doesn't say.
std::optional<bool> is_clock_synchronised();

// `unit`: the daemon that uses the folder, as in user_of_unit().
Folder find_folder(FolderUse use, const std::string& path, const std::string& unit);

// The processes that listen at a port of this host, else those connected from it: "python3 (pid 4711)". "": nobody, or
// this user can't tell.
std::string find_holder(std::uint16_t port);

}  // namespace disttrain::cli
