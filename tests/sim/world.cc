#include "tests/sim/world.h"

namespace disttrain::sim {

void World::tell(const std::string& line) {
  // FNV-1a over time and words.
  const auto mix = [this](std::uint64_t byte) { hash_ = (hash_ ^ byte) * 0x100000001b3u; };
  const auto time = static_cast<std::uint64_t>(now().time_since_epoch().count());
  for (int i = 0; i < 8; ++i) mix((time >> (8 * i)) & 0xff);
  for (const char c : line) mix(static_cast<unsigned char>(c));
  keep(line);
}

void World::keep(const std::string& line) {
  if (!keep_words_) return;
  const auto since = now().time_since_epoch() - std::chrono::seconds(1000);
  words_.push_back(std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(since).count()) + " us  " +
                   line);
}

}  // namespace disttrain::sim
