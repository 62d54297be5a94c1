// The headers of safetensors files.
#include "common/checkpoint/safetensors.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_input.h"

using namespace disttrain::checkpoint;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  MemoryInput file(disttrain::input::bytes_of(data, size));
  const auto table = read_header(file, "fuzz");
  if (!table) return 0;
  std::uint64_t at = 0;
  for (const Tensor& tensor : table->tensors) {
    DISTTRAIN_CHECK_EQ(tensor.begin, at);
    DISTTRAIN_CHECK(tensor.end >= at);
    at = tensor.end;
  }
  DISTTRAIN_CHECK_EQ(table->data_begin + at, size);
  return 0;
}
