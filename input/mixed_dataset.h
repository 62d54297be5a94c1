// Mixes each training record with another one (data.mix): Zhang, Cisse, Dauphin & Lopez-Paz, "mixup: Beyond Empirical
// Risk Minimization" (ICLR 2018).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "common/model.h"
#include "common/result.h"
#include "input/dataset.h"

namespace disttrain::input {

// With which record a record is mixed: it becomes share * record + (1 - share) * other.
struct Mixture {
  std::uint64_t other = 0;
  float share = 1.0F;  // from Beta(mix, mix)
};

// A function of (seed, epoch, record). 0 < mix <= 1; `records` is the size of the data set.
Mixture draw_mixture(double mix, const Draw& draw, std::uint64_t record, std::uint64_t records);

// Checks that a model can be trained on mixed records: its inputs are floats, and its labels are targets or one float
// for each class. `is_builtin` says whether it is a builtin model, for the advice of an error. Errors: kConfig.
Status can_mix(const Dataset& dataset, const std::vector<ColumnSpec>& columns, bool is_builtin);

// The records of `dataset`, mixed if Draw::is_training. So a batch is read from twice as many records.
std::unique_ptr<Dataset> make_mixed_dataset(std::unique_ptr<Dataset> dataset, double mix);

}  // namespace disttrain::input
