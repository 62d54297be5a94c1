// No job waits for the files of another job. On a ps, each job has its own thread for checkpoints. At the chief, each
// job has its own threads for event files and for each trace. If such a thread still hangs after its job, only that
// thread stays behind, up to 16 of a kind. But all jobs share the threads of a ps's shards. If one of these hangs in a
// file of a job that is over, the ps ends its process with exit code 75, as a worker does, and is started again.
#include "common/daemon/release_deadline.h"

#include <algorithm>
#include <asio/post.hpp>
#include <utility>

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
  if (pending_++ == 0 || patience < patience_) {
    patience_ = patience;
    checked_ = thread_.now();
    age_ = stood_ = Duration::zero();
    turns_ = thread_.turns();
  }
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

// A process that was suspended, or that gets no CPU, checks late. Its thread had no time either, so a check counts for
// the time of two at most.
void ReleaseDeadline::check() {
  if (has_missed_) return;
  const Instant now = thread_.now();
  const Duration passed = std::min(now - std::exchange(checked_, now), 2 * patience_ / kChecksPerPatience);
  const std::uint64_t turns = thread_.turns();
  age_ += passed;
  stood_ = std::exchange(turns_, turns) == turns ? stood_ + passed : Duration::zero();
  const Duration longest = std::max(patience_, longest_);
  has_missed_ = stood_ >= patience_ || age_ >= longest;
  if (stood_ >= patience_) return on_missed_("hasn't moved for " + format_duration(stood_));
  if (has_missed_) return on_missed_("moves, but hasn't released it within " + format_duration(longest));
  timer_.expires_after(patience_ / kChecksPerPatience);
  timer_.async_wait([this, alive = alive_](asio::error_code cancelled) {
    if (!cancelled && *alive && pending_ > 0) check();
  });
}

}  // namespace disttrain::daemon
