// Every vector width that this CPU supports, beginning with the plain code without vectors.
#pragma once

#include <vector>

#include "common/update/vector_width.h"

namespace disttrain::update {

inline std::vector<VectorWidth> available_widths() {
  std::vector<VectorWidth> widths;
  for (VectorWidth width : {VectorWidth::kBaseline, VectorWidth::kAvx2})
    if (width <= best_vector_width()) widths.push_back(width);
  return widths;
}

}  // namespace disttrain::update
