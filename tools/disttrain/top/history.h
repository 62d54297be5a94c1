// Keeps the figures of a job from the last minute for `top`, one sample per second.
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
  // Adds a gap, because the chief didn't answer.
  void miss();

  // Both return the samples, oldest first; a gap is NaN. examples_per_second() is the sum of all workers.
  const std::vector<double>& examples_per_second() const { return examples_per_second_; }
  const std::vector<double>& loss() const { return loss_; }
  // Returns the samples of one task, or none if there are none.
  const std::vector<double>& examples_per_second_of(const std::string& task) const;

 private:
  Json job_;  // the job's number
  std::vector<double> examples_per_second_;
  std::vector<double> loss_;
  std::map<std::string, std::vector<double>> tasks_;
};

}  // namespace disttrain::cli
