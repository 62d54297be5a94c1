// The virtual time of a simulation, its random numbers, and the order of all its events. Everything follows from one
// seed: neither this class nor the code that uses it has a real clock, threads, or other randomness.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/random.h"
#include "common/time.h"
#include "scale/event_queue.h"
#include "tests/sim/happenings.h"

namespace disttrain::sim {

class World {
 public:
  // keep_words: if true, the trace is also kept as text. The hash of the trace is always kept.
  World(std::uint64_t seed, bool keep_words) : random_(seed), keep_words_(keep_words) {}

  Instant now() const { return queue_.now(); }
  Random& random() { return random_; }
  bool chance(std::uint64_t per_thousand) { return random_.below(1000) < per_thousand; }
  // A random duration, both limits included.
  Duration between(Duration shortest, Duration longest) {
    return shortest + Duration(static_cast<std::int64_t>(
                          random_.below(static_cast<std::uint64_t>((longest - shortest).count()) + 1)));
  }

  void after(Duration delay, std::function<void()> work) { queue_.after(delay, std::move(work)); }
  // Runs the next work that is due. Returns false if no work is due by the time `end`.
  bool turn(Instant end) { return queue_.turn(end); }

  // Adds a line to the trace, and so changes the trace's hash.
  void tell(const std::string& line);
  // whisper() adds a line to the text of the trace, and doesn't change the hash.
  bool keeps_words() const { return keep_words_; }
  void whisper(const std::string& line) { keep(line); }
  std::uint64_t hash() const { return hash_; }
  const std::vector<std::string>& words() const { return words_; }
  std::uint64_t turns() const { return queue_.turns(); }
  void count(Happening happening) { ++happenings_[static_cast<std::size_t>(happening)]; }
  const Happenings& happenings() const { return happenings_; }

 private:
  void keep(const std::string& line);

  scale::EventQueue queue_{Instant(std::chrono::seconds(1000))};
  Random random_;
  const bool keep_words_;
  std::uint64_t hash_ = 0xcbf29ce484222325u;
  std::vector<std::string> words_;
  Happenings happenings_{};
};

}  // namespace disttrain::sim
