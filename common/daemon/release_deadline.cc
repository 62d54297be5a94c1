#include "common/daemon/release_deadline.h"

#include <algorithm>
#include <asio/post.hpp>
#include <utility>

#include "common/daemon/clock.h"
#include "common/format_duration.h"

namespace disttrain::daemon {

namespace {

constexpr int kChecksPerPatience = 8;

}  // namespace

ReleaseDeadline::ReleaseDeadline(asio::io_context& loop, Thread thread,
                                 std::function<void(const std::string&)> on_missed, Duration longest)
    : loop_(loop),
      thread_(std::move(thread)),
      on_missed_(std::move(on_missed)),
      longest_(longest),
      timer_(loop),
      alive_(std::make_shared<bool>(true)) {}

ReleaseDeadline::~ReleaseDeadline() {
  *alive_ = false;
}

void ReleaseDeadline::begin(Duration patience) {
  const bool is_first = pending_++ == 0;
  patience_ = is_first ? patience : std::min(patience_, patience);
  began_ = is_first ? daemon::now() : began_;
  moved_ = is_first ? began_ : moved_;
  turns_ = is_first ? thread_.turns() : turns_;
  thread_.post([this, &loop = loop_, alive = alive_] {
    asio::post(loop, [this, alive] {
      if (*alive) answered();
    });
  });
  check();
}

void ReleaseDeadline::answered() {
  if (--pending_ == 0) timer_.cancel();
}

void ReleaseDeadline::check() {
  if (has_missed_) return;
  const Instant now = daemon::now();
  if (const std::uint64_t turns = thread_.turns(); std::exchange(turns_, turns) != turns) moved_ = now;
  const Duration longest = std::max(patience_, longest_);
  has_missed_ = now - moved_ >= patience_ || now - began_ >= longest;
  if (now - moved_ >= patience_) return on_missed_("hasn't moved for " + format_duration(now - moved_));
  if (has_missed_) return on_missed_("moves, but hasn't released it within " + format_duration(longest));
  timer_.expires_after(patience_ / kChecksPerPatience);
  timer_.async_wait([this, alive = alive_](asio::error_code cancelled) {
    if (!cancelled && *alive && pending_ > 0) check();
  });
}

}  // namespace disttrain::daemon
