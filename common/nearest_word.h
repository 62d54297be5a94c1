// The known word that a user probably meant, for messages that ask "did you mean".
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace disttrain {

// Letters to insert, remove, change, or swap with their neighbour to turn one word into the other. Quadratic.
std::size_t edit_distance(const std::string& a, const std::string& b);

// The nearest candidate of which at most a third of the letters differ; "" = none. Words of more than 128 letters
// aren't compared.
std::string nearest_word(const std::string& word, const std::vector<std::string>& candidates);

}  // namespace disttrain
