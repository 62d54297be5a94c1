#include "common/daemon/http/stream.h"

#include <poll.h>
#include <strings.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "common/daemon/clock.h"

namespace disttrain::daemon {

namespace {

constexpr Duration kLinger = std::chrono::milliseconds(500);
constexpr int kLingerReads = 64;

// Returns the head of a request without its Range headers, which a server may ignore (RFC 9110, 14.2). httplib would
// answer each of thousands of ranges with another copy of the page. It would also parse them with a recursive regular
// expression: 8 KiB of ranges would need more than the 2 MiB of stack that threads can have.
std::string without_ranges(const std::string& head) {
  constexpr std::string_view kName = "Range:";
  std::string kept;
  for (std::size_t line = 0; line < head.size();) {
    const std::size_t next = std::min(head.find('\n', line), head.size() - 1) + 1;
    if (::strncasecmp(head.c_str() + line, kName.data(), kName.size()) != 0) kept.append(head, line, next - line);
    line = next;
  }
  return kept;
}

}  // namespace

HttpStream::HttpStream(HttpRequest request, Duration deadline, const Descriptor& ended)
    : socket_(std::move(request.socket)), head_(without_ranges(request.head)), ended_(ended), end_(now() + deadline) {}

bool HttpStream::wait_for(short events, Instant end) const {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - now());
    if (left.count() <= 0) return false;
    pollfd both[] = {{socket_.get(), events, 0}, {ended_.get(), POLLIN, 0}};
    const int ready = ::poll(both, 2, static_cast<int>(left.count()));
    if (ready > 0) return both[1].revents == 0;
    if (ready == 0 || errno != EINTR) return false;
  }
}

ssize_t HttpStream::read(char* to, std::size_t size) {
  const std::size_t taken = std::min(size, head_.size() - bytes_read_);
  if (taken == 0) return -1;
  std::memcpy(to, head_.data() + bytes_read_, taken);
  bytes_read_ += taken;
  return static_cast<ssize_t>(taken);
}

ssize_t HttpStream::write(const char* from, std::size_t size) {
  for (;;) {
    const ssize_t n = ::send(socket_.get(), from, size, MSG_NOSIGNAL);
    if (n >= 0) return n;
    if (errno == EINTR) continue;
    if (errno != EAGAIN || !wait_for(POLLOUT, end_)) return -1;
  }
}

void HttpStream::finish() {
  ::shutdown(socket_.get(), SHUT_WR);
  std::array<char, 4096> buffer;
  const Instant end = now() + kLinger;
  for (int i = 0; i < kLingerReads && wait_for(POLLIN, end); ++i)
    if (::recv(socket_.get(), buffer.data(), buffer.size(), 0) == 0) return;
}

}  // namespace disttrain::daemon
