// A label with data.columns.NAME.normalise. The records of a batch have the values of the files. The loss of a step is
// that of normalised values, so that the model trains as well as with targets of mean 0 and deviation 1. Outputs of
// evaluations and predictions get the values' unit again, and so do those of which a step's metrics are computed.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "common/config/job_config.h"
#include "engine/records.h"

namespace disttrain::workerd {

class TargetScale {
 public:
  explicit TargetScale(const ModelSection& model) : mean_(model.target_mean), deviation_(model.target_deviation) {}

  bool is_plain() const { return mean_ == 0.0 && deviation_ == 1.0; }
  double mean() const { return mean_; }
  double deviation() const { return deviation_; }

  // The records with normalised targets. Valid until the next call.
  Records normalised(const Records& records) {
    if (is_plain()) return records;
    targets_.resize(records.targets.size());
    for (std::size_t i = 0; i < targets_.size(); ++i)
      targets_[i] = static_cast<float>((double{records.targets[i]} - mean_) / deviation_);
    Records scaled = records;
    scaled.targets = targets_;
    return scaled;
  }

  // Turns the model's outputs into values as the files have them.
  void undo(std::span<float> outputs) const {
    if (is_plain()) return;
    for (float& output : outputs) output = static_cast<float>(double{output} * deviation_ + mean_);
  }

 private:
  double mean_;
  double deviation_;
  std::vector<float> targets_;
};

}  // namespace disttrain::workerd
