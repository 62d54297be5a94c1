// libsystemd's sd_journal_sendv() waits without limit for a journal that has no room, so a journald that hangs would
// hold the loops of a daemon. A signal handler may not call it either, because it allocates memory. An entry that finds
// no room goes to stderr, without fields.
#include "common/daemon/log/journal_socket.h"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

namespace disttrain::daemon {
namespace {

std::int64_t now_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

}  // namespace

void JournalSocket::open(const char* path) {
  path_ = path;
  fd_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const timeval patience{.tv_sec = 0, .tv_usec = kJournalPatienceMs * 1000};
  static_cast<void>(::setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience));
}

bool JournalSocket::send(std::span<const JournalField> fields) {
  // name, line feed, length of the value as a 64-bit little-endian number, value, line feed
  constexpr std::size_t kPartsOfField = 5;
  if (fd_ < 0 || fields.size() > kMostJournalFields) return false;
  char line_feed = '\n';
  std::uint64_t lengths[kMostJournalFields];
  iovec parts[kMostJournalFields * kPartsOfField];
  std::size_t count = 0;
  std::size_t field = 0;
  const auto add = [&parts, &count](const void* data, std::size_t size) {
    parts[count++] = {const_cast<void*>(data), size};
  };
  for (const auto& [name, value] : fields) {
    lengths[field] = value.size();
    add(name.data(), name.size());
    add(&line_feed, 1);
    add(&lengths[field++], sizeof(std::uint64_t));
    add(value.data(), value.size());
    add(&line_feed, 1);
  }
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  std::strncpy(to.sun_path, path_, sizeof to.sun_path - 1);
  msghdr message{};
  message.msg_name = &to;
  message.msg_namelen = sizeof to;
  message.msg_iov = parts;
  message.msg_iovlen = count;
  if (::sendmsg(fd_, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return true;
  const std::int64_t begin = now_ms();
  if (errno != EAGAIN || !may_wait(begin)) return false;
  const bool is_sent = ::sendmsg(fd_, &message, MSG_NOSIGNAL) >= 0;  // waits for kJournalPatienceMs at most
  waited_ms_ += now_ms() - begin;
  return is_sent;
}

bool JournalSocket::may_wait(std::int64_t now_ms) {
  if (now_ms - window_ms_ >= kJournalWindowMs) {
    window_ms_ = now_ms;
    waited_ms_ = 0;
  }
  return waited_ms_ < kJournalPatienceMs;
}

}  // namespace disttrain::daemon
