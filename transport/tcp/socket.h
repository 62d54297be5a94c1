// One socket and its options. Errors carry the system's words and what was being done.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/os/descriptor.h"
#include "common/result.h"
#include "transport/tcp/options.h"

namespace disttrain::transport {

// An IPv4 or IPv6 address with its port.
struct Endpoint {
  sockaddr_storage storage{};
  socklen_t length = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

// "127.0.0.1:7100", "[::1]:7100".
std::string to_string(const Endpoint& endpoint);

Endpoint local_endpoint(int fd);
Endpoint remote_endpoint(int fd);

// Whether the other end is on this host: a loopback address, or the same address at both ends.
bool same_host(const Endpoint& local, const Endpoint& remote);

struct HostAndPort {
  std::string host;
  std::string port;
};

// "host:port" or "[ipv6]:port". kConfig with a reason otherwise.
Result<HostAndPort> parse_address(const std::string& address);

// All endpoints of a host, by the system's resolver, which may block for seconds. Never empty.
Result<std::vector<Endpoint>> resolve(const HostAndPort& address);
// The same without a resolver: empty if the host is a name.
std::vector<Endpoint> numeric_endpoint(const HostAndPort& address);

// A non-blocking socket with our options, closed on exec.
Result<Descriptor> open_socket(int family, const TcpOptions& options);
// For a connection: TCP_NODELAY, keepalive, user timeout. For a listener too: congestion control.
void set_connection_options(int fd, const TcpOptions& options);

// errno as words; our own words where a caller depends on them ("connection refused").
std::string system_words(int error);

}  // namespace disttrain::transport
