// What somebody meant who wrote a word that isn't known: for messages that ask "did you mean".
#pragma once

#include <string>
#include <vector>

namespace disttrain {

// The candidate that `word` was most likely meant to be: at most a third of its letters differ. "" = none. Words of
// more than 128 letters are compared with nothing.
std::string nearest_word(const std::string& word, const std::vector<std::string>& candidates);

}  // namespace disttrain
