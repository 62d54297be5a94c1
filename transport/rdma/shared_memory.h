// Memory of an arena that the other end of a connection, or this process's own device, may access. Registers each block
// when it is needed first, and tells the peer of it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "common/os/arena.h"
#include "transport/rdma/device.h"
#include "transport/rdma/link.h"
#include "transport/rdma/message.h"

namespace disttrain::transport {

class RdmaSharedMemory {
 public:
  // The arena must live until clear().
  void set(const Arena& arena) { arena_ = &arena; }

  // The registration of the block in which these bytes are, for this end's own device. Null: they aren't in the arena.
  Result<const RdmaRegion*> own(RdmaLink& link, Bytes bytes);

  // The place of these bytes in a block that the peer knows. Empty: the peer can't know the block now.
  Result<std::optional<Arena::Place>> known(RdmaLink& link, Bytes bytes, RdmaBlock::Use use);

  // True if the peer may access memory of this process.
  bool is_exposed() const { return announced_ > 0; }

  // Ends the registrations, unless other connections use them too. The peer must not have access any more, and this
  // end's device must not use them.
  void clear() { blocks_.clear(); }

 private:
  struct Block {
    std::shared_ptr<const RdmaRegion> region;
    bool is_announced = false;
  };
  Result<Block*> block_at(RdmaLink& link, const Arena::Place& at, Bytes bytes, RdmaAccess access);

  const Arena* arena_ = nullptr;  // null: nothing is shared
  std::map<std::pair<std::uint64_t, RdmaAccess>, Block> blocks_;
  std::size_t announced_ = 0;
};

}  // namespace disttrain::transport
