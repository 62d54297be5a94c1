#include "engine/kernels.h"

namespace disttrain::workerd {

const Kernels* machine_kernels() {
  if (__builtin_cpu_supports("avx512f")) return &avx512_kernels();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return &avx2_kernels();
  return nullptr;
}

}  // namespace disttrain::workerd
