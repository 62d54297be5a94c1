// Manifests of checkpoints. A manifest ends with a checksum, which no change of an input keeps, so the input is one
// without it, of an old version.
#include "common/checkpoint/manifest.h"

#include "tests/fuzz/fuzz.h"

using namespace disttrain::checkpoint;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto manifest = parse_manifest(std::string(reinterpret_cast<const char*>(data), size), "fuzz");
  if (!manifest) return 0;
  DISTTRAIN_CHECK(!manifest->shards.empty());
  (void)report_of(*manifest);
  return 0;
}
