// The result of an evaluation has this hash. It shows whether two runs have the same parameters without sending them.
// One test compares the hashes: a synchronous cluster must compute exactly the same as one process.
#include "workerd/parameters_hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "common/check.h"

namespace disttrain::workerd {

std::uint64_t hash_of_parameters(const Layout& layout, std::span<const float> parameters) {
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  for (std::size_t v = 0; v < layout.model.variables.size(); ++v) {
    const std::uint64_t words = word_count(layout.model.variables[v]);
    const std::span<const float> variable = parameters.subspan(layout.variable_begins[v], words);
    DISTTRAIN_CHECK(XXH3_64bits_update(&state, variable.data(), variable.size_bytes()) == XXH_OK);
  }
  return XXH3_64bits_digest(&state);
}

}  // namespace disttrain::workerd
