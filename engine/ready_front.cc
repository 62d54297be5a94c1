#include "engine/ready_front.h"

#include <algorithm>
#include <numeric>

#include "common/check.h"

namespace disttrain::workerd {

ReadyFront::ReadyFront(const Layout& layout) {
  const std::size_t variables = layout.model.variables.size();
  std::vector<std::uint32_t> order(variables);
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&layout](std::uint32_t a, std::uint32_t b) {
    return layout.variable_begins[a] < layout.variable_begins[b];
  });
  place_of_.resize(variables);
  for (std::uint32_t variable : order) {
    place_of_[variable] = places_.size();
    places_.push_back({layout.variable_begins[variable], word_count(layout.model.variables[variable]), 0});
  }
}

void ReadyFront::begin(const RangeReady& ready) {
  for (Place& place : places_) place.final_words = 0;
  ready_ = &ready;
  place_ = 0;
  announced_ = 0;
}

void ReadyFront::final_until(std::uint32_t variable, std::uint64_t words) {
  Place& changed = places_[place_of_[variable]];
  DISTTRAIN_CHECK_LE(changed.final_words, words);
  DISTTRAIN_CHECK_LE(words, changed.words);
  changed.final_words = words;
  const std::uint64_t from = announced_;
  while (place_ < places_.size()) {
    const Place& place = places_[place_];
    announced_ = place.begin + place.final_words;
    if (place.final_words < place.words) break;
    ++place_;
  }
  if (announced_ > from && ready_ != nullptr && *ready_) (*ready_)(from, announced_);
}

void ReadyFront::final_whole(std::uint32_t variable) {
  final_until(variable, places_[place_of_[variable]].words);
}

}  // namespace disttrain::workerd
