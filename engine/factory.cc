#include "engine/factory.h"

#include <utility>

#include "engine/pjrt/pjrt_program.h"
#include "engine/pjrt/stablehlo_package.h"
#include "engine/program/program.h"
#include "engine/torch_model.h"

namespace disttrain::workerd {
namespace {

constexpr std::string_view kPjrt = "pjrt:";

// The user must know which key named the file.
template <typename Value>
Result<Value> of_key(Result<Value> read) {
  if (!read) read.error().message.insert(0, "model.program: ");
  return read;
}

Result<std::unique_ptr<Computation>> make_on_plugin(const ModelSection& model, const std::string& device) {
  if (model.program.empty())
    return fail(ErrorCode::kConfig, "device \"" + device +
                                        "\" computes only models that disttrain.export_jax wrote, but the job has "
                                        "model.builtin = \"" +
                                        model.builtin + "\": set model.program, or use workers with device = \"cpu\"");
  Result<pjrt::StableHloModel> exported = of_key(pjrt::read_stablehlo_package(model.program));
  if (!exported) return tl::unexpected(exported.error());
  return pjrt::make_pjrt_program(device.substr(kPjrt.size()), std::move(*exported));
}

}  // namespace

Result<std::unique_ptr<Engine>> make_engine(const ModelSection& model, const std::string& device, std::uint32_t threads,
                                            Post post) {
  const bool is_on_plugin = device.starts_with(kPjrt);
  if (!is_on_plugin && device != "cpu")
    return fail(ErrorCode::kConfig,
                "device \"" + device + "\" has no engine in this version; expected \"cpu\" or \"pjrt:PLUGIN\"");
  Result<std::unique_ptr<Computation>> computation = is_on_plugin ? make_on_plugin(model, device)
                                                     : model.program.empty()
                                                         ? make_torch_model(model, threads)
                                                         : of_key(make_program(model.program, threads));
  if (!computation) return tl::unexpected(computation.error());
  if (Status sane = check_metrics((*computation)->describe().metrics); !sane) return tl::unexpected(sane.error());
  // The first computation of a program may take long: a plugin compiles it.
  const FirstComputation first = model.program.empty() ? FirstComputation::kShort : FirstComputation::kLong;
  return make_compute_engine(std::move(*computation), std::move(post), first);
}

}  // namespace disttrain::workerd
