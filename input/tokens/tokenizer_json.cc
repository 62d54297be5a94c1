// Reads a tokenizer.json. The parts "decoder", "truncation" and "padding" don't matter to the ids of a text: a column's
// keys length, pad and truncate take their place.
//
// An unknown part of the file is an error, because other tokens would train a model without any sign of the mistake.
#include <algorithm>
#include <limits>
#include <utility>

#include "common/bounded_json.h"
#include "input/tokens/bpe.h"
#include "input/tokens/json_parts.h"
#include "input/tokens/tokenizer.h"
#include "input/tokens/unigram.h"
#include "input/tokens/wordpiece.h"

namespace disttrain::input {

namespace {

constexpr std::int64_t kMaxId = 1 << 24;
constexpr std::size_t kMaxParts = 256;
// Of objects and arrays: a part takes two levels.
constexpr int kMaxFileNesting = 2 * kMaxNesting + 8;

tl::unexpected<Error> corrupt(const std::string& what) {
  return fail(ErrorCode::kData, what + ": fetch the file again");
}

Result<std::int32_t> read_id(const Json& json) {
  const std::int64_t id = json.is_number_integer() ? json.get<std::int64_t>() : -1;
  if (id < 0 || id >= kMaxId)
    return corrupt("a token has the id " + (json.is_number() ? json.dump() : json.type_name()) + ", expected 0 to " +
                   std::to_string(kMaxId - 1));
  return static_cast<std::int32_t>(id);
}

Result<Vocabulary> read_vocabulary(const Json& json, std::int32_t& largest) {
  Vocabulary vocabulary;
  vocabulary.reserve(json.size());
  for (const auto& [piece, number] : json.get_ref<const Json::object_t&>()) {
    const Result<std::int32_t> id = read_id(number);
    if (!id) return tl::unexpected(id.error());
    largest = std::max(largest, *id);
    vocabulary.emplace(piece, *id);
  }
  return vocabulary;
}

// See Trie.
Status check_piece(const std::string& piece) {
  if (piece.size() <= kMaxPieceBytes) return {};
  return fail(ErrorCode::kData, "a token has " + std::to_string(piece.size()) + " bytes, expected at most " +
                                    std::to_string(kMaxPieceBytes) + ": take another tokenizer");
}

// The number of parts that a normalizer or pre_tokenizer consists of. The nesting of the file bounds the recursion.
std::size_t parts_in(const Json& json) {
  std::size_t parts = json.is_object() && json.contains("type") ? 1 : 0;
  if (json.is_structured())
    for (const Json& inner : json) parts += parts_in(inner);
  return parts;
}

Status check_parts(const Json& json, const char* what) {
  const std::size_t parts = parts_in(json);
  if (parts <= kMaxParts) return {};
  return fail(ErrorCode::kData, std::string(what) + " has " + std::to_string(parts) + " parts, expected at most " +
                                    std::to_string(kMaxParts) + ": take another tokenizer");
}

Result<std::int32_t> id_of(const Vocabulary& vocabulary, const std::string& piece, const std::string& what) {
  const auto found = vocabulary.find(piece);
  if (found == vocabulary.end()) return corrupt(what + " " + shown_name(piece) + " isn't in the vocabulary");
  return found->second;
}

using Model = Result<std::unique_ptr<TokenModel>>;

Status add_merges(const Json& merges, const Vocabulary& vocabulary, Bpe& bpe) {
  std::uint32_t rank = 0;
  for (const Json& merge : merges) {
    std::string left;
    std::string right;
    if (merge.is_string()) {
      const auto& both = merge.get_ref<const std::string&>();
      const std::size_t blank = both.find(' ');
      if (blank == std::string::npos || both.find(' ', blank + 1) != std::string::npos)
        return corrupt("the merge " + shown_name(both) + " doesn't consist of two pieces");
      left = both.substr(0, blank);
      right = both.substr(blank + 1);
    } else {
      left = merge.at(0);
      right = merge.at(1);
    }
    const Result<std::int32_t> ids[] = {id_of(vocabulary, left, "the merge's piece"),
                                        id_of(vocabulary, right, "the merge's piece"),
                                        id_of(vocabulary, left + right, "the merged piece")};
    for (const Result<std::int32_t>& id : ids)
      if (!id) return tl::unexpected(id.error());
    bpe.add_merge(*ids[0], *ids[1], rank++, *ids[2]);
  }
  return {};
}

Model read_bpe(const Json& json, std::int32_t& largest) {
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (has(json, key) && !json.at(key).get<std::string>().empty())
      return unknown_part("model: " + std::string(key), json.at(key).get<std::string>());
  if (has(json, "dropout") && json.at("dropout").get<double>() != 0.0)
    return unknown_part("model: dropout", json.at("dropout").dump());
  Result<Vocabulary> vocabulary = read_vocabulary(json.at("vocab"), largest);
  if (!vocabulary) return tl::unexpected(vocabulary.error());
  BpeOptions options{.vocabulary = *vocabulary,
                     .unknown = std::nullopt,
                     .fuses_unknown = flag(json, "fuse_unk", false),
                     .falls_back_to_bytes = flag(json, "byte_fallback", false),
                     .ignores_merges = flag(json, "ignore_merges", false)};
  if (has(json, "unk_token")) {
    const Result<std::int32_t> unknown = id_of(*vocabulary, json.at("unk_token"), "model: unk_token");
    if (!unknown) return tl::unexpected(unknown.error());
    options.unknown = *unknown;
  }
  auto bpe = std::make_unique<Bpe>(std::move(options));
  if (Status ok = add_merges(json.at("merges"), *vocabulary, *bpe); !ok) return tl::unexpected(std::move(ok.error()));
  return bpe;
}

Model read_wordpiece(const Json& json, std::int32_t& largest) {
  Result<Vocabulary> vocabulary = read_vocabulary(json.at("vocab"), largest);
  if (!vocabulary) return tl::unexpected(vocabulary.error());
  const Result<std::int32_t> unknown = id_of(*vocabulary, json.at("unk_token"), "model: unk_token");
  if (!unknown) return tl::unexpected(unknown.error());
  const Json& most = json.at("max_input_chars_per_word");
  for (const auto& [piece, id] : *vocabulary)
    if (Status ok = check_piece(piece); !ok) return tl::unexpected(std::move(ok.error()));
  if (!most.is_number_unsigned()) return corrupt("model: max_input_chars_per_word isn't a whole number");
  return std::make_unique<WordPiece>(WordPieceOptions{.vocabulary = std::move(*vocabulary),
                                                      .unknown = *unknown,
                                                      .prefix = json.at("continuing_subword_prefix").get<std::string>(),
                                                      .most_characters = most.get<std::size_t>()});
}

Model read_unigram(const Json& json, std::int32_t& largest) {
  UnigramOptions options;
  Vocabulary vocabulary;
  options.smallest_score = std::numeric_limits<double>::max();
  for (const Json& piece : json.at("vocab")) {
    const auto& text = piece.at(0).get_ref<const std::string&>();
    const auto score = piece.at(1).get<double>();
    if (static_cast<std::int64_t>(options.scores.size()) == kMaxId) return corrupt("the vocabulary is too large");
    const auto id = static_cast<std::int32_t>(options.scores.size());
    if (Status ok = check_piece(text); !ok) return tl::unexpected(std::move(ok.error()));
    if (!text.empty()) options.pieces.add(text, id);
    vocabulary[text] = id;
    options.scores.push_back(score);
    options.smallest_score = std::min(options.smallest_score, score);
  }
  if (options.scores.empty()) return corrupt("model: the vocabulary is empty");
  largest = std::max(largest, static_cast<std::int32_t>(options.scores.size()) - 1);
  if (has(json, "unk_id")) {
    const Result<std::int32_t> unknown = read_id(json.at("unk_id"));
    if (!unknown) return tl::unexpected(unknown.error());
    if (*unknown > largest) return corrupt("model: unk_id isn't in the vocabulary");
    options.unknown = *unknown;
  }
  if (flag(json, "byte_fallback", false)) options.bytes = ByteTokens::of(vocabulary);
  return std::make_unique<Unigram>(std::move(options));
}

Model read_model(const Json& json, std::int32_t& largest) {
  // Old files of BPE have no type.
  const std::string type = has(json, "type") ? json.at("type").get<std::string>() : "BPE";
  if (type == "BPE") return read_bpe(json, largest);
  if (type == "WordPiece") return read_wordpiece(json, largest);
  if (type == "Unigram") return read_unigram(json, largest);
  return unknown_part("model", type);
}

Status read_added(const Json& json, TokenizerParts& parts) {
  for (const Json& entry : json) {
    const Result<std::int32_t> id = read_id(entry.at("id"));
    if (!id) return tl::unexpected(id.error());
    AddedToken token{.id = *id,
                     .text = entry.at("content"),
                     .strips_left = flag(entry, "lstrip", false),
                     .strips_right = flag(entry, "rstrip", false)};
    if (flag(entry, "single_word", false)) return unknown_part("added_tokens: single_word of", token.text);
    if (token.text.empty()) continue;
    if (Status ok = check_piece(token.text); !ok) return ok;
    parts.largest = std::max(parts.largest, *id);
    if (!flag(entry, "normalized", true)) {
      parts.added.add(std::move(token));
      continue;
    }
    TextBudget budget(token.text.size());
    Word text{std::move(token.text), false};
    if (parts.normalise)
      if (Status ok = parts.normalise(text, budget); !ok) return ok;
    token.text = std::move(text.text);
    if (Status ok = check_piece(token.text); !ok) return ok;
    if (!token.text.empty()) parts.added_normalised.add(std::move(token));
  }
  return {};
}

Status read_template(const Json& json, TokenizerParts& parts) {
  std::vector<std::int32_t> before;
  std::vector<std::int32_t> after;
  bool is_after = false;
  for (const Json& item : json.at("single")) {
    if (item.contains("Sequence")) {
      if (std::exchange(is_after, true)) return unknown_part("post_processor", "TemplateProcessing with two texts");
      continue;
    }
    const std::string name = item.at("SpecialToken").at("id");
    for (const Json& number : json.at("special_tokens").at(name).at("ids")) {
      const Result<std::int32_t> id = read_id(number);
      if (!id) return tl::unexpected(id.error());
      (is_after ? after : before).push_back(*id);
    }
  }
  parts.before.insert(parts.before.begin(), before.begin(), before.end());
  parts.after.insert(parts.after.end(), after.begin(), after.end());
  return {};
}

Status read_post_processor(const Json& json, TokenizerParts& parts, int depth = 0) {
  if (depth > kMaxNesting) return fail(ErrorCode::kData, "post_processor: too many parts inside each other");
  const std::string type = json.at("type");
  if (type == "ByteLevel") return {};  // it changes offsets alone
  if (type == "TemplateProcessing") return read_template(json, parts);
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    const Result<std::int32_t> first = read_id(json.at("cls").at(1));
    const Result<std::int32_t> last = read_id(json.at("sep").at(1));
    if (!first) return tl::unexpected(first.error());
    if (!last) return tl::unexpected(last.error());
    parts.before.insert(parts.before.begin(), *first);
    parts.after.push_back(*last);
    return {};
  }
  if (type != "Sequence") return unknown_part("post_processor", type);
  for (const Json& step : json.at("processors"))
    if (Status ok = read_post_processor(step, parts, depth + 1); !ok) return ok;
  return {};
}

Result<TokenizerParts> read_parts(const Json& json) {
  TokenizerParts parts;
  Model model = read_model(json.at("model"), parts.largest);
  if (!model) return tl::unexpected(model.error());
  parts.model = std::move(*model);
  if (has(json, "normalizer")) {
    if (Status ok = check_parts(json.at("normalizer"), "normalizer"); !ok) return tl::unexpected(std::move(ok.error()));
    Result<Normaliser> normaliser = read_normaliser(json.at("normalizer"));
    if (!normaliser) return tl::unexpected(normaliser.error());
    parts.normalise = in_sequence({std::move(*normaliser)});  // checks how much longer a text becomes
  }
  if (has(json, "pre_tokenizer")) {
    if (Status ok = check_parts(json.at("pre_tokenizer"), "pre_tokenizer"); !ok)
      return tl::unexpected(std::move(ok.error()));
    Result<PreTokeniser> cut = read_pre_tokeniser(json.at("pre_tokenizer"));
    if (!cut) return tl::unexpected(cut.error());
    parts.cut = in_sequence({std::move(*cut)});
  }
  if (has(json, "added_tokens"))
    if (Status ok = read_added(json.at("added_tokens"), parts); !ok) return tl::unexpected(std::move(ok.error()));
  if (has(json, "post_processor"))
    if (Status ok = read_post_processor(json.at("post_processor"), parts); !ok)
      return tl::unexpected(std::move(ok.error()));
  for (const auto* ids : {&parts.before, &parts.after})
    for (const std::int32_t id : *ids) parts.largest = std::max(parts.largest, id);
  return parts;
}

}  // namespace

Result<std::shared_ptr<const Tokenizer>> read_tokenizer_json(std::string_view text) {
  try {
    const Json json = parse_bounded_json(text, kMaxFileNesting);
    if (json.is_discarded())
      return fail(ErrorCode::kData, "isn't JSON, or has more than " + std::to_string(kMaxFileNesting) +
                                        " levels; expected a tokenizer.json as the library tokenizers writes it: fetch "
                                        "the file again, or take another tokenizer");
    Result<TokenizerParts> parts = read_parts(json);
    if (!parts) return tl::unexpected(std::move(parts.error()));
    return std::make_shared<const Tokenizer>(std::move(*parts));
  } catch (const Json::exception& error) {
    return fail(ErrorCode::kData, std::string("isn't a tokenizer.json as the library tokenizers writes it (") +
                                      error.what() + "): fetch the file again, or take another tokenizer");
  }
}

}  // namespace disttrain::input
