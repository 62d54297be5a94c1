#include "engine/trainer/message_socket.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "common/check.h"
#include "common/daemon/clock.h"

namespace disttrain::workerd {

namespace {

constexpr std::size_t kHeaderBytes = 8;
constexpr std::size_t kSocketReadBytes = 64 * 1024;
constexpr int kSendAgainMs = 10;  // before a message is sent again for which the kernel had no room

void put_u32(char* to, std::uint32_t value) {
  for (int i = 0; i < 4; ++i) to[i] = static_cast<char>(value >> (8 * i));
}

std::uint32_t get_u32(const std::byte* from) {
  std::uint32_t value = 0;
  for (int i = 0; i < 4; ++i) value |= std::to_integer<std::uint32_t>(from[i]) << (8 * i);
  return value;
}

// Sends the first part of the text, and with it the descriptors. Returns the number of bytes sent, or -1 with errno.
ssize_t send_with(int fd, std::string_view text, std::span<const int> descriptors) {
  iovec part{const_cast<char*>(text.data()), text.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int) * kMaxTrainerDescriptors)> control{};
  if (!descriptors.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
  }
  return ::sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace

Result<MessageSocket::Pair> MessageSocket::make_pair() {
  std::array<int, 2> fds{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()) != 0)
    return fail(ErrorCode::kUnavailable, std::string("can't make a socket for the trainer: ") + std::strerror(errno));
  return Pair{Descriptor(fds[0]), Descriptor(fds[1])};
}

Status MessageSocket::send(const nlohmann::json& message, std::span<const int> descriptors, Duration limit) {
  // A column's name comes from a file of the user and may be no UTF-8.
  const std::string json = message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  DISTTRAIN_CHECK_LE(json.size(), kMaxTrainerTextBytes);
  DISTTRAIN_CHECK_LE(descriptors.size(), kMaxTrainerDescriptors);
  std::string frame(kHeaderBytes, '\0');
  put_u32(frame.data(), static_cast<std::uint32_t>(json.size()));
  frame += json;
  std::string_view rest = frame;
  const Instant until = daemon::now() + limit;
  while (!rest.empty()) {
    const ssize_t sent = send_with(fd_.get(), rest, descriptors);
    if (sent > 0) {
      rest.remove_prefix(static_cast<std::size_t>(sent));
      descriptors = {};
      continue;
    }
    if (sent < 0 && errno == EINTR) continue;
    const int error = errno;
    const bool may_pass = error == ENOBUFS || error == ENOMEM || error == ETOOMANYREFS;
    if (sent < 0 && error != EAGAIN && !may_pass)
      return fail(ErrorCode::kUnavailable, std::string("closed its socket: ") + std::strerror(error));
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - daemon::now()).count();
    if (left <= 0 && may_pass)
      return fail(ErrorCode::kTemporary, std::string("can't be sent a message: ") + std::strerror(error));
    if (may_pass) {
      ::poll(nullptr, 0, kSendAgainMs);
      continue;
    }
    pollfd writable{fd_.get(), POLLOUT, 0};
    if (left <= 0 || ::poll(&writable, 1, static_cast<int>(left)) == 0)
      return fail(ErrorCode::kTemporary, "doesn't read its socket");
  }
  return {};
}

Result<bool> MessageSocket::read_some() {
  received_.erase(received_.begin(), received_.begin() + static_cast<std::ptrdiff_t>(used_));
  used_ = 0;
  std::array<std::byte, kSocketReadBytes> buffer;
  for (;;) {
    // The kernel closes descriptors that the trainer sends, because there is no memory for them here.
    const ssize_t got = ::recv(fd_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return false;
    if (got < 0) return fail(ErrorCode::kUnavailable, std::string("closed its socket: ") + std::strerror(errno));
    at_end_ = got == 0;
    received_.insert(received_.end(), buffer.begin(), buffer.begin() + got);
    return true;
  }
}

Result<std::optional<RawMessage>> MessageSocket::take() {
  const std::size_t there = received_.size() - used_;
  const std::byte* const at = received_.data() + used_;
  if (there < kHeaderBytes) return std::optional<RawMessage>();
  const std::size_t text = get_u32(at);
  const std::size_t payload = get_u32(at + 4);
  if (text > kMaxTrainerTextBytes || payload > kMaxTrainerPayloadBytes)
    return fail(ErrorCode::kConfig, "sent bytes on its socket that aren't a message of the package disttrain");
  const std::size_t whole = kHeaderBytes + text + payload;
  if (there < whole) return std::optional<RawMessage>();
  RawMessage message;
  message.text.assign(reinterpret_cast<const char*>(at + kHeaderBytes), text);
  message.payload.assign(at + kHeaderBytes + text, at + whole);
  used_ += whole;
  return std::optional(std::move(message));
}

Result<std::optional<RawMessage>> MessageSocket::receive() {
  for (;;) {
    Result<std::optional<RawMessage>> message = take();
    if (!message.has_value() || message->has_value()) return message;
    if (at_end_) return fail(ErrorCode::kUnavailable, "closed its socket");
    const Result<bool> got = read_some();
    if (!got.has_value()) return tl::unexpected(got.error());
    if (!*got) return std::optional<RawMessage>();
  }
}

}  // namespace disttrain::workerd
