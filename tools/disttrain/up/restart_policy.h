// Decides when `up` restarts a daemon that has ended, like systemd with Restart=on-failure. Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "common/time.h"

namespace disttrain::cli {

// For one daemon.
class RestartPolicy {
 public:
  // `allowed`: false (--no-restart) means that the daemon is never restarted.
  explicit RestartPolicy(bool allowed) : allowed_(allowed) {}

  struct Verdict {
    std::optional<Duration> pause;  // until the restart; none: the daemon stays down
    std::string why_not;
  };

  void on_start(Instant now) { started_ = now; }
  // `exit_code`: none where a signal ended the daemon. `is_missed`: other daemons go on with a job that needs this one.
  //
  // Example:
  // 1. The daemon ends for the first time, or after a life of at least 10 s: it is restarted at once.
  // 2. It ends again within 10 s: it is restarted after 0.1 s, then after 0.2 s, and so on up to 5 s.
  // 3. It ends after 10 restarts within a minute: it stays down. One that is missed is restarted after 5 s instead,
  //    unless a signal ended it: a full disk may have room again soon.
  // 4. It ends with exit code 0, or with one that another start doesn't change: it stays down. Those are 64 usage, 65
  //    data, 66 no input, 77 no permission, 78 configuration, and 126 and 127, where the program or a library can't be
  //    loaded.
  Verdict on_end(Instant now, std::optional<int> exit_code, bool is_missed = false);

 private:
  bool allowed_;
  Instant started_;
  std::uint32_t short_lives_ = 0;  // in a row
  std::deque<Instant> restarts_;   // within the last minute
};

}  // namespace disttrain::cli
