#include "workerd/clip.h"

#include <cmath>

#include "common/doubles.h"

namespace disttrain::workerd {

void clip_to_norm(const Layout& layout, std::span<float> gradients, double limit) {
  const auto for_each_gradient = [&layout, gradients](const auto& body) {
    for (std::size_t v = 0; v < layout.model.variables.size(); ++v) {
      const VariableSpec& variable = layout.model.variables[v];
      if (variable.kind != VariableKind::kTrainable) continue;
      with_type(variable.dtype, [&]<typename T>(T) {
        for (T& g : values_in<T>(gradients.subspan(layout.variable_begins[v], word_count(variable)))) body(g);
      });
    }
  };
  double sum = 0.0;
  for_each_gradient([&sum](auto g) { sum += static_cast<double>(g) * static_cast<double>(g); });
  const double norm = std::sqrt(sum);
  if (!(norm > limit) || !std::isfinite(norm)) return;
  const double scale = limit / norm;
  for_each_gradient([scale]<typename T>(T& g) { g *= static_cast<T>(scale); });
}

}  // namespace disttrain::workerd
