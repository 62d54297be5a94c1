#include "transport/rdma/shared_memory.h"

#include <span>

namespace disttrain::transport {

Result<RdmaSharedMemory::Block*> RdmaSharedMemory::block_at(RdmaLink& link, const Arena::Place& at, Bytes bytes,
                                                            RdmaAccess access) {
  Block& block = blocks_[{at.block, access}];
  if (!block.region) {
    // Pages of blocks that have gone would stay locked.
    std::erase_if(blocks_, [this](const auto& known) { return !arena_->has(known.first.first); });
    auto region = link.devices()->region(link.domain(), *arena_, at, bytes, access);
    if (!region) return tl::unexpected(region.error());
    block.region = std::move(*region);
  }
  return &block;
}

Result<const RdmaRegion*> RdmaSharedMemory::own(RdmaLink& link, Bytes bytes) {
  const std::optional<Arena::Place> at = arena_ != nullptr ? arena_->find(bytes) : std::nullopt;
  if (!at) return static_cast<const RdmaRegion*>(nullptr);
  const Result<Block*> block = block_at(link, *at, bytes, RdmaAccess::kLocal);
  if (!block) return tl::unexpected(block.error());
  return (*block)->region.get();
}

Result<std::optional<Arena::Place>> RdmaSharedMemory::known(RdmaLink& link, Bytes bytes, RdmaBlock::Use use) {
  const std::optional<Arena::Place> at = arena_ != nullptr ? arena_->find(bytes) : std::nullopt;
  if (!at || at->offset % sizeof(float) != 0) return std::optional<Arena::Place>();
  const RdmaAccess access = use == RdmaBlock::Use::kRead ? RdmaAccess::kPeerReads : RdmaAccess::kPeerWrites;
  const Result<Block*> block = block_at(link, *at, bytes, access);
  if (!block) return tl::unexpected(block.error());
  if ((*block)->is_announced) return at;
  if (announced_ == kMaxRdmaBlocks || !link.may_send()) return std::optional<Arena::Place>();
  const RdmaRegion& region = *(*block)->region;
  const auto description = encode(RdmaBlock{.block = at->block,
                                            .use = use,
                                            .key = region.remote_key(),
                                            .address = reinterpret_cast<std::uintptr_t>(region.bytes().data()),
                                            .bytes = region.bytes().size()});
  const Bytes part(description);
  ++announced_;
  (*block)->is_announced = true;
  if (Status sent = link.send(RdmaMessage::Kind::kBlock, {&part, 1}); !sent) return tl::unexpected(sent.error());
  return at;
}

}  // namespace disttrain::transport
