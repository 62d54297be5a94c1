// When a daemon of `up` that has ended is started again: as systemd does with Restart=on-failure. Pure.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>

#include "common/time.h"

namespace disttrain::cli {

// Of one daemon.
class RestartPolicy {
 public:
  // `allowed`: without it (--no-restart) nothing is started again.
  explicit RestartPolicy(bool allowed) : allowed_(allowed) {}

  struct Verdict {
    std::optional<Duration> pause;  // until it is started again; none: it stays down
    std::string why_not;
  };

  void on_start(Instant now) { started_ = now; }
  // `exit_code`: none where a signal ended it. Started again at once; where it lived for less than 10 s, and not for
  // the first time, after 0.1 s, doubling to 5 s. It stays down after an exit code 0 or one of sysexits that another
  // start doesn't change (64 usage, 65 data, 66 no input, 77 no permission, 78 configuration; 126 and 127: the program
  // or a library of it can't be loaded), and after 10 restarts
  // within a minute. One that is missed, as others go on with a job that needs it, is tried every 5 s then, unless
  // signals end it: a disk that is full now needn't be so for long.
  Verdict on_end(Instant now, std::optional<int> exit_code, bool is_missed = false);

 private:
  bool allowed_;
  Instant started_;
  std::uint32_t short_lives_ = 0;  // in a row
  std::deque<Instant> restarts_;   // within the last minute
};

}  // namespace disttrain::cli
