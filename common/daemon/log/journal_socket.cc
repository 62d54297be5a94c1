#include "common/daemon/log/journal_socket.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cstdint>
#include <cstring>

#include "common/daemon/log/systemd_journal.h"

namespace disttrain::daemon {

void JournalSocket::open() {
  fd_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

bool JournalSocket::send(std::initializer_list<std::pair<std::string_view, std::string_view>> fields) const {
  constexpr std::size_t kMostFields = 8;
  // name, line feed, length of the value as a 64-bit little-endian number, value, line feed
  constexpr std::size_t kPartsOfField = 5;
  if (fd_ < 0 || fields.size() > kMostFields) return false;
  char line_feed = '\n';
  std::uint64_t lengths[kMostFields];
  iovec parts[kMostFields * kPartsOfField];
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
  static_assert(sizeof kJournalSocket <= sizeof to.sun_path);
  std::memcpy(to.sun_path, kJournalSocket, sizeof kJournalSocket);
  msghdr message{};
  message.msg_name = &to;
  message.msg_namelen = sizeof to;
  message.msg_iov = parts;
  message.msg_iovlen = count;
  return ::sendmsg(fd_, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
}

}  // namespace disttrain::daemon
