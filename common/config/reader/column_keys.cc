// The keys of [data.columns]. Each column is a table, and its name is the user's.
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "common/bounds.h"
#include "common/config/reader/keys.h"
#include "common/printable.h"

namespace disttrain::config {

namespace {

constexpr std::size_t kMostWords = 1 << 16;
// The columns of a model have names of at most kMaxTextBytes. One of them may be NAME_length (with_length).
constexpr std::size_t kMostNameBytes = kMaxTextBytes - std::string_view("_length").size();
constexpr std::int64_t kMostTokens = 1 << 24;
constexpr std::int64_t kMostHash = 1 << 24;
constexpr std::int64_t kMostCount = std::numeric_limits<std::uint32_t>::max();

// `field`, but write() leaves the key out unless is_set() returns true.
template <typename IsSet>
Field if_set(Field field, IsSet is_set) {
  field.write = [write = std::move(field.write), is_set]() -> std::optional<TomlValue> {
    return is_set() ? write() : std::nullopt;
  };
  return field;
}

Field optional_real(std::optional<double>& to, Range range) {
  double any = 0.0;
  const std::string expected = real(any, range).expected;
  return Field{expected,
               [&to, range](const TomlValue& value, const std::string& path, Reading& reading) {
                 double number = 0.0;
                 const std::size_t problems = reading.problems.size();
                 real(number, range).read(value, path, reading);
                 if (reading.problems.size() == problems) to = number;
               },
               [&to] { return to ? std::optional(toml(*to)) : std::nullopt; }};
}

Keys column_keys(ColumnSection& column) {
  return {
      {"kind",
       required(choice<ColumnKind>(column.kind, {{"numeric", ColumnKind::kNumeric},
                                                 {"category", ColumnKind::kCategory},
                                                 {"label", ColumnKind::kLabel},
                                                 {"ignore", ColumnKind::kIgnore},
                                                 {"image", ColumnKind::kImage},
                                                 {"tokens", ColumnKind::kTokens},
                                                 {"weight", ColumnKind::kWeight},
                                                 {"bytes", ColumnKind::kBytes}})),
       "what becomes of the column"},
      {"from", not_if_empty(text(column.from), column.from), "the column's name in the data files; \"\" = NAME"},
      {"missing", optional_real(column.missing, {-kNoLimit, true, kNoLimit, true}),
       "numeric, weight: the number that a missing value becomes; without it, a missing value is an error"},
      {"normalise",
       if_set(choice<Normalise>(column.normalise, {{"none", Normalise::kNone}, {"standard", Normalise::kStandard}}),
              [&column] { return column.normalise != Normalise::kNone; }),
       "numeric, label: standard subtracts the mean and divides by the standard deviation; of a label only while the "
       "model trains"},
      {"mean", optional_real(column.mean, {-kNoLimit, true, kNoLimit, true}),
       "normalise = \"standard\": the mean; without it, that of the training set"},
      {"deviation", optional_real(column.deviation, above(0.0)),
       "normalise = \"standard\": the standard deviation; without it, that of the training set"},
      {"boundaries",
       if_set(reals(column.boundaries, {-kNoLimit, true, kNoLimit, true}),
              [&column] { return !column.boundaries.empty(); }),
       "numeric: makes a category of the number: how many of these ascending boundaries aren't above it"},
      {"vocabulary", texts(column.vocabulary, kMostWords),
       "category: word i has the number i + 1, and all other words have 0; label: word i is class i; without it, the "
       "sorted words of the training set"},
      {"min_count", if_set(integer(column.min_count, 1, kMostCount), [&column] { return column.min_count > 1; }),
       "category without vocabulary: words of fewer training records get the number 0, as words do that the training "
       "set doesn't have"},
      {"hash", if_set(integer(column.hash, 1, kMostHash), [&column] { return column.hash > 0; }),
       "category: instead of a vocabulary, a hash of the word, below this number"},
      {"cross", texts(column.cross, 16), "category: combines the categories of these columns to one; needs hash"},
      {"one_hot", if_set(boolean(column.one_hot), [&column] { return column.one_hot; }),
       "category or boundaries: makes a number of each of its values: 1 for the record's value, 0 for all others"},
      {"strip", not_if_empty(text(column.strip), column.strip),
       "label: these characters are removed from the end of a word"},
      {"shape", if_set(integers(column.shape, 1, 1 << 24, kMaxDimensions), [&column] { return !column.shape.empty(); }),
       "numeric: the shape of a record's values; without it, one value. image, required: channels (1 or 3), height, "
       "width"},
      {"crop", if_set(boolean(column.crop), [&column] { return column.crop; }),
       "image: training takes a random part of each image, scaled to the shape"},
      {"flip", if_set(boolean(column.flip), [&column] { return column.flip; }),
       "image: training mirrors half of the images"},
      {"tokenizer", not_if_empty(text(column.tokenizer), column.tokenizer),
       "tokens: a tokenizer.json or a SentencePiece .model that makes tokens of texts; without it, the column has "
       "tokens"},
      {"limit", if_set(integer(column.limit, 1, kMostTokens), [&column] { return column.limit > 0; }),
       "tokens without a tokenizer, required: all tokens are below this. bytes without length, required: the most "
       "bytes of a value"},
      {"length", if_set(integer(column.length, 1, 1 << 20), [&column] { return column.length > 0; }),
       "tokens, required: the number of tokens of a record; shorter records are padded, longer ones are cut. bytes: "
       "the number of bytes of a record; without it, values stay as they are"},
      {"pad", if_set(integer(column.pad, 0, kMostTokens), [&column] { return column.pad > 0; }),
       "tokens, bytes: the token or byte that is added behind shorter records"},
      {"truncate",
       if_set(choice<Truncate>(column.truncate,
                               {{"right", Truncate::kRight}, {"left", Truncate::kLeft}, {"none", Truncate::kNone}}),
              [&column] { return column.truncate != Truncate::kRight; }),
       "tokens, bytes: right cuts the end off longer records, left their begin; with none they are an error"},
      {"special_tokens", if_set(boolean(column.special_tokens), [&column] { return !column.special_tokens; }),
       "tokens with a tokenizer: whether to take the tokens that it sets around a text"},
      {"with_length", if_set(boolean(column.with_length), [&column] { return column.with_length; }),
       "tokens, bytes: adds a column NAME_length, the number of tokens or bytes without the padding"},
      {"pad_to",
       if_set(choice<PadTo>(column.pad_to, {{"length", PadTo::kLength}, {"longest", PadTo::kLongest}}),
              [&column] { return column.pad_to != PadTo::kLength; }),
       "tokens, bytes: length pads all records to length, longest pads them to the longest record of the batch"},
      {"zero_based", if_set(boolean(column.zero_based), [&column] { return column.zero_based; }),
       "libsvm: whether the first index is 0; without it, the first index is 1"},
  };
}

}  // namespace

Field data_columns(std::vector<ColumnSection>& to) {
  const std::string expected = "a table of columns such as { \"NAME\" = { kind = \"numeric\" } }";
  ColumnSection example;
  std::vector<KeyDoc> below = describe(column_keys(example));
  for (KeyDoc& doc : below) {
    doc.name = "NAME." + doc.name;
    doc.is_required = false;
  }
  return Field{expected,
               [&to, expected](const TomlValue& value, const std::string& path, Reading& reading) {
                 const auto* entries = value.as<TomlValue::Table>();
                 if (entries == nullptr) return refuse_value(value, path, expected, reading);
                 if (entries->size() > kMaxColumns)
                   return reading.refuse(value.at, path,
                                         path + " has " + std::to_string(entries->size()) +
                                             " columns; expected at most " + std::to_string(kMaxColumns));
                 to.clear();
                 for (const TomlEntry& entry : *entries) {
                   const std::string name = path + "." + entry.key;
                   reading.given[name] = entry.value.at;
                   if (entry.key.empty()) {
                     reading.refuse(entry.key_at, path,
                                    path +
                                        " has a column with the empty name \"\"; give it a name, or leave it out if "
                                        "the model doesn't take it");
                     continue;
                   }
                   if (entry.key.size() > kMostNameBytes || !is_printable(entry.key)) {
                     reading.refuse(entry.key_at, path,
                                    path + " has the column " + quoted(std::string(cut_text(entry.key, 60))) +
                                        (entry.key.size() > 60 ? "..." : "") + "; expected a name of at most " +
                                        std::to_string(kMostNameBytes) + " bytes, " + kPrintableWords +
                                        ": give it another name, and set its key from to the name in the data files");
                     continue;
                   }
                   if (entry.value.as<TomlValue::Table>() == nullptr) {
                     refuse_value(entry.value, name, "a table such as { kind = \"numeric\" }", reading);
                     continue;
                   }
                   ColumnSection column;
                   column.name = entry.key;
                   read_table(column_keys(column), entry.value, name + ".", reading);
                   to.push_back(std::move(column));
                 }
               },
               [&to]() -> std::optional<TomlValue> {
                 if (to.empty()) return std::nullopt;
                 TomlValue::Table table;
                 for (ColumnSection& column : to)
                   table.push_back(TomlEntry{column.name, {}, TomlValue{write_table(column_keys(column)), {}}});
                 return TomlValue{std::move(table), {}};
               },
               false,
               true,
               std::move(below)};
}

}  // namespace disttrain::config
