// columns.cbor, which a worker or a checkpoint brings.
#include <cmath>
#include <string>

#include "common/check.h"
#include "common/checkpoint/kept_columns.h"
#include "tests/fuzz/fuzz.h"

using namespace disttrain::checkpoint;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto columns = decode_columns(std::string(reinterpret_cast<const char*>(data), size), "fuzz");
  if (!columns) return 0;
  for (const KeptColumn& column : *columns) DISTTRAIN_CHECK(std::isfinite(column.mean) && column.deviation > 0.0);
  const auto again = decode_columns(encode_columns(*columns), "fuzz");
  DISTTRAIN_CHECK(again.has_value() && *again == *columns);
  return 0;
}
