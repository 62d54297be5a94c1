#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>

#include "transport/stream/accept.h"
#include "transport/tcp/channel.h"
#include "transport/tcp/socket.h"
#include "transport/tcp/transport.h"

namespace disttrain::transport {
namespace {

tl::unexpected<Error> cannot_listen(const std::string& address, int error) {
  const std::string what = "can't listen on " + address + ": ";
  switch (error) {
    case EADDRINUSE:
      return fail(ErrorCode::kUnavailable,
                  what + "the port is in use by another process; stop it or choose another port");
    case EACCES:
    case EPERM:
      return fail(ErrorCode::kNoPermission, what + "no permission for this port; choose one from 1024 on");
    case EADDRNOTAVAIL:
      return fail(ErrorCode::kConfig, what + "it is not an address of this host");
    default:
      return fail(ErrorCode::kUnavailable, what + system_words(error));
  }
}

Result<Descriptor> bind_and_listen(const std::string& address, const TcpOptions& options) {
  const Result<HostAndPort> parsed = parse_address(address);
  if (!parsed) return tl::unexpected(parsed.error());
  const Result<std::vector<Endpoint>> endpoints = resolve(*parsed);
  if (!endpoints) return fail(endpoints.error().code, "can't listen on " + address + ": " + endpoints.error().message);
  const Endpoint& endpoint = endpoints->front();
  Result<Descriptor> fd = open_socket(endpoint.storage.ss_family, options);
  if (!fd) return fd;
  const int on = 1;
  // The option lets us use the port of a process that has just ended.
  setsockopt(fd->get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (::bind(fd->get(), endpoint.get(), endpoint.length) != 0 || ::listen(fd->get(), SOMAXCONN) != 0)
    return cannot_listen(address, errno);
  return fd;
}

// "fd:N"
Result<Descriptor> inherited(const std::string& address, const TcpOptions& options) {
  const std::string number = address.substr(3);
  const bool digits =
      !number.empty() && number.size() < 7 && number.find_first_not_of("0123456789") == std::string::npos;
  const int fd = digits ? std::stoi(number) : -1;
  int listening = 0;
  socklen_t length = sizeof listening;
  if (fd < 0 || getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &length) != 0 || listening == 0)
    return fail(ErrorCode::kConfig, "can't listen on " + address + ": it is not a listening socket of this process");
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  set_connection_options(fd, options);
  return Descriptor(fd);
}

}  // namespace

Result<std::unique_ptr<Listener>> TcpTransport::listen(asio::io_context& loop, const std::string& address,
                                                       const ListenerLimits& limits,
                                                       std::function<void(std::unique_ptr<Arrival>)> on_arrival) {
  Result<Descriptor> fd =
      address.starts_with("fd:") ? inherited(address, options_) : bind_and_listen(address, options_);
  if (!fd) return tl::unexpected(fd.error());
  std::string real = to_string(local_endpoint(fd->get()));
  const OpenAccepted open = [options = options_, traffic = traffic_](asio::io_context& on, Descriptor socket) {
    set_connection_options(socket.get(), options);
    StreamStart start = describe_socket(socket.get(), options, traffic);
    return AcceptedChannel{std::make_unique<TcpChannel>(on, std::move(socket)), std::move(start)};
  };
  return accept_streams(loop, std::move(*fd), std::move(real), limits, open, std::move(on_arrival));
}

}  // namespace disttrain::transport
