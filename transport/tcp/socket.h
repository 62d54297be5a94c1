// Functions for sockets and their options. Their errors name the operation that failed and the system's reason.
#pragma once

#include <sys/socket.h>

#include <cstddef>
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

// A copy of a socket's address, such as the resolver's. REQUIRES: it isn't longer than sockaddr_storage.
Endpoint endpoint_of(const sockaddr* address, std::size_t length);

// "127.0.0.1:7100", "[::1]:7100".
std::string to_string(const Endpoint& endpoint);
// The same without the port: "127.0.0.1", "[::1]".
std::string host_of(const Endpoint& endpoint);
std::string host_of(const std::string& address);  // of such a text

Endpoint local_endpoint(int fd);
Endpoint remote_endpoint(int fd);

// Returns true if both ends of a connection are on this host: the remote address is a loopback address, or both ends
// have the same address.
bool same_host(const Endpoint& local, const Endpoint& remote);

// Returns true if the address is one of this host, whatever its port.
bool is_of_this_host(Endpoint endpoint);

struct HostAndPort {
  std::string host;
  std::string port;
};

// "host:port" or "[ipv6]:port". kConfig with a reason otherwise.
Result<HostAndPort> parse_address(const std::string& address);

// All endpoints of a host. Asks the system's resolver, which may block for seconds. On success the list isn't empty.
Result<std::vector<Endpoint>> resolve(const HostAndPort& address);
// The endpoint of a numeric address, without a resolver. The list is empty if the host is a name.
std::vector<Endpoint> numeric_endpoint(const HostAndPort& address);

// Opens a non-blocking socket with our options. The socket is closed on exec.
Result<Descriptor> open_socket(int family, const TcpOptions& options);
// Sets TCP_NODELAY, keepalive, the user timeout and the congestion control of a socket.
void set_connection_options(int fd, const TcpOptions& options);

// A text for an errno. Some texts are our own, because callers depend on them ("connection refused").
std::string system_words(int error);

}  // namespace disttrain::transport
