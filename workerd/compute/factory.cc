#include "workerd/compute/factory.h"

#include "workerd/compute/torch_engine.h"

namespace disttrain::workerd {

Result<std::unique_ptr<Engine>> make_engine(const ModelSection& model, const std::string& device,
                                            std::uint32_t threads) {
  if (device != "cpu")
    return fail(ErrorCode::kConfig, "device \"" + device + "\" has no engine in this version; expected \"cpu\"");
  return make_torch_engine(model, threads);
}

}  // namespace disttrain::workerd
