// What `top` has seen of the job during the last minute, a sample a second. A value.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/disttrain/json.h"

namespace disttrain::cli {

class TopHistory {
 public:
  static constexpr std::size_t kMost = 60;

  // A status (docs/json.md). Of another job than the last: begins anew. One that has ended adds nothing.
  void add(const Json& status);
  // There was no answer.
  void miss();

  // Oldest first; NaN where nothing is known. Examples per second of all workers together, of the moment.
  const std::vector<double>& examples_per_second() const { return examples_per_second_; }
  const std::vector<double>& loss() const { return loss_; }
  // Of one task; empty where it has none.
  const std::vector<double>& examples_per_second_of(const std::string& task) const;

 private:
  Json job_;  // its number
  std::vector<double> examples_per_second_;
  std::vector<double> loss_;
  std::map<std::string, std::vector<double>> tasks_;
};

}  // namespace disttrain::cli
