// Texts, and SentencePiece models that turn them into tokens. A model begins with "\n", the tag of its first piece.
#include "tests/fuzz/tokens.h"

using namespace disttrain::input;

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const TextAndFile input = divided(data, size, '\n');
  const auto tokenizer = read_sentencepiece_model(input.file);
  if (tokenizer) check_ids(**tokenizer, input);
  return 0;
}
