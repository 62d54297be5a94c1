// Dialling by rdma_cm, and listening.
#pragma once

#include <asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "transport/connection.h"
#include "transport/rdma/device.h"

namespace disttrain::transport {

// Whether to dial an address of this host, or to refuse that: there may be a faster way.
enum class OwnHost { kDial, kRefuse };

// Nobody answers the request for a connection. The host there can't be reached at all, or only not by RDMA.
inline constexpr ErrorCode kSilentHost = ErrorCode::kTemporary;

// As Transport::dial(). But if the process need not use RDMA, the error may be kSilentHost.
void dial_rdma(asio::io_context& loop, const std::string& address, const OutgoingFrame& hello, Duration deadline,
               OwnHost own_host, std::shared_ptr<RdmaDevices> devices, std::shared_ptr<Traffic> traffic,
               std::function<void(Result<std::unique_ptr<Connection>>)> done);

// Listens at `address`, which has a port. Null channels of peers are refused with a reason that their logs show.
// kConfig: no device has the address, or the process needs RDMA and may not even lock the memory of one connection.
Result<std::unique_ptr<Listener>> listen_rdma(asio::io_context& loop, const std::string& address,
                                              const ListenerLimits& limits, std::shared_ptr<RdmaDevices> devices,
                                              std::shared_ptr<Traffic> traffic,
                                              std::function<void(std::unique_ptr<Arrival>)> on_arrival);

}  // namespace disttrain::transport
