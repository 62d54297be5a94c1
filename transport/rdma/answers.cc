// A shard changes its parameters as soon as send() has returned, but the device reads later. So an answer is copied
// once, into a registered buffer of 4 MiB for each connection. If the buffer is full, the payload goes in its frame.
// The other plan was to freeze buckets until the device has sent them. Then an update would wait for the slowest
// worker.
#include "transport/rdma/answers.h"

#include <cstring>

namespace disttrain::transport {

Result<bool> RdmaAnswers::put(RdmaLink& link, Bytes payload, std::uint64_t at, bool is_all_sent) {
  if (is_all_sent) overtaking_.note_all_sent(link.credits().all_sent());
  if (overtaking_.may_overtake(at, payload.size(), link.credits().all_read())) {
    const Result<bool> written = write(link, payload, at);
    if (!written.has_value() || *written) return written;
  }
  overtaking_.note_slow(at, payload.size());
  return false;
}

Result<bool> RdmaAnswers::write(RdmaLink& link, Bytes payload, std::uint64_t at) {
  if (!region_.holds(at, payload.size()) || staging_.pieces() == kRdmaMaxWrites) return false;
  if (Status made = link.devices()->make_once(buffer_, link.domain(), kStagingBytes); !made)
    return tl::unexpected(made.error());
  const std::optional<std::size_t> piece = staging_.take(payload.size());
  if (!piece) return false;
  const MutableBytes copy = buffer_->bytes().subspan(*piece, payload.size());
  std::memcpy(copy.data(), payload.data(), payload.size());
  if (Status posted = link.write(copy, buffer_->key(), {region_.address + at, payload.size(), region_.key}); !posted)
    return tl::unexpected(posted.error());
  return true;
}

}  // namespace disttrain::transport
