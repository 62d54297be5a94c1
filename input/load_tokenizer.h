// Reads the file of a tokenizer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/result.h"
#include "input/tokens/tokenizer.h"

namespace disttrain::input {

struct LoadedTokenizer {
  std::shared_ptr<const Tokenizer> tokenizer;
  std::uint64_t hash = 0;  // of the file
};

// The name of the file ends in ".json" (tokenizer.json of Hugging Face) or in ".model" (SentencePiece). `key` of
// job.toml names the file. Errors name both. kConfig: the name ends in another way. kNoInput, kNoPermission, kData: the
// file can't be read.
Result<LoadedTokenizer> load_tokenizer(const std::string& path, const std::string& key);

}  // namespace disttrain::input
