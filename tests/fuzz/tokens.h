// The fuzz targets of tokenizers share these functions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/check.h"
#include "tests/fuzz/fuzz.h"
#include "workerd/input/tokens/tokenizer.h"

namespace disttrain::input {

// Each text either fails or gives ids below the tokenizer's size.
inline void check_ids(const Tokenizer& tokenizer) {
  for (const char* text :
       {"", " ", "The quick  brown fox's 12345\n\n  jumps! ", "Größe 狐狸 😀 <mask>[SEP]<sep>", "\xff"}) {
    std::vector<std::int32_t> ids;
    if (!tokenizer.encode(text, ids)) continue;
    for (const std::int32_t id : ids) {
      DISTTRAIN_CHECK_LE(0, id);
      DISTTRAIN_CHECK_LT(std::int64_t{id}, tokenizer.size());
    }
  }
}

}  // namespace disttrain::input
