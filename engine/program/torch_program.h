// What compiled programs and TorchScript have in common: the package, the checks on a batch, and the results.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/program/package.h"
#include "engine/computation.h"
#include "engine/program/libtorch.h"

namespace disttrain::workerd {

class TorchProgram : public Computation {
 public:
  const ModelSpec& describe() const override { return sidecar_.model; }
  Status takes(Program program, std::uint64_t examples) const override;
  Result<std::vector<float>> initial_values() override { return package_->initial_values(layout_); }

 protected:
  TorchProgram(std::shared_ptr<program::Package> package, std::uint32_t threads)
      : package_(std::move(package)), sidecar_(package_->sidecar()), threads_(threads) {}

  // Calls use(columns), with a tensor for each of the columns that the program takes, after prepare_libtorch(). Turns
  // the exceptions of libtorch into errors. `doing` is "computing a step".
  template <typename Use>
  Result<EngineOutput> run(const std::string& program, const char* doing, const Batch& batch, const StepSeed& seed,
                           const Use& use) {
    const Result<const program::SidecarProgram*> found = find(program, doing, batch);
    if (!found) return tl::unexpected(found.error());
    return guarded<Result<EngineOutput>>(package_->path() + ": " + doing, [&]() -> Result<EngineOutput> {
      prepare_libtorch(threads_, seed);
      return use(columns_of(**found, batch));
    });
  }

  // The output of a step or an evaluation. `metrics`: the accumulators, float64. The span in it is valid until the next
  // call.
  EngineOutput scored(double loss_sum, const at::Tensor& metrics, const Batch& batch);
  // The output of a prediction, as scored().
  EngineOutput predicted(const at::Tensor& outputs, const Batch& batch);

  const std::shared_ptr<program::Package> package_;
  const program::Sidecar& sidecar_;
  Layout layout_;  // set by open()

 private:
  Result<const program::SidecarProgram*> find(const std::string& program, const char* doing, const Batch& batch) const;
  std::vector<at::Tensor> columns_of(const program::SidecarProgram& program, const Batch& batch) const;

  const std::uint32_t threads_;
  // Results that the caller may look at until the next call.
  std::vector<double> metrics_;
  at::Tensor outputs_;
};

}  // namespace disttrain::workerd
