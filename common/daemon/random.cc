#include "common/daemon/random.h"

#include <random>

namespace disttrain::daemon {

std::uint64_t draw_number() {
  std::random_device source;
  std::uint64_t number = 0;
  while (number == 0) number = (std::uint64_t{source()} << 32) | source();
  return number;
}

}  // namespace disttrain::daemon
