#include "common/daemon/host.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>

namespace disttrain::daemon {

namespace {

// Finds out whether an address belongs to this host by binding a socket to it. Listing the network interfaces would
// need netlink, which the daemons' systemd units forbid.
bool can_bind(const addrinfo& address) {
  const int fd = socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return false;
  const bool is_bound = bind(fd, address.ai_addr, address.ai_addrlen) == 0;
  close(fd);
  return is_bound;
}

std::uint32_t tasks_of(const ClusterConfig& cluster, Role role) {
  if (role == Role::kChief) return 1;
  if (role == Role::kEvaluator) return static_cast<std::uint32_t>(cluster.evaluators.size());
  return static_cast<std::uint32_t>(role == Role::kPs ? cluster.ps.size() : cluster.workers.size());
}

const char* daemon_of(Role role) {
  if (role == Role::kPs) return "psd";
  return role == Role::kChief ? "chiefd" : "workerd";
}

}  // namespace

std::string host_name() {
  char name[256] = "";
  if (gethostname(name, sizeof(name) - 1) != 0) return "unknown";
  return name;
}

std::uint64_t memory_given() {
  return static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) /
         4 * 3;
}

std::string host_part(const std::string& address) {
  std::string host = address.substr(0, address.rfind(':'));
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  return host;
}

Result<bool> is_own_address(const std::string& address) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string host = host_part(address);
  if (const int error = getaddrinfo(host.c_str(), nullptr, &hints, &found); error != 0)
    return fail(error == EAI_AGAIN ? ErrorCode::kUnavailable : ErrorCode::kConfig,
                "host name \"" + host + "\" can't be resolved: " + gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> names(found, freeaddrinfo);
  for (const addrinfo* name = names.get(); name != nullptr; name = name->ai_next)
    if (can_bind(*name)) return true;
  return false;
}

Result<TaskId> find_own_task(const ClusterConfig& cluster, Role role, std::optional<std::uint32_t> index) {
  const std::uint32_t count = tasks_of(cluster, role);
  const std::string section = "[[" + to_string(role) + "]]";
  if (index) {
    if (*index < count) return TaskId{role, *index};
    return fail(ErrorCode::kConfig, "--index " + std::to_string(*index) + ": the cluster file has " +
                                        std::to_string(count) + " " + section + " sections; expected 0 to " +
                                        std::to_string(count - 1));
  }
  if (role == Role::kChief) return TaskId{role, 0};
  std::vector<std::uint32_t> own;
  // Why a name can't be resolved. If several names can't be, an error that a retry may fix takes precedence.
  std::optional<Error> unresolved;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Result<bool> is_own = is_own_address(address_of(cluster, TaskId{role, i}));
    if (is_own.has_value() && *is_own) own.push_back(i);
    if (!is_own.has_value() && (!unresolved || unresolved->code == ErrorCode::kConfig)) unresolved = is_own.error();
  }
  if (own.size() == 1) return TaskId{role, own.front()};
  if (own.empty())
    return fail(unresolved ? unresolved->code : ErrorCode::kConfig,
                "none of the " + std::to_string(count) + " " + section +
                    " sections of the cluster file has an address of this host (" + host_name() + ")" +
                    (unresolved ? "; " + unresolved->message : "") +
                    "; correct the addresses (`hostname -I` prints those of this host), or say which task this is with "
                    "--index N");
  std::string indices;
  for (std::uint32_t i : own) indices += (indices.empty() ? "" : ", ") + std::to_string(i);
  return fail(ErrorCode::kConfig, "several " + section +
                                      " sections of the cluster file have an address of this host (" + indices +
                                      "); say which task this is with --index N, or start " + daemon_of(role) +
                                      "@N with systemd, one for each");
}

std::optional<std::string> inherited_listener() {
  const char* count = std::getenv("LISTEN_FDS");
  const char* pid = std::getenv("LISTEN_PID");
  const bool is_ours =
      count != nullptr && pid != nullptr && std::strcmp(count, "1") == 0 && std::to_string(getpid()) == pid;
  unsetenv("LISTEN_FDS");
  unsetenv("LISTEN_PID");
  if (!is_ours) return std::nullopt;
  return "fd:3";  // the first, by convention
}

}  // namespace disttrain::daemon
