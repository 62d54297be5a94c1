#include "transport/stream/send_queue.h"

#include <sys/uio.h>

#include <algorithm>
#include <array>

namespace disttrain::transport {
namespace {

iovec vector_of(Bytes bytes) {
  return iovec{const_cast<std::byte*>(bytes.data()), bytes.size()};
}

// Appends `part` to `to`, but without its first `skip` bytes. Lowers `skip` by the number of bytes left out.
void append_rest(std::vector<std::byte>& to, Bytes part, std::size_t& skip) {
  const std::size_t skipped = std::min(skip, part.size());
  skip -= skipped;
  to.insert(to.end(), part.begin() + static_cast<std::ptrdiff_t>(skipped), part.end());
}

}  // namespace

Status SendQueue::send(ByteChannel& channel, const wire::HeaderBytes& header, Bytes place, const OutgoingFrame& frame,
                       Bytes payload) {
  std::size_t written = 0;
  const std::size_t size = header.size() + place.size() + frame.control.size() + payload.size();
  if (queue_.empty()) {
    std::array<iovec, 4> vectors;
    std::size_t count = 0;
    for (const Bytes part : {Bytes(header), place, frame.control, payload})
      if (!part.empty()) vectors[count++] = vector_of(part);
    const Result<std::size_t> taken = channel.write_some(std::span(vectors).first(count));
    if (!taken) return tl::unexpected(taken.error());
    written = *taken;
    bytes_sent_ += written;
  }
  if (written < size)
    remember(header, place, frame, payload, written);
  else if (frame.lifetime != Payload::kCopied && frame.cookie != 0)
    sent_.push_back(frame.cookie);
  return {};
}

void SendQueue::remember(const wire::HeaderBytes& header, Bytes place, const OutgoingFrame& frame, Bytes payload,
                         std::size_t written) {
  Item& item = queue_.push_slot();
  item.owned.clear();
  item.frozen = {};
  item.cookie = 0;
  item.written = 0;
  append_rest(item.owned, header, written);
  append_rest(item.owned, place, written);
  append_rest(item.owned, frame.control, written);
  if (frame.lifetime != Payload::kCopied) {
    item.frozen = payload.subspan(written);
    item.cookie = frame.cookie;
  } else {
    append_rest(item.owned, payload, written);
  }
  queued_bytes_ += item.size();
}

Status SendQueue::flush(ByteChannel& channel, std::size_t at_most) {
  std::size_t total = 0;
  while (!queue_.empty() && total < at_most) {
    std::array<iovec, 64> vectors;
    std::size_t count = 0, asked = 0;
    for (std::size_t i = 0; i < queue_.size(); ++i) {
      const Item& item = queue_[i];
      if (count + 2 > vectors.size() || asked >= at_most) break;
      const std::size_t from_owned = std::min(item.written, item.owned.size());
      const Bytes owned = Bytes(item.owned).subspan(from_owned);
      const Bytes frozen = item.frozen.subspan(item.written - from_owned);
      if (!owned.empty()) vectors[count++] = vector_of(owned);
      if (!frozen.empty()) vectors[count++] = vector_of(frozen);
      asked += owned.size() + frozen.size();
    }
    const Result<std::size_t> taken = channel.write_some(std::span(vectors).first(count));
    if (!taken) return tl::unexpected(taken.error());
    advance(*taken);
    total += *taken;
    if (*taken < asked) break;  // the channel is full, so another write would fail
  }
  return {};
}

void SendQueue::advance(std::size_t written) {
  bytes_sent_ += written;
  queued_bytes_ -= written;
  while (written > 0) {
    Item& item = queue_.front();
    const std::size_t n = std::min(written, item.size() - item.written);
    item.written += n;
    written -= n;
    if (item.written < item.size()) return;
    if (item.cookie != 0) sent_.push_back(item.cookie);
    if (queue_.size() > kMaxKept || item.owned.capacity() > kMaxKeptBytes) item.owned = {};
    queue_.pop_front();
  }
}

}  // namespace disttrain::transport
