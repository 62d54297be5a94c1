#include "common/daemon/http_stream.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "common/daemon/clock.h"

namespace disttrain::daemon {

namespace {

constexpr Duration kLinger = std::chrono::milliseconds(500);
constexpr int kLingerReads = 64;

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Descriptor::Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

HttpStream::HttpStream(Descriptor socket, Duration deadline, const Descriptor& ended)
    : socket_(std::move(socket)), ended_(ended), end_(now() + deadline) {}

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
  while (begin_ == filled_) {
    if (bytes_read_ >= kMaxRequestBytes || !wait_for(POLLIN, end_)) return -1;
    const ssize_t n =
        ::recv(socket_.get(), buffer_.data(), std::min(buffer_.size(), kMaxRequestBytes - bytes_read_), 0);
    if (n == 0) return 0;
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (n < 0) return -1;
    begin_ = 0;
    filled_ = static_cast<std::size_t>(n);
    bytes_read_ += filled_;
  }
  const std::size_t taken = std::min(size, filled_ - begin_);
  std::memcpy(to, buffer_.data() + begin_, taken);
  begin_ += taken;
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
  const Instant end = now() + kLinger;
  for (int i = 0; i < kLingerReads && wait_for(POLLIN, end); ++i)
    if (::recv(socket_.get(), buffer_.data(), buffer_.size(), 0) == 0) return;
}

}  // namespace disttrain::daemon
