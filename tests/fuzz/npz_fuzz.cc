// Zip files of npy files.
#include "input/npz.h"

#include "tests/fuzz/fuzz.h"

using namespace disttrain::input;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static_cast<void>(read_npz_from(bytes_of(data, size), "fuzz", {}));
  return 0;
}
