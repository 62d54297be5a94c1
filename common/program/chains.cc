#include "common/program/chains.h"

#include <algorithm>

namespace disttrain::program {

// The chains that begin at a thing are known when those of all things in it are, so this begins at the innermost ones.
Chains chains_of(const std::vector<std::uint32_t>& weights,
                 const std::vector<std::pair<std::uint32_t, std::uint32_t>>& inside) {
  const std::size_t count = weights.size();
  std::vector<std::uint32_t> awaited(count, 0);  // things in it whose chains aren't known
  std::vector<std::size_t> ends(count + 1, 0);   // of the things around it, in `around`
  for (const auto& [outer, inner] : inside) {
    ++awaited[outer];
    ++ends[inner + 1];
  }
  for (std::size_t i = 0; i < count; ++i) ends[i + 1] += ends[i];
  std::vector<std::uint32_t> around(inside.size());
  for (const auto& [outer, inner] : inside) around[ends[inner]++] = outer;
  std::vector<std::uint64_t> within(count, 0);  // the heaviest chain that begins in it
  std::vector<std::uint32_t> known;
  for (std::uint32_t i = 0; i < count; ++i)
    if (awaited[i] == 0) known.push_back(i);
  Chains chains;
  for (std::size_t k = 0; k < known.size(); ++k) {
    const std::uint32_t inner = known[k];
    const std::uint64_t heavy = within[inner] + weights[inner];
    chains.heaviest = std::max(chains.heaviest, heavy);
    for (std::size_t at = inner == 0 ? 0 : ends[inner - 1]; at < ends[inner]; ++at) {
      within[around[at]] = std::max(within[around[at]], heavy);
      if (--awaited[around[at]] == 0) known.push_back(around[at]);
    }
  }
  for (std::uint32_t i = 0; i < count; ++i)
    if (awaited[i] > 0) chains.endless += weights[i];
  return chains;
}

}  // namespace disttrain::program
