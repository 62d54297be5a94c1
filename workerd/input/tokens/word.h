// A part of a text on its way to the model.
#pragma once

#include <string>

namespace disttrain::input {

struct Word {
  std::string text;
  bool is_first = false;  // it begins where the whole text begins
};

}  // namespace disttrain::input
