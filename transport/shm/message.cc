#include "transport/shm/message.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "transport/tcp/socket.h"

namespace disttrain::transport {
namespace {

constexpr std::size_t kMaxDescriptors = 3;
// Room for one descriptor more than expected, to notice it.
using ControlBytes = std::array<std::byte, CMSG_SPACE((kMaxDescriptors + 1) * sizeof(int))>;

}  // namespace

Result<bool> send_message(int socket, const ShmMessage& message, std::span<const int> descriptors) {
  iovec part{const_cast<ShmMessage*>(&message), sizeof message};
  alignas(cmsghdr) ControlBytes control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
  cmsghdr* const rights = CMSG_FIRSTHDR(&header);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(descriptors.size_bytes());
  std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size_bytes());
  for (;;) {
    if (::sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return true;
    // ETOOMANYREFS: too many descriptors are on their way, also those of other connections of this user.
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS || errno == ETOOMANYREFS) return false;
    if (errno != EINTR) return fail(ErrorCode::kUnavailable, system_words(errno));
  }
}

Result<std::optional<ReceivedMessage>> receive_message(int socket) {
  ReceivedMessage received;
  iovec part{&received.message, sizeof received.message};
  alignas(cmsghdr) ControlBytes control{};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  ssize_t n = 0;
  do {
    n = ::recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (n < 0 && errno == EINTR);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return std::optional<ReceivedMessage>();
  if (n < 0) return fail(ErrorCode::kUnavailable, system_words(errno));
  for (cmsghdr* one = CMSG_FIRSTHDR(&header); one != nullptr; one = CMSG_NXTHDR(&header, one)) {
    if (one->cmsg_level != SOL_SOCKET || one->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = 0; at + sizeof(int) <= one->cmsg_len - CMSG_LEN(0); at += sizeof(int)) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(one) + at, sizeof fd);
      received.descriptors.emplace_back(fd);
    }
  }
  if (n == 0) return fail(ErrorCode::kUnavailable, "the peer closed the connection");
  if ((header.msg_flags & MSG_CTRUNC) != 0)
    return fail(ErrorCode::kData,
                "can't take the peer's descriptors: this process has too many open files; raise `ulimit -n`, or "
                "LimitNOFILE of the unit");
  const std::size_t expected = received.message.kind == ShmMessage::Kind::kOpen ? 3 : 1;
  const bool is_whole = n == sizeof received.message && (header.msg_flags & MSG_TRUNC) == 0 &&
                        received.message.magic == ShmMessage().magic && received.descriptors.size() == expected;
  if (!is_whole)
    return fail(ErrorCode::kData, "a message of " + std::to_string(n) + " bytes with " +
                                      std::to_string(received.descriptors.size()) +
                                      " descriptors came over a Unix socket; it isn't one of disttrain");
  return std::optional(std::move(received));
}

}  // namespace disttrain::transport
