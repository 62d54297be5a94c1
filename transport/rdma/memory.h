// RdmaMemory: the memory of one channel. With it the channel lends payloads to the peer and offers memory for answers.
// It also reads what the peer lends, and writes answers to the peer's memory.
#pragma once

#include <optional>

#include "transport/rdma/answers.h"
#include "transport/rdma/fetch.h"
#include "transport/rdma/link.h"
#include "transport/rdma/shared_memory.h"
#include "transport/stream/offered_memory.h"

namespace disttrain::transport {

class RdmaMemory {
 public:
  // These functions do what those of ByteChannel with the same names do. After an error the connection is unusable.
  void share(const Arena& arena) { shared_.set(arena); }
  // The link's completions were just taken. `is_all_sent`: all earlier frames are completely sent.
  Result<std::optional<wire::PayloadPlace>> place(RdmaLink& link, const OutgoingFrame& frame, bool is_all_sent);
  Result<PeerMemory> take(RdmaLink& link, const wire::PayloadPlace& place, std::uint64_t payload_bytes);
  Status fetch(RdmaLink& link, MutableBytes landing) { return fetch_.begin(link, shared_, landing); }

  // A write or a read has completed.
  void written() {
    answers_.written();
    has_moved_payload_ = true;
  }
  void read() {
    fetch_.completed();
    has_moved_payload_ = true;
  }
  bool is_fetching() const { return fetch_.is_under_way(); }
  bool has_fetched() const { return fetch_.has_arrived(); }
  // Only if has_fetched(): now the payload is in its landing.
  void finish_fetch() { fetch_.finish(); }

  // True if the peer may access memory of this process.
  bool is_exposed() const { return shared_.is_exposed(); }
  // True if a payload has been moved by RDMA, in either direction.
  bool has_moved_payload() const { return has_moved_payload_; }

  // Ends the registrations of the arena, unless other connections use them too.
  void unshare() { shared_.clear(); }
  // After the fence: frees all memory.
  void clear();

 private:
  RdmaSharedMemory shared_;
  OfferedMemory offered_;
  RdmaAnswers answers_;  // to the peer's memory
  RdmaFetch fetch_;      // from the peer's memory
  bool has_moved_payload_ = false;
};

}  // namespace disttrain::transport
