// Reads a SentencePiece model: a message ModelProto of sentencepiece_model.proto
// (https://github.com/google/sentencepiece/blob/master/src/sentencepiece_model.proto).
#include <algorithm>
#include <limits>
#include <map>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <utility>

#include "input/tokens/bpe.h"
#include "input/tokens/tokenizer.h"
#include "input/tokens/unicode.h"
#include "input/tokens/unigram.h"

namespace disttrain::input {

namespace {

constexpr std::size_t kMaxPieces = 1 << 24;

enum PieceKind { kNormal = 1, kUnknownPiece = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };
enum ModelKind { kUnigramModel = 1, kBpeModel = 2, kWordModel = 3, kCharModel = 4 };

struct Piece {
  std::string text;
  float score = 0.0F;
  int kind = kNormal;
};

struct ModelFile {
  std::vector<Piece> pieces;
  int kind = kUnigramModel;
  bool falls_back_to_bytes = false;
  bool has_suffix_whitespace = false;
  std::string charsmap;
  SentencePieceNormalising normalising;
};

// Whether the field has this number and type. protozero ends the process if a field is read as another type, and its
// get_bool() may read behind the message.
bool is_field(const protozero::pbf_reader& message, protozero::pbf_tag_type number, protozero::pbf_wire_type type) {
  return message.tag() == number && message.wire_type() == type;
}

Piece read_piece(protozero::pbf_reader message) {
  Piece piece;
  while (message.next()) {
    if (is_field(message, 1, protozero::pbf_wire_type::length_delimited))
      piece.text = message.get_string();
    else if (is_field(message, 2, protozero::pbf_wire_type::fixed32))
      piece.score = message.get_float();
    else if (is_field(message, 3, protozero::pbf_wire_type::varint))
      piece.kind = message.get_enum();
    else
      message.skip();
  }
  return piece;
}

void read_trainer(protozero::pbf_reader message, ModelFile& file) {
  while (message.next()) {
    if (is_field(message, 3, protozero::pbf_wire_type::varint))
      file.kind = message.get_enum();
    else if (is_field(message, 24, protozero::pbf_wire_type::varint))
      file.has_suffix_whitespace = message.get_uint64() != 0;
    else if (is_field(message, 35, protozero::pbf_wire_type::varint))
      file.falls_back_to_bytes = message.get_uint64() != 0;
    else
      message.skip();
  }
}

void read_normalizer(protozero::pbf_reader message, ModelFile& file) {
  while (message.next()) {
    if (is_field(message, 2, protozero::pbf_wire_type::length_delimited))
      file.charsmap = message.get_string();
    else if (is_field(message, 3, protozero::pbf_wire_type::varint))
      file.normalising.adds_dummy_prefix = message.get_uint64() != 0;
    else if (is_field(message, 4, protozero::pbf_wire_type::varint))
      file.normalising.removes_extra_whitespaces = message.get_uint64() != 0;
    else if (is_field(message, 5, protozero::pbf_wire_type::varint))
      file.normalising.escapes_whitespaces = message.get_uint64() != 0;
    else
      message.skip();
  }
}

ModelFile read_file(std::string_view bytes) {
  ModelFile file;
  protozero::pbf_reader message(protozero::data_view(bytes.data(), bytes.size()));
  while (message.next()) {
    if (is_field(message, 1, protozero::pbf_wire_type::length_delimited))
      file.pieces.push_back(read_piece(message.get_message()));
    else if (is_field(message, 2, protozero::pbf_wire_type::length_delimited))
      read_trainer(message.get_message(), file);
    else if (is_field(message, 3, protozero::pbf_wire_type::length_delimited))
      read_normalizer(message.get_message(), file);
    else
      message.skip();
  }
  return file;
}

Status check(const ModelFile& file) {
  const auto refuse = [](const std::string& what) {
    return fail(ErrorCode::kData, what + ": fetch the file again, or take another model");
  };
  if (file.kind != kUnigramModel && file.kind != kBpeModel)
    return refuse("model_type " + std::to_string(file.kind) + " isn't supported, only unigram (1) and bpe (2)");
  if (file.has_suffix_whitespace) return refuse("treat_whitespace_as_suffix isn't supported");
  if (file.pieces.empty() || file.pieces.size() > kMaxPieces)
    return refuse("the model has " + std::to_string(file.pieces.size()) + " pieces, expected 1 to " +
                  std::to_string(kMaxPieces));
  for (std::size_t i = 0; i < file.pieces.size(); ++i) {
    const Piece& piece = file.pieces[i];
    const bool is_text = !piece.text.empty() && piece.text.size() <= kMaxPieceBytes && !find_invalid(piece.text);
    if (!is_text || piece.kind < kNormal || piece.kind > kByte || !(std::abs(piece.score) < 1e30F))
      return refuse("the piece " + std::to_string(i) + " of the model is corrupt");
  }
  const auto is_unknown = [](const Piece& piece) { return piece.kind == kUnknownPiece; };
  if (std::count_if(file.pieces.begin(), file.pieces.end(), is_unknown) != 1)
    return refuse("the model has no piece for unknown characters, or several");
  return {};
}

std::int32_t unknown_of(const ModelFile& file) {
  for (std::size_t i = 0; i < file.pieces.size(); ++i)
    if (file.pieces[i].kind == kUnknownPiece) return static_cast<std::int32_t>(i);
  return 0;
}

// Two pieces can be merged if both together are a piece. A piece with a higher score is merged first.
void add_merges(const ModelFile& file, const Vocabulary& vocabulary, Bpe& bpe) {
  std::map<float, std::uint32_t, std::greater<>> ranks;
  for (const Piece& piece : file.pieces) ranks.emplace(piece.score, 0);
  std::uint32_t next = 0;
  for (auto& [score, rank] : ranks) rank = next++;
  for (std::size_t i = 0; i < file.pieces.size(); ++i) {
    const Piece& piece = file.pieces[i];
    if (piece.kind != kNormal) continue;
    const std::string_view text = piece.text;
    for (std::size_t at = character_bytes(text, 0); at < text.size(); at += character_bytes(text, at)) {
      const auto left = vocabulary.find(text.substr(0, at));
      const auto right = vocabulary.find(text.substr(at));
      if (left != vocabulary.end() && right != vocabulary.end())
        bpe.add_merge(left->second, right->second, ranks[piece.score], static_cast<std::int32_t>(i));
    }
  }
}

std::unique_ptr<TokenModel> make_bpe(const ModelFile& file, AddedTokens& added) {
  Vocabulary vocabulary;
  for (std::size_t i = 0; i < file.pieces.size(); ++i) {
    const Piece& piece = file.pieces[i];
    const auto id = static_cast<std::int32_t>(i);
    if (piece.kind == kNormal || (piece.kind == kByte && file.falls_back_to_bytes)) vocabulary[piece.text] = id;
    if (piece.kind == kUserDefined) added.add({.id = id, .text = piece.text});
  }
  auto bpe = std::make_unique<Bpe>(BpeOptions{.vocabulary = vocabulary,
                                              .unknown = unknown_of(file),
                                              .fuses_unknown = true,
                                              .falls_back_to_bytes = file.falls_back_to_bytes});
  add_merges(file, vocabulary, *bpe);
  return bpe;
}

std::unique_ptr<TokenModel> make_unigram(const ModelFile& file) {
  UnigramOptions options;
  options.adds_as_float = true;
  options.unknown = unknown_of(file);
  options.smallest_score = std::numeric_limits<float>::max();
  Vocabulary bytes;
  double largest = std::numeric_limits<float>::lowest();
  for (const Piece& piece : file.pieces) {
    if (piece.kind != kNormal) continue;
    options.smallest_score = std::min(options.smallest_score, double{piece.score});
    largest = std::max(largest, double{piece.score});
  }
  for (std::size_t i = 0; i < file.pieces.size(); ++i) {
    const Piece& piece = file.pieces[i];
    const auto id = static_cast<std::int32_t>(i);
    options.scores.push_back(piece.score);
    if (piece.kind == kNormal || piece.kind == kUserDefined) options.pieces.add(piece.text, id);
    if (piece.kind == kByte) bytes[piece.text] = id;
    // sentencepiece's score of a piece that the user has defined lets it win.
    if (piece.kind == kUserDefined)
      options.scores.back() = static_cast<float>(static_cast<double>(piece.text.size()) * largest - 0.1);
  }
  if (file.falls_back_to_bytes) options.bytes = ByteTokens::of(bytes);
  return std::make_unique<Unigram>(std::move(options));
}

Result<TokenizerParts> read_parts(std::string_view bytes) {
  ModelFile file = read_file(bytes);
  if (Status ok = check(file); !ok) return tl::unexpected(std::move(ok.error()));
  Result<Charsmap> charsmap = Charsmap::read(file.charsmap);
  if (!charsmap) return tl::unexpected(std::move(charsmap.error()));
  SentencePieceNormalising normalising = std::move(file.normalising);
  normalising.charsmap = std::move(*charsmap);
  for (const Piece& piece : file.pieces)
    if (piece.kind == kUserDefined) normalising.kept.add(piece.text, 0);
  TokenizerParts parts;
  parts.model = file.kind == kBpeModel ? make_bpe(file, parts.added_normalised) : make_unigram(file);
  parts.normalise = sentencepiece_normaliser(std::move(normalising));
  parts.largest = static_cast<std::int32_t>(file.pieces.size()) - 1;
  return parts;
}

}  // namespace

Result<std::shared_ptr<const Tokenizer>> read_sentencepiece_model(std::string_view bytes) {
  try {
    Result<TokenizerParts> parts = read_parts(bytes);
    if (!parts) return tl::unexpected(std::move(parts.error()));
    return std::make_shared<const Tokenizer>(std::move(*parts));
  } catch (const protozero::exception& error) {
    return fail(ErrorCode::kData, std::string("isn't a SentencePiece model (") + error.what() +
                                      "): fetch the file again, or take a tokenizer.json");
  }
}

}  // namespace disttrain::input
