#include "common/daemon/http_stream.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "common/daemon/clock.h"

namespace disttrain::daemon {

namespace {

constexpr Duration kLinger = std::chrono::milliseconds(500);
constexpr int kLingerReads = 64;

}  // namespace

HttpStream::HttpStream(HttpRequest request, Duration deadline, const Descriptor& ended)
    : request_(std::move(request)), ended_(ended), end_(now() + deadline) {}

bool HttpStream::wait_for(short events, Instant end) const {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - now());
    if (left.count() <= 0) return false;
    pollfd both[] = {{socket(), events, 0}, {ended_.get(), POLLIN, 0}};
    const int ready = ::poll(both, 2, static_cast<int>(left.count()));
    if (ready > 0) return both[1].revents == 0;
    if (ready == 0 || errno != EINTR) return false;
  }
}

ssize_t HttpStream::read(char* to, std::size_t size) {
  const std::size_t taken = std::min(size, request_.head.size() - bytes_read_);
  if (taken == 0) return -1;
  std::memcpy(to, request_.head.data() + bytes_read_, taken);
  bytes_read_ += taken;
  return static_cast<ssize_t>(taken);
}

ssize_t HttpStream::write(const char* from, std::size_t size) {
  for (;;) {
    const ssize_t n = ::send(socket(), from, size, MSG_NOSIGNAL);
    if (n >= 0) return n;
    if (errno == EINTR) continue;
    if (errno != EAGAIN || !wait_for(POLLOUT, end_)) return -1;
  }
}

void HttpStream::finish() {
  ::shutdown(socket(), SHUT_WR);
  std::array<char, 4096> buffer;
  const Instant end = now() + kLinger;
  for (int i = 0; i < kLingerReads && wait_for(POLLIN, end); ++i)
    if (::recv(socket(), buffer.data(), buffer.size(), 0) == 0) return;
}

}  // namespace disttrain::daemon
