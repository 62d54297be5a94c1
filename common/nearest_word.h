// Finds the known word that a user probably meant, for messages that ask "did you mean".
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace disttrain {

// Returns how many letters must be inserted, removed, changed, or swapped with a neighbour to turn one word into the
// other. Takes quadratic time.
std::size_t edit_distance(const std::string& a, const std::string& b);

// Returns the nearest candidate, or "" if none is near. A near candidate differs in at most two letters, or in at most
// a third of the letters if the word is long. Words of more than 128 letters aren't compared.
// Of very many candidates only the first are, so that the time is bounded: 50,000 if they have 10 letters.
std::string nearest_word(const std::string& word, const std::vector<std::string>& candidates);

}  // namespace disttrain
