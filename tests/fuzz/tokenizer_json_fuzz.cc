// Files tokenizer.json, and texts that they turn into tokens.
#include "tests/fuzz/tokens.h"

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto tokenizer = disttrain::input::read_tokenizer_json({reinterpret_cast<const char*>(data), size});
  if (tokenizer) disttrain::input::check_ids(**tokenizer);
  return 0;
}
