#include "common/update/vector_width.h"

namespace disttrain::update {

VectorWidth best_vector_width() {
  static const VectorWidth kBest = [] {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) return VectorWidth::kAvx2;
#endif
    return VectorWidth::kBaseline;
  }();
  return kBest;
}

}  // namespace disttrain::update
