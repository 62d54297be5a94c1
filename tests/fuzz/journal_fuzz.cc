// Records of the chief's journal.
#include "chiefd/journal/codec.h"
#include "tests/fuzz/fuzz.h"

using namespace disttrain;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  (void)chiefd::decode_record(input::bytes_of(data, size));
  return 0;
}
