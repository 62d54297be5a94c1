// csv files whose columns are numbers and a label.
#include "input/csv.h"

#include "tests/fuzz/fuzz.h"

using namespace disttrain::input;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  MemorySource source(bytes_of(data, size));
  const auto part = read_csv(source);
  if (!part) return 0;
  DISTTRAIN_CHECK_EQ(part->inputs.size(), part->records * part->columns);
  DISTTRAIN_CHECK_EQ(part->labels.numbers.size() + part->labels.codes.size(), part->records);
  return 0;
}
