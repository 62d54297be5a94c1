#include "transport/factory/factory.h"

#include "transport/tcp/transport.h"

namespace disttrain::transport {

Result<std::unique_ptr<Transport>> make_transport(const TransportConfig& config) {
  if (config.kind != "auto" && config.kind != "tcp")
    return fail(ErrorCode::kConfig,
                "transport.kind = \"" + config.kind + "\" is unknown to this version; expected \"auto\" or \"tcp\"");
  TcpOptions options;
  options.congestion_control = config.congestion_control;
  if (Status valid = validate(options); !valid) return tl::unexpected(valid.error());
  return std::make_unique<TcpTransport>(options);
}

std::unique_ptr<Transport> make_client_transport() {
  return std::make_unique<TcpTransport>();
}

}  // namespace disttrain::transport
