#include "transport/rdma/device.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "transport/clock.h"

namespace disttrain::transport {
namespace {

std::string memlock_words() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return "an unknown amount of";
  return limit.rlim_cur == RLIM_INFINITY ? "any amount of" : std::to_string(limit.rlim_cur / 1024) + " KiB of";
}

}  // namespace

bool has_rdma_devices() {
  std::error_code ignored;
  const std::filesystem::directory_iterator devices("/sys/class/infiniband", ignored);
  return !ignored && devices != std::filesystem::directory_iterator() &&
         ::access("/dev/infiniband/rdma_cm", R_OK | W_OK) == 0;
}

tl::unexpected<Error> no_rdma_devices() {
  return fail(ErrorCode::kUnavailable,
              "this host has no RDMA device that this process may use; `disttrain doctor` checks them");
}

tl::unexpected<Error> rdma_error(const std::string& what, int error) {
  std::string text = "can't " + what + ": " + system_words(error);
  if (error == ENOMEM)
    text += "; this process may lock " + memlock_words() +
            " memory, and RDMA needs all that it sends: run `ulimit -l unlimited`, or install the drop-ins for RDMA "
            "(LimitMEMLOCK) from /usr/share/disttrain/systemd";
  const bool is_forbidden = error == EPERM || error == EACCES;
  return fail(is_forbidden ? ErrorCode::kNoPermission : ErrorCode::kUnavailable, std::move(text));
}

std::string why_not_reached(int error) {
  const int positive = error < 0 ? -error : error;
  if (positive == ENODEV || positive == EADDRNOTAVAIL)
    return "no RDMA device of this host reaches the address; `rdma link` lists the devices";
  if (positive == ETIMEDOUT || positive == EHOSTUNREACH) return "the host there doesn't answer";
  return system_words(positive);
}

Endpoint peer_of(rdma_cm_id* id) {
  Endpoint peer;
  const sockaddr* const address = ::rdma_get_peer_addr(id);
  peer.length = address->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  std::memcpy(&peer.storage, address, peer.length);
  return peer;
}

void refuse(rdma_cm_id* id, const std::string& why) {
  constexpr std::size_t kMost = 148;  // rdma_reject(3)
  ::rdma_reject(id, why.data(), static_cast<std::uint8_t>(std::min(why.size(), kMost)));
}

Result<EventChannel> make_event_channel() {
  EventChannel channel(::rdma_create_event_channel());
  if (!channel) return rdma_error("open /dev/infiniband/rdma_cm", errno);
  ::fcntl(channel->fd, F_SETFL, ::fcntl(channel->fd, F_GETFL) | O_NONBLOCK);
  ::fcntl(channel->fd, F_SETFD, FD_CLOEXEC);
  return channel;
}

Result<std::shared_ptr<const RdmaRegion>> register_memory(std::shared_ptr<const RdmaDomain> domain, MutableBytes bytes,
                                                          RdmaAccess access) {
  // A child would share the pages at first, and then this process might write to others than the device reads. Kernels
  // since 5.12 copy the pages for the child instead, which takes long. Bytes of an arena begin on a page boundary.
  ::madvise(bytes.data(), bytes.size(), MADV_DONTFORK);
  std::unique_ptr<ibv_mr, DestroyRdma> region(
      ::ibv_reg_mr(domain->get(), bytes.data(), bytes.size(), static_cast<int>(access)));
  if (!region) return rdma_error("register " + std::to_string(bytes.size()) + " bytes with the RDMA device", errno);
  return std::make_shared<const RdmaRegion>(std::move(domain), std::move(region));
}

Result<std::unique_ptr<RdmaBuffer>> RdmaBuffer::make(std::shared_ptr<const RdmaDomain> domain, std::size_t bytes) {
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return rdma_error("get " + std::to_string(bytes) + " bytes of memory", errno);
  std::unique_ptr<RdmaBuffer> buffer(new RdmaBuffer(MutableBytes(static_cast<std::byte*>(memory), bytes)));
  auto region = register_memory(std::move(domain), buffer->bytes_, RdmaAccess::kLocal);
  if (!region) return tl::unexpected(region.error());
  buffer->region_ = std::move(*region);
  return buffer;
}

RdmaBuffer::~RdmaBuffer() {
  region_.reset();
  ::munmap(bytes_.data(), bytes_.size());
}

Result<std::shared_ptr<const RdmaDomain>> RdmaDevices::domain(ibv_context* device) {
  const std::scoped_lock lock(mutex_);
  if (const auto found = domains_.find(device); found != domains_.end())
    if (auto domain = found->second.lock()) return domain;
  RdmaDomain made(::ibv_alloc_pd(device));
  if (!made) return rdma_error("make a protection domain of the RDMA device", errno);
  auto domain = std::make_shared<const RdmaDomain>(std::move(made));
  std::erase_if(domains_, [](const auto& item) { return item.second.expired(); });
  domains_[device] = domain;
  return domain;
}

Result<std::shared_ptr<const RdmaRegion>> RdmaDevices::region(const std::shared_ptr<const RdmaDomain>& domain,
                                                              const Arena& arena, const Arena::Place& at, Bytes bytes,
                                                              RdmaAccess access) {
  const MutableBytes block(const_cast<std::byte*>(bytes.data()) - at.offset, at.block_bytes);
  const std::shared_ptr<SharedRegion> shared = shared_region({domain.get(), &arena, at.block, access});
  // To register a large block takes long. Meanwhile other threads may use other blocks.
  const std::scoped_lock lock(shared->mutex);
  if (auto region = shared->region.lock(); region && region->bytes().data() == block.data()) return region;
  auto region = register_memory(domain, block, access);
  if (region)
    shared->region = *region;
  else
    avoidance_.avoid("", region.error().message, monotonic_now());
  return region;
}

Status RdmaDevices::make_once(std::unique_ptr<RdmaBuffer>& buffer, const std::shared_ptr<const RdmaDomain>& domain,
                              std::size_t bytes) {
  if (buffer) return {};
  auto made = RdmaBuffer::make(domain, bytes);
  if (!made) {
    avoidance_.avoid("", made.error().message, monotonic_now());
    return tl::unexpected(made.error());
  }
  buffer = std::move(*made);
  return {};
}

std::optional<std::string> RdmaDevices::why_not(const std::string& host) const {
  return is_required_ ? std::nullopt : avoidance_.why_not(host, monotonic_now());
}

std::shared_ptr<RdmaDevices::SharedRegion> RdmaDevices::shared_region(const RegionKey& key) {
  const std::scoped_lock lock(mutex_);
  std::shared_ptr<SharedRegion>& shared = regions_[key];
  if (shared) return shared;
  shared = std::make_shared<SharedRegion>();
  const std::shared_ptr<SharedRegion> made = shared;
  // Only the map has these, so nobody locks them.
  std::erase_if(regions_,
                [](const auto& item) { return item.second.use_count() == 1 && item.second->region.expired(); });
  return made;
}

}  // namespace disttrain::transport
