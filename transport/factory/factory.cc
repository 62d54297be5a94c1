#include "transport/factory/factory.h"

#include "transport/rdma/device.h"
#include "transport/rdma/transport.h"
#include "transport/shm/transport.h"
#include "transport/tcp/transport.h"

namespace disttrain::transport {

Result<std::unique_ptr<Transport>> make_transport(const TransportConfig& config, const std::string& cluster,
                                                  std::function<void(const std::string&)> warn) {
  TcpOptions options;
  options.congestion_control = config.congestion_control;
  if (Status valid = validate(options); !valid) return tl::unexpected(valid.error());
  if (config.kind == "tcp") return std::make_unique<TcpTransport>(options);
  // Without a device this process doesn't ask for RDMA again, so a device that comes later needs a restart.
  if (config.kind == "rdma" || (config.kind == "auto" && has_rdma_devices()))
    return std::make_unique<RdmaTransport>(
        RdmaOptions{.cluster = cluster, .is_required = config.kind == "rdma", .tcp = options, .warn = std::move(warn)});
  if (config.kind == "auto" || config.kind == "shm")
    return std::make_unique<ShmTransport>(
        ShmOptions{.cluster = cluster, .is_required = config.kind == "shm", .tcp = options, .warn = std::move(warn)});
  return fail(ErrorCode::kConfig, "transport.kind = \"" + config.kind +
                                      "\" is unknown to this version; expected \"auto\", \"tcp\", \"shm\" or \"rdma\"");
}

Status check_devices(const TransportConfig& config) {
  if (config.kind != "rdma" || has_rdma_devices()) return {};
  return fail(ErrorCode::kUnavailable, "transport.kind = \"rdma\": " + no_rdma_devices().value().message);
}

std::unique_ptr<Transport> make_client_transport() {
  return std::make_unique<TcpTransport>();
}

}  // namespace disttrain::transport
