// Headers and values of npy files.
#include "input/npy.h"

#include "tests/fuzz/fuzz.h"

using namespace disttrain::input;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  MemorySource source(bytes_of(data, size));
  const auto header = read_npy_header(source);
  if (!header) return 0;
  const auto array = read_array(source, *header);
  if (!array) return 0;
  whole_numbers(*array);
  std::vector<double> values(array->rows() * array->row_elements());
  static_cast<void>(write_as(disttrain::DType::kFloat64, *array, std::as_writable_bytes(std::span(values))));
  return 0;
}
