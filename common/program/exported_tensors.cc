#include "common/program/exported_tensors.h"

#include "common/program/kept_program.h"

namespace disttrain::program {

Result<std::vector<checkpoint::StoredTensor>> exported_tensors(const checkpoint::Weights& weights,
                                                               const std::optional<Sidecar>& sidecar) {
  std::vector<checkpoint::StoredTensor> tensors;
  if (!sidecar) {
    for (std::size_t v = 0; v < weights.variables().size(); ++v) {
      const checkpoint::Weights::Variable& variable = weights.variables()[v];
      tensors.push_back({variable.name, v, variable.dtype});
    }
    return tensors;
  }
  const auto entries = state_dict_of(*sidecar);
  if (!entries) return tl::unexpected(entries.error());
  for (const StateEntry& entry : *entries) {
    const std::optional<std::size_t> variable = weights.find(entry.variable);
    if (!variable)
      return fail(ErrorCode::kData,
                  weights.path() + " has no values of variable " + entry.variable + ": the checkpoint is damaged");
    tensors.push_back({entry.name, *variable, entry.dtype});
  }
  return tensors;
}

}  // namespace disttrain::program
