#include "input/encode_tokens.h"

#include <span>
#include <utility>

#include "common/config/columns.h"
#include "input/column_values.h"
#include "input/load_tokenizer.h"

namespace disttrain::input {

namespace {

// Tokens around a text, which truncation doesn't cut.
struct Around {
  std::vector<std::int32_t> before;
  std::vector<std::int32_t> after;
};

Around around_of(const ColumnSection& section, const Tokenizer* tokenizer) {
  if (tokenizer == nullptr || !section.special_tokens) return {};
  return {tokenizer->before(), tokenizer->after()};
}

// The part of a sequence that has at most `room` tokens or bytes.
template <typename T>
Result<std::span<const T>> cut(const ColumnSection& section, std::size_t room, const PlaceOf& place_of,
                               std::uint64_t record, std::span<const T> sequence) {
  if (sequence.size() <= room) return sequence;
  const bool may_cut = section.length > 0;
  if (may_cut && section.truncate == Truncate::kRight) return sequence.first(room);
  if (may_cut && section.truncate == Truncate::kLeft) return sequence.last(room);
  const std::string found = std::to_string(sequence.size()) + (is_bytes(section) ? " bytes" : " tokens");
  return fail(ErrorCode::kData,
              place_of(record) + ": " + found + " in column '" + name_in_files(section) + "', expected at most " +
                  std::to_string(room) + ": shorten the record, raise " + key_of(section) +
                  (may_cut ? ".length or set " + key_of(section) + ".truncate" : ".limit or set length instead of it"));
}

}  // namespace

namespace {

// Reads the tokenizer of a column, and checks that the column's keys fit it.
Status load_tokenizer_of(const ColumnSection& section, FittedColumn& fitted) {
  Result<LoadedTokenizer> loaded = load_tokenizer(section.tokenizer, key_of(section) + ".tokenizer");
  if (!loaded) return tl::unexpected(std::move(loaded.error()));
  const Tokenizer& tokenizer = *loaded->tokenizer;
  if (section.pad >= tokenizer.size())
    return fail(ErrorCode::kConfig, key_of(section) + ".pad is " + std::to_string(section.pad) + ", but " +
                                        section.tokenizer + " has the ids 0 to " +
                                        std::to_string(tokenizer.size() - 1) + ": choose one of them");
  const Around around = around_of(section, &tokenizer);
  const std::size_t special = around.before.size() + around.after.size();
  if (special >= section.length)
    return fail(ErrorCode::kConfig, key_of(section) + ".length is " + std::to_string(section.length) + ", but " +
                                        section.tokenizer + " sets " + std::to_string(special) +
                                        " tokens around each text: raise it, or set " + key_of(section) +
                                        ".special_tokens = false");
  fitted.tokenizer = std::move(loaded->tokenizer);
  fitted.tokenizer_hash = loaded->hash;
  return {};
}

// Takes the ids of the next record, which begin at `next` of from.integers.
Status take_ids(const ColumnSection& section, const TableColumn& from, std::uint64_t record, const PlaceOf& place_of,
                std::size_t& next, std::vector<std::int32_t>& sequence) {
  const std::int64_t limit = token_limit(section, nullptr);
  const std::size_t count = from.lengths.empty() ? 1 : from.lengths[record];
  if (count == 0)
    return fail(ErrorCode::kData, place_of(record) + ": no value in column '" + name_in_files(section) +
                                      "', expected at least one token: correct the record, or " + key_of(section) +
                                      ".from if it has another name there");
  for (const std::size_t end = next + count; next < end; ++next) {
    const std::int64_t id = from.integers[next];
    if (id < 0 || id >= limit)
      return fail(ErrorCode::kData, place_of(record) + ": the token " + std::to_string(id) + " in column '" +
                                        name_in_files(section) + "', expected 0 to " + std::to_string(limit - 1) +
                                        ": correct the record or " + key_of(section) + ".limit");
    sequence.push_back(static_cast<std::int32_t>(id));
  }
  return {};
}

}  // namespace

Status load_tokenizers(const std::vector<ColumnSection>& columns, FittedColumns& fitted) {
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (is_tokens(columns[i]) && !columns[i].tokenizer.empty())
      if (Status ok = load_tokenizer_of(columns[i], fitted.columns[i]); !ok) return ok;
  return {};
}

std::int64_t token_limit(const ColumnSection& section, const Tokenizer* tokenizer) {
  if (is_bytes(section)) return 256;
  return tokenizer != nullptr ? tokenizer->size() : std::int64_t{section.limit};
}

std::uint32_t most_tokens(const ColumnSection& section) {
  return section.length > 0 ? section.length : section.limit;
}

static Status encode_bytes(const ColumnSection& section, const TableColumn& from, std::uint64_t records,
                           const PlaceOf& place_of, TokenRows& rows) {
  if (Status ok = check_lengths(section, from, 1, place_of); !ok) return ok;
  for (std::uint64_t i = 0; i < records; ++i) {
    const auto* const value = reinterpret_cast<const std::uint8_t*>(from.bytes[i].data());
    const auto kept = cut(section, most_tokens(section), place_of, i, std::span(value, from.bytes[i].size()));
    if (!kept) return tl::unexpected(kept.error());
    rows.raw.insert(rows.raw.end(), kept->begin(), kept->end());
    rows.ends.push_back(rows.raw.size());
  }
  return {};
}

Status encode_tokens(const ColumnSection& section, const Tokenizer* tokenizer, const TableColumn& from,
                     std::uint64_t records, const PlaceOf& place_of, TokenRows& rows) {
  if (is_bytes(section)) return encode_bytes(section, from, records, place_of, rows);
  const bool has_texts = tokenizer != nullptr;
  if (has_texts)
    if (Status ok = check_lengths(section, from, 1, place_of); !ok) return ok;
  const Around around = around_of(section, tokenizer);
  const std::size_t room = section.length - around.before.size() - around.after.size();
  LargeArray<std::int32_t>& ids = rows.ids;
  std::vector<std::int32_t> sequence;
  std::size_t next = 0;  // of from.integers
  for (std::uint64_t i = 0; i < records; ++i) {
    sequence.clear();
    if (!has_texts) {
      if (Status ok = take_ids(section, from, i, place_of, next, sequence); !ok) return ok;
    } else if (const Status ok = tokenizer->encode(from.bytes[i], sequence); !ok) {
      return fail(ok.error().code, place_of(i) + ", column '" + name_in_files(section) + "': " + ok.error().message);
    }
    const auto kept = cut(section, room, place_of, i, std::span<const std::int32_t>(sequence));
    if (!kept) return tl::unexpected(kept.error());
    ids.insert(ids.end(), around.before.begin(), around.before.end());
    ids.insert(ids.end(), kept->begin(), kept->end());
    ids.insert(ids.end(), around.after.begin(), around.after.end());
    rows.ends.push_back(ids.size());
  }
  return {};
}

}  // namespace disttrain::input
