#include "transport/connection.h"

namespace disttrain::transport {

Status try_to_listen(asio::io_context& loop, Transport& transport, const std::string& address) {
  if (address.starts_with("fd:")) return {};
  const auto listener = transport.listen(loop, address, ListenerLimits{}, [](std::unique_ptr<Arrival>) {});
  return listener ? Status() : tl::unexpected(listener.error());
}

bool proves_nobody_listens(const Error& error) {
  return error.code == ErrorCode::kUnavailable && error.message.find("connection refused") != std::string::npos;
}

}  // namespace disttrain::transport
