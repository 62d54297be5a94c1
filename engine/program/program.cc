#include "engine/program/program.h"

#include <algorithm>

#include "common/checkpoint/disk_files.h"
#include "common/program/package.h"
#include "engine/program/libtorch.h"
#include "engine/program/pt2.h"
#include "engine/program/torchscript.h"
#include "engine/torch_options.h"

namespace disttrain::workerd {
namespace {

checkpoint::Files& disk() {
  static checkpoint::DiskFiles files;
  return files;
}

}  // namespace

Result<std::unique_ptr<Computation>> make_program(const std::string& path, std::uint32_t threads) {
  Result<program::Package> package = program::Package::open(disk(), path);
  if (!package) return tl::unexpected(package.error());
  const program::Sidecar& sidecar = package->sidecar();
  if (sidecar.kind == program::Kind::kStableHlo)
    return fail(ErrorCode::kConfig, path +
                                        " was exported from JAX, and this worker's device is \"cpu\"; set device = "
                                        "\"pjrt:/path/plugin.so\" in cluster.toml, or give `disttrain predict` "
                                        "--device pjrt:/path/plugin.so");
  if (sidecar.library != "torch" || sidecar.library_version != libtorch_version())
    return fail(ErrorCode::kConfig, path + " was exported with " + sidecar.library + " " + sidecar.library_version +
                                        ", and this worker has torch " + libtorch_version() +
                                        "; export the model again with torch==" + libtorch_version());
  keep_freed_memory();
  auto shared = std::make_shared<program::Package>(std::move(*package));
  return shared->sidecar().kind == program::Kind::kTorchScript ? make_torchscript(shared, threads)
                                                               : make_pt2(shared, threads);
}

}  // namespace disttrain::workerd
