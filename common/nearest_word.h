// What somebody meant who wrote a word that isn't known: for messages that ask "did you mean".
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace disttrain {

// Letters to insert, leave out, change, or swap with their neighbour until one word is the other. Quadratic.
std::size_t edit_distance(const std::string& a, const std::string& b);

// The candidate that `word` was most likely meant to be: at most a third of its letters differ. "" = none. Words of
// more than 128 letters are compared with nothing.
std::string nearest_word(const std::string& word, const std::vector<std::string>& candidates);

}  // namespace disttrain
