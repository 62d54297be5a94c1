// Decides whether and when `up` restarts a daemon that has ended, like systemd with Restart=on-failure. This does no
// I/O.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "common/time.h"

namespace disttrain::cli {

// The policy for one daemon. It counts the daemon's restarts.
class RestartPolicy {
 public:
  // If `allowed` is false (--no-restart), the daemon is never restarted.
  explicit RestartPolicy(bool allowed) : allowed_(allowed) {}

  struct Verdict {
    std::optional<Duration> pause;  // restart the daemon after this pause; none: don't restart it
    std::string why_not;
  };

  void on_start(Instant now) { started_ = now; }
  // Decides after the daemon's end. `exit_code` is none if a signal ended the daemon. `is_missed`: other daemons still
  // run and need this one. That is so for the chief while tasks train.
  //
  // Example:
  // 1. The daemon ends for the first time, or after it has run for at least 10 s: it is restarted at once.
  // 2. It ends again within 10 s: it is restarted after 0.1 s, then after 0.2 s, and so on up to 5 s.
  // 3. It ends, and it was restarted 10 times within the last minute: it stays down. But if `is_missed` and it ended
  //    with an exit code, it is restarted after 5 s, because the cause may pass: for example, a full disk may soon have
  //    space again.
  // 4. It ends with exit code 0, or with an exit code whose cause a restart can't remove: it stays down. These codes
  //    are 64 usage, 65 data, 66 no input, 77 no permission, 78 configuration, and 126 and 127, which mean that the
  //    program or a library can't be loaded.
  Verdict on_end(Instant now, std::optional<int> exit_code, bool is_missed = false);

 private:
  bool allowed_;
  Instant started_;
  std::uint32_t short_lives_ = 0;  // in a row
  std::deque<Instant> restarts_;   // within the last minute
};

}  // namespace disttrain::cli
