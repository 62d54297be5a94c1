// The parts of a tokenizer.json that tokenizer_json.cc puts together. These functions throw nlohmann's exceptions if a
// value has another type than expected; read_tokenizer_json() catches them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "common/result.h"
#include "input/tokens/normaliser.h"
#include "input/tokens/pre_tokeniser.h"
#include "input/tokens/shown_name.h"

namespace disttrain::input {

using Json = nlohmann::json;

// The most parts of a file that lie inside each other.
inline constexpr int kMaxNesting = 16;

// `json` is the file's "normalizer" and isn't null.
Result<Normaliser> read_normaliser(const Json& json, int depth = 0);
// `json` is the file's "pre_tokenizer" and isn't null.
Result<PreTokeniser> read_pre_tokeniser(const Json& json, int depth = 0);

// The part of the file that isn't known here, as an error.
inline tl::unexpected<Error> unknown_part(const std::string& part, const std::string& name,
                                          const std::string& hint = "take another tokenizer") {
  return fail(ErrorCode::kData, part + " " + shown_name(name) + " isn't supported: " + hint);
}

// A boolean that may be left out.
inline bool flag(const Json& json, const char* key, bool otherwise) {
  const auto found = json.find(key);
  return found == json.end() || found->is_null() ? otherwise : found->get<bool>();
}
inline bool has(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && !found->is_null();
}

}  // namespace disttrain::input
