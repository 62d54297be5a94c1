#include "chiefd/core/job/facts/pauses.h"

namespace disttrain::chiefd {

void Pauses::begin_shortage(Instant now) {
  is_short_ = true;
  short_since_ = now;
}

void Pauses::excuse_shortage(Duration pause) {
  if (is_short_) short_since_ += pause;
}

void Pauses::drop_generation() {
  silent_ps_.clear();
  is_short_ = false;
}

}  // namespace disttrain::chiefd
