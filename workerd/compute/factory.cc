#include "workerd/compute/factory.h"

#include <utility>

#include "workerd/compute/torch_model.h"

namespace disttrain::workerd {

Result<std::unique_ptr<Engine>> make_engine(const ModelSection& model, const std::string& device, std::uint32_t threads,
                                            Post post) {
  if (device != "cpu")
    return fail(ErrorCode::kConfig, "device \"" + device + "\" has no engine in this version; expected \"cpu\"");
  Result<std::unique_ptr<Computation>> computation = make_torch_model(model, threads);
  if (!computation) return tl::unexpected(computation.error());
  return make_compute_engine(std::move(*computation), std::move(post));
}

}  // namespace disttrain::workerd
