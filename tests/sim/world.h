// Virtual time, one seed, and everything that happens in one order. Nothing in here or on top of it asks a clock, a
// thread or chance of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/random.h"
#include "common/time.h"
#include "tests/sim/happenings.h"

namespace disttrain::sim {

class World {
 public:
  // keep_words: the trace is kept in words, too.
  World(std::uint64_t seed, bool keep_words) : random_(seed), keep_words_(keep_words) {}

  Instant now() const { return now_; }
  Random& random() { return random_; }
  bool chance(std::uint64_t per_thousand) { return random_.below(1000) < per_thousand; }
  // Between the two, both included.
  Duration between(Duration shortest, Duration longest) {
    return shortest + Duration(static_cast<std::int64_t>(
                          random_.below(static_cast<std::uint64_t>((longest - shortest).count()) + 1)));
  }

  void after(Duration delay, std::function<void()> work);
  // The next thing that is due; false: there is none before `end`.
  bool turn(Instant end);

  // One line of the story.
  void tell(const std::string& line);
  // What only words have room for; the hash doesn't.
  bool keeps_words() const { return keep_words_; }
  void whisper(const std::string& line) { keep(line); }
  std::uint64_t hash() const { return hash_; }
  const std::vector<std::string>& words() const { return words_; }
  std::uint64_t turns() const { return turns_; }
  void count(Happening happening) { ++happenings_[static_cast<std::size_t>(happening)]; }
  const Happenings& happenings() const { return happenings_; }

 private:
  struct Due {
    Instant at;
    std::uint64_t number = 0;  // in order of being set off, of what is due at one time
    std::function<void()> work;
  };
  static bool is_later(const Due& a, const Due& b) { return a.at != b.at ? a.at > b.at : a.number > b.number; }
  void keep(const std::string& line);

  Instant now_{std::chrono::seconds(1000)};
  Random random_;
  const bool keep_words_;
  std::uint64_t last_ = 0;
  std::uint64_t turns_ = 0;
  std::vector<Due> queue_;  // a heap, the next first
  std::uint64_t hash_ = 0xcbf29ce484222325u;
  std::vector<std::string> words_;
  Happenings happenings_{};
};

}  // namespace disttrain::sim
