// What `top` has seen of the job during the last minute, one sample a second. A value.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tools/disttrain/json.h"

namespace disttrain::cli {

class TopHistory {
 public:
  static constexpr std::size_t kMost = 60;

  // Adds a status (docs/json.md). The status of another job clears the history. A job that has ended adds nothing.
  void add(const Json& status);
  // Adds a gap, where there was no answer.
  void miss();

  // Oldest first; NaN where nothing is known. examples_per_second() is the sum over all workers.
  const std::vector<double>& examples_per_second() const { return examples_per_second_; }
  const std::vector<double>& loss() const { return loss_; }
  // The same for one task; empty where it has none.
  const std::vector<double>& examples_per_second_of(const std::string& task) const;

 private:
  Json job_;  // its number
  std::vector<double> examples_per_second_;
  std::vector<double> loss_;
  std::map<std::string, std::vector<double>> tasks_;
};

}  // namespace disttrain::cli
