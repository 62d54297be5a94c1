// gzip and zstd. The content comes in small or large pieces.
#include "tests/fuzz/fuzz.h"
#include "workerd/input/decompressor.h"

using namespace disttrain::input;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Compression compression = compression_of(bytes_of(data, size));
  if (compression == Compression::kNone) return 0;
  const std::size_t piece = size % 2 == 0 ? 7 : 4096;
  const auto decompressor = Decompressor::make(compression);
  auto in = bytes_of(data, size);
  const auto out = std::make_unique<std::byte[]>(piece);
  std::uint64_t all = 0;
  while (all < 1 << 18) {
    const auto step = decompressor->step(in.first(std::min(in.size(), piece)), {out.get(), piece});
    DISTTRAIN_CHECK(step.taken <= in.size() && step.given <= piece);
    in = in.subspan(step.taken);
    all += step.given;
    if (step.problem || step.no_memory || (step.taken == 0 && step.given == 0)) break;
  }
  DISTTRAIN_CHECK(all <= size * largest_ratio(compression));
  return 0;
}
