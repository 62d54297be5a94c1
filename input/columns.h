// Turns the tables that decoders make into arrays for the model, as [data.columns] says: numbers and images into
// "inputs", categories into "categories", the label into "labels", and the weight into "weights". It doesn't matter
// which format the tables come from.
//
// [data.columns] may leave things open that the training set then gives: vocabularies, means and deviations. A
// ColumnFit finds them in a first pass over the files. They depend only on the files, so each worker finds the same.
// Then a ColumnEncoder makes the arrays. A test set is encoded with what the training set gave.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/config/job_config.h"
#include "common/result.h"
#include "input/dataset.h"
#include "input/large_array.h"
#include "input/table.h"
#include "input/token_rows.h"
#include "input/tokens/tokenizer.h"
#include "input/word_room.h"

namespace disttrain::input {

inline constexpr std::size_t kMaxWords = 1 << 24;  // different words of a column

// The columns that a decoder must read, for each of `columns` that needs one. `missing` is data.missing.
std::vector<WantedColumn> wanted_columns(const std::vector<ColumnSection>& columns,
                                         const std::vector<std::string>& missing);

// Says where a record of a table is, for errors: "FILE:LINE" or "FILE, record N".
using PlaceOf = std::function<std::string(std::uint64_t record)>;

// Labels of a training set that are numbers, not words.
struct LabelRange {
  bool are_whole = true;  // of at most kLargestWhole
  double smallest = 0.0;  // at most 0
  double largest = 0.0;

  bool are_classes() const { return are_whole && smallest >= 0.0; }
};

// What a column takes from the training set, or from job.toml.
struct FittedColumn {
  std::vector<std::string> vocabulary;  // of a category or a label; empty for labels that are numbers
  double mean = 0.0;
  double deviation = 1.0;
  LabelRange label;             // only of a label without a vocabulary and without normalise
  bool has_rare_words = false;  // some words of the training set have fewer records than data.columns.NAME.min_count
  // Of tokens: the tokenizer, and a hash of its file. Null if the files have tokens.
  std::shared_ptr<const Tokenizer> tokenizer;
  std::uint64_t tokenizer_hash = 0;
};
// For each of [data.columns].
struct FittedColumns {
  std::vector<FittedColumn> columns;
};

// The columns that a first pass must read; the others are of the kind kIgnore. Nothing if no pass is needed.
std::optional<std::vector<ColumnSection>> columns_to_fit(const std::vector<ColumnSection>& columns);

// Finds what FittedColumns needs in the tables of one file. Use it from one thread.
class ColumnFit {
 public:
  // `columns` must outlive this object. `missing` is data.missing, and the others are those of Source. `room` must live
  // until the last take() or merge(); null: words have no bound in bytes.
  ColumnFit(const std::vector<ColumnSection>& columns, std::vector<std::string> missing, std::string target_taker,
            bool takes_probabilities, WordRoom* room = nullptr);

  // Takes the records of a table with the columns wanted_columns(). Errors, kData: a value is missing or there are
  // several, a number is infinite, a label is missing, a column has too many words (kMaxWords, or more than the room)
  // or one that isn't UTF-8, labels are numbers and words, or words where numbers are needed, or not from 0 to 1 where
  // probabilities are needed.
  Status take(const Table& table, const PlaceOf& place_of);

  // Takes what `later` has found, which are the records after these.
  Status merge(ColumnFit&& later);

  // What `columns` take from the files. A ColumnFit of columns_to_fit(columns) has found it.
  // Errors, kData: no record has a value in a column, or all words are rarer than min_count.
  Result<FittedColumns> done(const std::vector<ColumnSection>& columns) const;

 private:
  // Mean and sum of squared deviations from it: Chan, Golub, LeVeque, "Updating Formulae and a Pairwise Algorithm for
  // Computing Sample Variances" (1979).
  struct Moments {
    double count = 0.0;
    double mean = 0.0;
    double squares = 0.0;
    void add(double value);
    void add(const Moments& other);
  };
  struct WordHash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  // The number of records with each word.
  using Words = std::unordered_map<std::string, std::uint64_t, WordHash, std::equal_to<>>;
  // Labels are numbers, or they are words. The first one says which.
  struct FirstLabel {
    bool is_number = true;
    std::string label;
    std::string place;  // "": there was none
  };
  struct Column {
    const ColumnSection* section = nullptr;
    Moments moments;           // normalise = "standard"
    Words words;               // a vocabulary is needed, and they aren't numbers
    LabelRange range;          // of labels that are numbers
    FirstLabel first;          // of a label
    bool has_a_value = false;  // some record has one
  };

  // A missing value counts as the number that the column gives to it.
  Status take_numbers(const TableColumn& from, Column& column, std::uint64_t records, const PlaceOf& place_of) const;
  Status take_categories(const TableColumn& from, Column& column, std::uint64_t records, const PlaceOf& place_of) const;
  Status take_labels(const TableColumn& from, Column& column, std::uint64_t records, const PlaceOf& place_of) const;
  Status wrong_label(const ColumnSection& section, std::string_view word, const FirstLabel& first,
                     const std::string& place) const;
  Status count_word(std::string_view word, Column& column, std::uint64_t record, const PlaceOf& place_of) const;

  std::vector<Column> columns_;  // in the order of wanted_columns()
  std::vector<std::string> missing_;
  std::vector<float> missing_numbers_;  // missing_numbers() of them
  std::string target_taker_;
  bool takes_probabilities_ = false;
  WordRoom* room_ = nullptr;
  std::uint64_t records_ = 0;
};

// `columns` with the vocabularies that the training set gave, so that their sizes (common/config/columns.h) are known.
std::vector<ColumnSection> with_vocabularies(std::vector<ColumnSection> columns, const FittedColumns& fitted);

// `numbers` are those of ColumnEncoder::count_unknown(), and `names` those of unknown_names().
std::vector<UnknownWords> unknown_words(const std::vector<std::string>& names,
                                        const std::vector<std::uint64_t>& numbers);

// Encoded records: their values one record after the other.
struct EncodedRows {
  std::uint64_t records = 0;
  LargeArray<float> inputs;
  LargeArray<std::uint8_t> pixels;  // inputs that are images
  LargeArray<std::int32_t> categories;
  LargeArray<std::int64_t> classes;  // labels that are classes or other whole numbers
  LargeArray<float> targets;         // other labels
  LargeArray<float> weights;
  std::vector<TokenRows> tokens;  // of each column of tokens or bytes

  void clear() {
    records = 0;
    inputs.clear();
    pixels.clear();
    categories.clear();
    classes.clear();
    targets.clear();
    weights.clear();
    for (TokenRows& column : tokens) column.clear();
  }
  // Of their memory.
  std::uint64_t bytes() const {
    std::uint64_t token_bytes = 0;
    for (const TokenRows& column : tokens) token_bytes += column.bytes();
    return token_bytes + inputs.capacity() * sizeof(float) + pixels.capacity() +
           categories.capacity() * sizeof(std::int32_t) + classes.capacity() * sizeof(std::int64_t) +
           (targets.capacity() + weights.capacity()) * sizeof(float);
  }
};

class ImageEncoder;  // encode_images.h

// The encoder of a table's images, and the numbers that decide how an image is changed at random.
struct Images {
  ImageEncoder* encoder = nullptr;  // only this thread uses it meanwhile
  Draw draw;
  std::uint64_t first_record = 0;  // number of the table's first record in the data set
};

// Where the values of some records go: the row of the first of them in each array of EncodedRows. The number of a
// record's tokens isn't known before, so they go behind those that are there.
struct RowsOut {
  float* inputs = nullptr;
  std::uint8_t* pixels = nullptr;
  std::int32_t* categories = nullptr;
  std::int64_t* classes = nullptr;
  float* targets = nullptr;
  float* weights = nullptr;
  std::span<TokenRows> tokens;
};

// Encodes the records of tables. Any thread may use it.
class ColumnEncoder {
 public:
  // `columns` and `fitted` must outlive this object. `missing` is data.missing, and the others are those of Source.
  ColumnEncoder(const std::vector<ColumnSection>& columns, const FittedColumns& fitted,
                std::vector<std::string> missing, const std::string& target_taker, bool takes_probabilities);

  // The number of values of a record in each array.
  std::uint64_t inputs() const { return inputs_; }
  std::uint64_t categories() const { return categories_; }
  // The arrays of the columns of tokens and bytes.
  const std::vector<TokenArray>& tokens() const { return tokens_; }
  // The bytes of an encoded record without its tokens and bytes.
  std::uint64_t record_bytes() const;
  // The most bytes of `records` encoded records. The value of a column of bytes takes at most its limit, and all of
  // them at most `content_bytes`.
  std::uint64_t most_bytes(std::uint64_t records, std::uint64_t content_bytes) const;
  // Whether the inputs are pixels (EncodedRows::pixels).
  bool has_pixels() const { return has_pixels_; }
  bool has_labels() const { return has_labels_; }
  bool has_weights() const { return has_weights_; }
  // Whether labels are whole numbers, such as classes. Otherwise they are float32, and any finite number is one. A
  // model that takes targets has such labels also if those of its training set happen to be whole.
  bool has_whole_labels() const { return has_whole_labels_; }
  // The names of the columns; "" for a column without a vocabulary.
  std::vector<std::string> unknown_names() const;
  // Adds 1 to the number of each column, in the order of unknown_names(), in which an encoded record has a word that
  // isn't in the vocabulary. The arguments are the record's values in EncodedRows::inputs and categories.
  void count_unknown(const float* inputs, const std::int32_t* categories, std::span<std::uint64_t> numbers) const;

  // Appends the records of a table with the columns wanted_columns(). Errors, kData: a value is missing, there are too
  // few or too many, a number is infinite, a word isn't UTF-8, a label isn't in the vocabulary, or an image can't be
  // decoded. `rows` is then unusable. For
  // images, `images` says how to make them.
  Status encode(const Table& table, const PlaceOf& place_of, EncodedRows& rows, const Images& images = {}) const;

  // The same in steps, so that several threads can encode different columns into the same rows. add_rows() adds rows
  // without values. encode_columns() writes the columns [begin, end) of the table; it needs no others. The tables of
  // one column must come in the order of their records. At last encode_crosses() writes the categories that combine
  // others.
  void add_rows(std::uint64_t records, EncodedRows& rows) const;
  RowsOut rows_at(EncodedRows& rows, std::uint64_t first) const;
  Status encode_columns(const Table& table, std::size_t begin, std::size_t end, const PlaceOf& place_of,
                        const RowsOut& to, const Images& images = {}) const;
  void encode_crosses(std::uint64_t records, const RowsOut& to) const;

 private:
  // The number of each word.
  using Numbers = std::unordered_map<std::string_view, std::int32_t>;
  struct Column {
    const ColumnSection* section = nullptr;
    const FittedColumn* fitted = nullptr;
    std::size_t from = 0;  // index of the table's column; unused by a cross
    std::uint64_t to = 0;  // place of the first value within a record's array; tokens, bytes: number of the column
    std::uint64_t elements = 1;  // values of a record in the files
    std::uint64_t size = 0;      // one_hot: numbers of a record for the model
    Numbers numbers;
    std::vector<std::uint64_t> cross;  // places of the categories that it combines
    std::size_t index = 0;             // in columns_
  };

  void add_token_arrays(const Column& column);
  Status encode_numbers(const Column& column, const Table& table, const PlaceOf& place_of, float* to) const;
  Status encode_categories(const Column& column, const Table& table, const PlaceOf& place_of, const RowsOut& to) const;
  Status encode_one_hot(const Column& column, const Table& table, const PlaceOf& place_of, const RowsOut& to) const;
  template <typename Put>
  Status number_categories(const Column& column, const Table& table, const PlaceOf& place_of, const Put& put) const;
  Status encode_weights(const Column& column, const Table& table, const PlaceOf& place_of, float* to) const;
  Status encode_pixels(const Column& column, const Table& table, const PlaceOf& place_of, const Images& images,
                       std::uint8_t* to) const;
  Status encode_labels(const Column& column, const Table& table, const PlaceOf& place_of, const RowsOut& to) const;
  void encode_cross(const Column& column, std::uint64_t records, std::int32_t* rows) const;
  Result<double> number_of_label(const Column& column, std::string_view word, std::uint64_t record,
                                 const PlaceOf& place_of) const;
  Result<std::int32_t> number_of_word(const Column& column, std::string_view text, std::uint64_t record,
                                      const PlaceOf& place_of) const;

  std::vector<Column> columns_;
  std::vector<std::string> missing_;
  std::vector<float> missing_numbers_;  // missing_numbers() of them
  std::uint64_t inputs_ = 0;
  std::uint64_t categories_ = 0;
  bool has_pixels_ = false;
  bool has_whole_labels_ = true;
  bool takes_probabilities_ = false;
  bool has_labels_ = false;
  bool has_weights_ = false;
  std::size_t token_columns_ = 0;
  std::vector<TokenArray> tokens_;
};

}  // namespace disttrain::input
