// Which tensors an export of a checkpoint has: the state_dict of the job's step program, or all variables of another
// model.
#pragma once

#include <optional>
#include <vector>

#include "common/checkpoint/weights.h"
#include "common/checkpoint/weights_file.h"
#include "common/program/sidecar.h"
#include "common/result.h"

namespace disttrain::program {

// The tensors in the model's order, each with the dtype that the model gives it. `sidecar` is what kept_program()
// returns for the checkpoint. Fails with kData if the checkpoint lacks a variable, and with the errors of
// state_dict_of().
Result<std::vector<checkpoint::StoredTensor>> exported_tensors(const checkpoint::Weights& weights,
                                                               const std::optional<Sidecar>& sidecar);

}  // namespace disttrain::program
