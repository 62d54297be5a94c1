#include "transport/tcp/socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

namespace disttrain::transport {
namespace {

void set_option(int fd, int level, int name, int value) {
  // Ignores an error. On a kernel that lacks the option, a dead peer is only noticed later.
  static_cast<void>(setsockopt(fd, level, name, &value, sizeof value));
}

bool set_congestion_control(int fd, const std::string& name) {
  return setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name.data(), static_cast<socklen_t>(name.size())) == 0;
}

std::string available_congestion_controls() {
  std::ifstream file("/proc/sys/net/ipv4/tcp_available_congestion_control");
  std::string names;
  std::getline(file, names);
  return names;
}

std::vector<Endpoint> look_up(const HostAndPort& address, int flags, int& error) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  error = getaddrinfo(address.host.c_str(), address.port.c_str(), &hints, &found);
  std::vector<Endpoint> endpoints;
  if (error != 0) return endpoints;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    if (one->ai_family != AF_INET && one->ai_family != AF_INET6) continue;
    Endpoint endpoint;
    std::memcpy(&endpoint.storage, one->ai_addr, one->ai_addrlen);
    endpoint.length = one->ai_addrlen;
    endpoints.push_back(endpoint);
  }
  freeaddrinfo(found);
  return endpoints;
}

bool same_address(const Endpoint& a, const Endpoint& b) {
  if (a.storage.ss_family != b.storage.ss_family) return false;
  if (a.storage.ss_family == AF_INET)
    return reinterpret_cast<const sockaddr_in*>(&a.storage)->sin_addr.s_addr ==
           reinterpret_cast<const sockaddr_in*>(&b.storage)->sin_addr.s_addr;
  return std::memcmp(&reinterpret_cast<const sockaddr_in6*>(&a.storage)->sin6_addr,
                     &reinterpret_cast<const sockaddr_in6*>(&b.storage)->sin6_addr, sizeof(in6_addr)) == 0;
}

tl::unexpected<Error> bad_address(const std::string& address) {
  return fail(ErrorCode::kConfig,
              "address \"" + address + "\" can't be read; expected host:port, as in 10.0.0.7:7100 or [::1]:7100");
}

bool is_loopback(const Endpoint& endpoint) {
  if (endpoint.storage.ss_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(&endpoint.storage);
    return (ntohl(v4->sin_addr.s_addr) >> 24) == 127;
  }
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&endpoint.storage);
  return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

}  // namespace

Endpoint endpoint_of(const sockaddr* address, std::size_t length) {
  Endpoint endpoint;
  std::memcpy(&endpoint.storage, address, length);
  endpoint.length = static_cast<socklen_t>(length);
  return endpoint;
}

std::string to_string(const Endpoint& endpoint) {
  char host[NI_MAXHOST], port[NI_MAXSERV];
  if (getnameinfo(endpoint.get(), endpoint.length, host, sizeof host, port, sizeof port,
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return "unknown";
  return endpoint.storage.ss_family == AF_INET6 ? "[" + std::string(host) + "]:" + port
                                                : std::string(host) + ":" + port;
}

std::string host_of(const Endpoint& endpoint) {
  return host_of(to_string(endpoint));
}

std::string host_of(const std::string& address) {
  return address.substr(0, address.rfind(':'));
}

Endpoint local_endpoint(int fd) {
  Endpoint endpoint;
  endpoint.length = sizeof endpoint.storage;
  if (getsockname(fd, endpoint.get(), &endpoint.length) != 0) endpoint.length = 0;
  return endpoint;
}

Endpoint remote_endpoint(int fd) {
  Endpoint endpoint;
  endpoint.length = sizeof endpoint.storage;
  if (getpeername(fd, endpoint.get(), &endpoint.length) != 0) endpoint.length = 0;
  return endpoint;
}

bool same_host(const Endpoint& local, const Endpoint& remote) {
  return local.length != 0 && remote.length != 0 && (is_loopback(remote) || same_address(local, remote));
}

bool is_of_this_host(Endpoint endpoint) {
  // Tries to bind a socket to it. A list of the interfaces would need a netlink socket, which the units forbid.
  if (endpoint.storage.ss_family == AF_INET)
    reinterpret_cast<sockaddr_in*>(&endpoint.storage)->sin_port = 0;
  else
    reinterpret_cast<sockaddr_in6*>(&endpoint.storage)->sin6_port = 0;
  const Descriptor socket(::socket(endpoint.storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return socket && ::bind(socket.get(), endpoint.get(), endpoint.length) == 0;
}

Result<HostAndPort> parse_address(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos) return bad_address(address);
  HostAndPort parsed{address.substr(0, colon), address.substr(colon + 1)};
  if (parsed.host.size() > 2 && parsed.host.front() == '[' && parsed.host.back() == ']')
    parsed.host = parsed.host.substr(1, parsed.host.size() - 2);
  else if (parsed.host.find_first_of(":[]") != std::string::npos)
    return bad_address(address);
  const bool digits = !parsed.port.empty() && parsed.port.size() <= 5 &&
                      std::all_of(parsed.port.begin(), parsed.port.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (parsed.host.empty() || !digits || std::stoul(parsed.port) > 65535) return bad_address(address);
  return parsed;
}

Result<std::vector<Endpoint>> resolve(const HostAndPort& address) {
  int error = 0;
  std::vector<Endpoint> endpoints = look_up(address, 0, error);
  if (endpoints.empty())
    return fail(error == EAI_AGAIN ? ErrorCode::kUnavailable : ErrorCode::kConfig,
                "host name \"" + address.host +
                    "\" can't be resolved: " + (error != 0 ? gai_strerror(error) : "it has no address"));
  return endpoints;
}

std::vector<Endpoint> numeric_endpoint(const HostAndPort& address) {
  int error = 0;
  return look_up(address, AI_NUMERICHOST, error);
}

Result<Descriptor> open_socket(int family, const TcpOptions& options) {
  Descriptor fd(::socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd) return fail(ErrorCode::kUnavailable, "can't open a socket: " + system_words(errno));
  set_connection_options(fd.get(), options);
  return fd;
}

void set_connection_options(int fd, const TcpOptions& options) {
  set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 10);  // first probe after 10 s without traffic, then one every 5 s
  set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 5);
  const auto timeout = std::chrono::duration_cast<std::chrono::milliseconds>(options.unacknowledged_timeout);
  set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, static_cast<int>(timeout.count()));
  if (!options.congestion_control.empty())  // validate() has checked it
    set_congestion_control(fd, options.congestion_control);
}

Status validate(const TcpOptions& options) {
  if (options.congestion_control.empty()) return {};
  const Descriptor fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return fail(ErrorCode::kUnavailable, "can't open a socket: " + system_words(errno));
  if (set_congestion_control(fd.get(), options.congestion_control)) return {};
  const int error = errno;
  return fail(error == EPERM ? ErrorCode::kNoPermission : ErrorCode::kConfig,
              "transport.congestion_control = \"" + options.congestion_control +
                  "\" can't be set: " + system_words(error) + "; this kernel has: " + available_congestion_controls());
}

std::string system_words(int error) {
  switch (error) {
    case ECONNREFUSED:
      return "connection refused";
    case ECONNRESET:
    case EPIPE:
      return "connection reset by the peer";
    case ETIMEDOUT:
      return "the peer's host doesn't answer";
    case EMFILE:
      return "out of file descriptors; raise `ulimit -n`, or LimitNOFILE of the unit";
    default:
      return std::strerror(error);
  }
}

}  // namespace disttrain::transport
