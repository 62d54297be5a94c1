// gzip and zstd. The content comes in small or large pieces.
#include "input/decompressor.h"
#include "tests/fuzz/fuzz.h"

using namespace disttrain::input;

namespace {

// libzstd allocates as much memory as a frame says that it needs. With the limit of workers, 128 MiB, AddressSanitizer
// would take 20 ms for each such input, and all other inputs would be too few.
constexpr int kMaxWindowBits = 17;
constexpr int kMaxSteps = 64;

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Compression compression = compression_of(bytes_of(data, size));
  if (compression == Compression::kNone) return 0;
  const std::size_t piece = size % 2 == 0 ? 7 : 4096;
  const auto decompressor = Decompressor::make(compression, kMaxWindowBits);
  auto in = bytes_of(data, size);
  const auto out = std::make_unique<std::byte[]>(piece);
  std::uint64_t all = 0;
  for (int i = 0; i < kMaxSteps || (piece == 7 && i < 8 * kMaxSteps); ++i) {
    const auto step = decompressor->step(in.first(std::min(in.size(), piece)), {out.get(), piece});
    DISTTRAIN_CHECK(step.taken <= in.size() && step.given <= piece);
    in = in.subspan(step.taken);
    all += step.given;
    if (step.problem || step.no_memory || (step.taken == 0 && step.given == 0)) break;
  }
  DISTTRAIN_CHECK(all <= size * largest_ratio(compression));
  return 0;
}
