#include "transport/tcp/send_queue.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "transport/tcp/socket.h"

namespace disttrain::transport {
namespace {

iovec vector_of(Bytes bytes) {
  return iovec{const_cast<std::byte*>(bytes.data()), bytes.size()};
}

// Returns the number of bytes that were written; 0 if the socket is full.
Result<std::size_t> write_some(int fd, iovec* vectors, std::size_t count) {
  msghdr message{};
  message.msg_iov = vectors;
  message.msg_iovlen = count;
  for (;;) {
    const ssize_t n = ::sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) return static_cast<std::size_t>(n);
    if (errno == EAGAIN || errno == EWOULDBLOCK) return std::size_t{0};
    if (errno != EINTR) return fail(ErrorCode::kUnavailable, system_words(errno));
  }
}

// Appends `part` to `to`, but without its first `skip` bytes. Lowers `skip` by the number of bytes left out.
void append_rest(std::vector<std::byte>& to, Bytes part, std::size_t& skip) {
  const std::size_t skipped = std::min(skip, part.size());
  skip -= skipped;
  to.insert(to.end(), part.begin() + static_cast<std::ptrdiff_t>(skipped), part.end());
}

}  // namespace

Status SendQueue::send(int fd, const wire::HeaderBytes& header, const OutgoingFrame& frame) {
  std::size_t written = 0;
  const std::size_t size = header.size() + frame.control.size() + frame.payload.size();
  if (queue_.empty()) {
    std::array<iovec, 3> vectors = {vector_of(header), vector_of(frame.control), vector_of(frame.payload)};
    Result<std::size_t> taken = write_some(fd, vectors.data(), frame.payload.empty() ? 2 : 3);
    if (!taken) return tl::unexpected(taken.error());
    written = *taken;
    bytes_sent_ += written;
  }
  if (written < size)
    remember(header, frame, written);
  else if (frame.lifetime == Payload::kFrozenUntilSent && frame.cookie != 0)
    sent_.push_back(frame.cookie);
  return {};
}

void SendQueue::remember(const wire::HeaderBytes& header, const OutgoingFrame& frame, std::size_t written) {
  Item& item = queue_.push_slot();
  item.owned.clear();
  item.frozen = {};
  item.cookie = 0;
  item.written = 0;
  append_rest(item.owned, header, written);
  append_rest(item.owned, frame.control, written);
  if (frame.lifetime == Payload::kFrozenUntilSent) {
    item.frozen = frame.payload.subspan(written);
    item.cookie = frame.cookie;
  } else {
    append_rest(item.owned, frame.payload, written);
  }
  queued_bytes_ += item.size();
}

Status SendQueue::flush(int fd, std::size_t at_most) {
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
    Result<std::size_t> taken = write_some(fd, vectors.data(), count);
    if (!taken) return tl::unexpected(taken.error());
    advance(*taken);
    total += *taken;
    if (*taken < asked) break;  // the socket is full, so another write would fail
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
