// RDMA devices, and the memory that is registered with them. Registering takes time and locks the memory, so all
// connections of a process share the registrations. Any thread may use these classes.
//
// Each class but RdmaDevices owns one handle of libibverbs or librdmacm.
#pragma once

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>

#include "common/os/arena.h"
#include "common/result.h"
#include "transport/connection.h"
#include "transport/rdma/avoidance.h"
#include "transport/tcp/socket.h"

namespace disttrain::transport {

// Whether this host has an RDMA device that processes may use. Only looks at files, so it costs little.
bool has_rdma_devices();

// The error of a process that needs RDMA on a host without such a device.
tl::unexpected<Error> no_rdma_devices();

// An error of a verb or of rdma_cm: "can't WHAT: REASON". ENOMEM names the limit of locked memory.
tl::unexpected<Error> rdma_error(const std::string& what, int error);

// Why rdma_cm can't reach an address, as the end of a sentence. `error` is an errno, or an errno with the sign changed.
std::string why_not_reached(int error);

struct DestroyRdma {
  void operator()(rdma_event_channel* channel) const { ::rdma_destroy_event_channel(channel); }
  void operator()(rdma_cm_id* id) const { ::rdma_destroy_id(id); }  // without a queue pair
  void operator()(ibv_comp_channel* channel) const { ::ibv_destroy_comp_channel(channel); }
  void operator()(ibv_cq* queue) const { ::ibv_destroy_cq(queue); }
  void operator()(ibv_pd* domain) const { ::ibv_dealloc_pd(domain); }
  void operator()(ibv_mr* region) const { ::ibv_dereg_mr(region); }
};
using EventChannel = std::unique_ptr<rdma_event_channel, DestroyRdma>;
using CmId = std::unique_ptr<rdma_cm_id, DestroyRdma>;
using CompletionChannel = std::unique_ptr<ibv_comp_channel, DestroyRdma>;
using CompletionQueue = std::unique_ptr<ibv_cq, DestroyRdma>;

// The other end's address of a connection that was asked for.
Endpoint peer_of(rdma_cm_id* id);

// Refuses the connection that the peer has asked for. `why` is for its log, which gets the beginning of it. Without
// such a request nothing happens.
void refuse(rdma_cm_id* id, const std::string& why);

// An event channel whose descriptor doesn't block.
Result<EventChannel> make_event_channel();

// The protection domain of a device: its queue pairs may use its registrations.
using RdmaDomain = std::unique_ptr<ibv_pd, DestroyRdma>;

// Registered memory. It must be destroyed before its memory.
class RdmaRegion {
 public:
  RdmaRegion(std::shared_ptr<const RdmaDomain> domain, std::unique_ptr<ibv_mr, DestroyRdma> region)
      : domain_(std::move(domain)), region_(std::move(region)) {}
  std::uint32_t local_key() const { return region_->lkey; }
  std::uint32_t remote_key() const { return region_->rkey; }
  Bytes bytes() const { return {static_cast<const std::byte*>(region_->addr), region_->length}; }

 private:
  const std::shared_ptr<const RdmaDomain> domain_;
  const std::unique_ptr<ibv_mr, DestroyRdma> region_;
};

// The access that a registration allows. This process may always send from registered memory.
enum class RdmaAccess : int {
  kLocal = IBV_ACCESS_LOCAL_WRITE,
  kPeerReads = IBV_ACCESS_REMOTE_READ,
  kPeerWrites = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
};

// Memory of a connection's own, registered for this process.
class RdmaBuffer {
 public:
  static Result<std::unique_ptr<RdmaBuffer>> make(std::shared_ptr<const RdmaDomain> domain, std::size_t bytes);
  ~RdmaBuffer();
  RdmaBuffer(const RdmaBuffer&) = delete;

  MutableBytes bytes() const { return bytes_; }
  std::uint32_t key() const { return region_->local_key(); }

 private:
  explicit RdmaBuffer(MutableBytes bytes) : bytes_(bytes) {}
  const MutableBytes bytes_;
  std::shared_ptr<const RdmaRegion> region_;
};

Result<std::shared_ptr<const RdmaRegion>> register_memory(std::shared_ptr<const RdmaDomain> domain, MutableBytes bytes,
                                                          RdmaAccess access);

class RdmaDevices {
 public:
  // `is_required`: the process may use nothing but RDMA. `warn` logs why connections don't use RDMA; it may be empty.
  explicit RdmaDevices(bool is_required, std::function<void(const std::string&)> warn = {})
      : is_required_(is_required), avoidance_(std::move(warn)) {}

  // The domain of the device. It lives as long as somebody uses it.
  Result<std::shared_ptr<const RdmaDomain>> domain(ibv_context* device);

  // The registration of the whole block in which `at` is the place of `bytes`. It lives as long as somebody uses it.
  Result<std::shared_ptr<const RdmaRegion>> region(const std::shared_ptr<const RdmaDomain>& domain, const Arena& arena,
                                                   const Arena::Place& at, Bytes bytes, RdmaAccess access);

  // Makes the buffer of a connection if it is null. If this fails, new connections use the base transport for a while.
  Status make_once(std::unique_ptr<RdmaBuffer>& buffer, const std::shared_ptr<const RdmaDomain>& domain,
                   std::size_t bytes);

  bool is_required() const { return is_required_; }
  RdmaAvoidance& avoidance() { return avoidance_; }
  // Why a new connection with this host must use the base transport. Empty: it may use RDMA.
  std::optional<std::string> why_not(const std::string& host) const;

 private:
  using RegionKey = std::tuple<const RdmaDomain*, const Arena*, std::uint64_t, RdmaAccess>;
  struct SharedRegion {
    std::mutex mutex;  // guards the member below
    std::weak_ptr<const RdmaRegion> region;
  };
  std::shared_ptr<SharedRegion> shared_region(const RegionKey& key);

  const bool is_required_;
  RdmaAvoidance avoidance_;
  std::mutex mutex_;  // guards the members below; it may not be locked while a SharedRegion is
  std::map<ibv_context*, std::weak_ptr<const RdmaDomain>> domains_;
  std::map<RegionKey, std::shared_ptr<SharedRegion>> regions_;
};

}  // namespace disttrain::transport
