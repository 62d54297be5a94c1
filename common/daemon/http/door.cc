#include "common/daemon/http/door.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "common/daemon/clock.h"

namespace disttrain::daemon {

HttpDoor::HttpDoor(const Descriptor& listener, const Descriptor& ended, Duration patience)
    : listener_(listener), ended_(ended), patience_(patience) {}

std::optional<HttpRequest> HttpDoor::next() {
  const std::lock_guard lock(mutex_);
  while (wait_for_news()) {
    for (auto one = waiting_.begin(); one != waiting_.end();) {
      const Heard heard = hear(one->request);
      if (heard == Heard::kPart && now() < one->end) {
        ++one;
        continue;
      }
      HttpRequest request = std::move(one->request);
      one = waiting_.erase(one);
      if (heard == Heard::kAll) return request;
    }
    can_accept_ = accept_one();
  }
  return std::nullopt;
}

// Waits until a connection or data arrives, or a client's time is over. Returns false if the endpoint has ended.
bool HttpDoor::wait_for_news() const {
  // pause after a failed accept(), because the next accept() would fail too
  constexpr Duration kPause = std::chrono::milliseconds(100);
  constexpr Duration kRest = std::chrono::hours(1);
  std::vector<pollfd> polled{{ended_.get(), POLLIN, 0},
                             {listener_.get(), static_cast<short>(can_accept_ ? POLLIN : 0), 0}};
  for (const Waiting& one : waiting_) polled.push_back({one.request.socket.get(), POLLIN, 0});
  Duration timeout = can_accept_ ? kRest : kPause;
  if (!waiting_.empty()) timeout = std::clamp(waiting_.front().end - now(), Duration::zero(), timeout);
  const auto rounded = std::chrono::ceil<std::chrono::milliseconds>(timeout);
  ::poll(polled.data(), polled.size(), static_cast<int>(rounded.count()));
  return polled.front().revents == 0;
}

// Returns false if a connection waits, but no descriptor or memory is left for it.
bool HttpDoor::accept_one() {
  Descriptor socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!socket) return errno == EAGAIN || errno == EINTR || errno == ECONNABORTED;
  if (waiting_.size() == kMaxWaiting) waiting_.erase(waiting_.begin());
  waiting_.push_back({{std::move(socket), {}}, now() + patience_});
  return true;
}

HttpDoor::Heard HttpDoor::hear(HttpRequest& request) {
  std::array<char, 4096> buffer;
  std::string& head = request.head;
  for (;;) {
    const ssize_t n =
        ::recv(request.socket.get(), buffer.data(), std::min(buffer.size(), kMaxRequestBytes - head.size()), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return Heard::kPart;
    if (n <= 0) return Heard::kGone;
    const std::size_t known = head.size();
    head.append(buffer.data(), static_cast<std::size_t>(n));
    const bool is_all = head.find("\n\r\n", std::max<std::size_t>(known, 2) - 2) != std::string::npos;
    if (is_all || head.size() == kMaxRequestBytes) return Heard::kAll;
  }
}

}  // namespace disttrain::daemon
