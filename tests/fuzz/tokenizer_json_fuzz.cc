// Texts, and files tokenizer.json that turn them into tokens. Such a file begins with "{".
#include "tests/fuzz/tokens.h"

using namespace disttrain::input;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const TextAndFile input = divided(data, size, '{');
  const auto tokenizer = read_tokenizer_json(input.file);
  if (tokenizer) check_ids(**tokenizer, input);
  return 0;
}
