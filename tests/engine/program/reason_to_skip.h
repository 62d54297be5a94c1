// Whether the packages of tests/data/program run here.
#pragma once

#include <torch/headeronly/version.h>

#include <string>

namespace disttrain::workerd::test {

// The packages are for x86-64-v3 and one version of PyTorch: see tests/data/program/make.py. Empty: they run.
inline std::string reason_to_skip() {
  if (std::string(TORCH_VERSION).substr(0, 6) != "2.11.0")
    return "the packages are for PyTorch 2.11.0; run tests/data/program/make.py";
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("x86-64-v3")) return "the processor has no AVX2";
  return "";
}

}  // namespace disttrain::workerd::test
