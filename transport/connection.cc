#include "transport/connection.h"

#include <cstring>

namespace disttrain::transport {

Result<Bytes> ConnectionHandler::payload_lent(const wire::FrameHeader& header, Bytes control, const LentPayload& lent) {
  const Result<MutableBytes> landing = payload_landing(header, control);
  if (!landing) return tl::unexpected(landing.error());
  std::memcpy(landing->data(), lent.bytes.data(), lent.bytes.size());
  return *landing;
}

Status try_to_listen(asio::io_context& loop, Transport& transport, const std::string& address) {
  if (address.starts_with("fd:")) return {};
  const auto listener = transport.listen(loop, address, ListenerLimits{}, [](std::unique_ptr<Arrival>) {});
  return listener ? Status() : tl::unexpected(listener.error());
}

bool proves_nobody_listens(const Error& error) {
  return error.code == ErrorCode::kUnavailable && error.message.find("connection refused") != std::string::npos;
}

}  // namespace disttrain::transport
