// The rules between the keys of [data.columns], and between these and other keys of a job.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "common/config/columns.h"
#include "common/config/reader/keys.h"

namespace disttrain::config {

namespace {

constexpr std::uint64_t kMostValues = 1 << 26;  // of a column in a record

// The number of values of the column in a record, at most kMostValues + 1.
std::uint64_t value_count(const ColumnSection& column) {
  std::uint64_t values = 1;
  for (const std::uint32_t size : column.shape) values = std::min(values * size, kMostValues + 1);
  return values;
}

bool is_ascending(const std::vector<double>& numbers) {
  return std::adjacent_find(numbers.begin(), numbers.end(), std::greater_equal<>()) == numbers.end();
}

class Columns {
 public:
  Columns(const std::vector<ColumnSection>& columns, Reading& reading) : columns_(columns), reading_(reading) {}

  void check() const {
    const ColumnSection* label = nullptr;
    const ColumnSection* weight = nullptr;
    for (const ColumnSection& column : columns_) {
      check_keys(column);
      check_words(column);
      check_cross(column);
      check_sequence(column);
      if (is_weight(column) && weight != nullptr)
        refuse(column, "kind",
               "is \"weight\", but data.columns." + weight->name + " is the weight already; keep one of them");
      if (is_weight(column)) weight = &column;
      if (column.kind != ColumnKind::kLabel) continue;
      if (label != nullptr)
        refuse(column, "kind",
               "is \"label\", but data.columns." + label->name + " is the label already; keep one of them");
      label = &column;
    }
    const bool has_input = std::any_of(columns_.begin(), columns_.end(), [](const ColumnSection& column) {
      return is_number(column) || is_category(column) || is_one_hot(column) || is_image(column) || is_sequence(column);
    });
    const bool has_sequence = std::any_of(columns_.begin(), columns_.end(), is_sequence);
    check_images();
    if (!has_input && label != nullptr)
      reading_.refuse("data.columns",
                      "data.columns has no column of the kind \"numeric\", \"category\", \"image\", \"tokens\" or "
                      "\"bytes\"; add the inputs");
    // The labels of tokens may be the tokens that follow.
    if (label == nullptr && has_input && !has_sequence && !reading_.has_unknown("data.columns"))
      reading_.refuse("data.columns", "data.columns has no label; give one of the columns the kind \"label\"");
  }

 private:
  // The pixels of an image are the model's only inputs, because they are bytes and other numbers are floats.
  void check_images() const {
    const ColumnSection* image = nullptr;
    for (const ColumnSection& column : columns_) {
      if (!is_image(column)) continue;
      const bool is_sized = column.shape.size() == 3 && (column.shape[0] == 1 || column.shape[0] == 3);
      if (!is_sized)
        refuse(column, "shape", "must be [channels, height, width] with 1 or 3 channels, as in [3, 224, 224]");
      if (image != nullptr) refuse(column, "kind", "is \"image\", as that of " + image->name + "; keep one of them");
      image = &column;
    }
    for (const ColumnSection& column : columns_)
      if (image != nullptr && (is_number(column) || is_category(column) || is_one_hot(column)))
        refuse(column, "kind", "can't be combined with the image " + image->name + "; leave one of them out");
  }

  static std::string section_of(const ColumnSection& column) { return "data.columns." + column.name + "."; }

  void refuse(const ColumnSection& column, const std::string& key, const std::string& what) const {
    reading_.refuse(section_of(column) + key, section_of(column) + key + " " + what);
  }

  void check_keys(const ColumnSection& column) const {
    const std::string section = section_of(column);
    if (reading_.is_refused(section + "kind")) return;
    const bool is_numeric = column.kind == ColumnKind::kNumeric;
    const bool is_word = column.kind == ColumnKind::kCategory && column.cross.empty();
    const bool is_label = column.kind == ColumnKind::kLabel;
    only_with(reading_, is_numeric || is_weight(column), section, {"missing"}, "kind = \"numeric\" or \"weight\"");
    only_with(reading_, is_numeric, section, {"boundaries"}, "kind = \"numeric\"");
    if (is_weight(column) && column.missing && *column.missing < 0.0)
      refuse(column, "missing", "is below 0; a weight is at least 0");
    only_with(reading_, is_numeric || is_image(column), section, {"shape"}, "kind = \"numeric\" or \"image\"");
    only_with(reading_, is_image(column), section, {"crop", "flip"}, "kind = \"image\"");
    only_with(reading_, column.shape.empty(), section, {"boundaries"}, "one value; the column has a shape");
    if (value_count(column) > kMostValues)
      refuse(column, "shape", "has more than " + std::to_string(kMostValues) + " values; expected at most that");
    only_with(reading_, (is_numeric && column.boundaries.empty()) || is_label, section, {"normalise"},
              "kind = \"numeric\" and without boundaries, or kind = \"label\"");
    only_with(reading_, column.normalise == Normalise::kStandard, section, {"mean", "deviation"},
              "normalise = \"standard\"");
    only_with(reading_, is_word || is_label, section, {"vocabulary"}, "kind = \"category\" (not a cross) or \"label\"");
    only_with(reading_, column.kind == ColumnKind::kCategory, section, {"hash", "cross"}, "kind = \"category\"");
    only_with(reading_, is_word && column.hash == 0 && column.vocabulary.empty(), section, {"min_count"},
              "kind = \"category\" (not a cross) and the words of the training set, so without vocabulary and hash");
    only_with(reading_, is_word || !column.boundaries.empty(), section, {"one_hot"},
              "kind = \"category\" (not a cross), or boundaries");
    if (is_one_hot(column) && category_size(column, 0) > kMaxOneHot)
      refuse(column, "one_hot",
             "makes " + std::to_string(category_size(column, 0)) + " numbers of each record; expected at most " +
                 std::to_string(kMaxOneHot) + ". Use wide_deep, which takes categories as they are");
    only_with(reading_, is_label, section, {"strip"}, "kind = \"label\"");
    only_with(reading_, column.cross.empty(), section, {"from"}, "a column of the files; a cross has none");
    if (column.mean.has_value() != column.deviation.has_value())
      refuse(column, column.mean ? "mean" : "deviation",
             std::string("is given without ") + (column.mean ? "deviation" : "mean") +
                 "; give both, or leave both out to take those of the training set");
    if (!is_ascending(column.boundaries)) refuse(column, "boundaries", "aren't ascending; sort them");
  }

  void check_sequence(const ColumnSection& column) const {
    const std::string section = section_of(column);
    if (reading_.is_refused(section + "kind")) return;
    only_with(reading_, is_tokens(column), section, {"tokenizer", "special_tokens"}, "kind = \"tokens\"");
    only_with(reading_, is_sequence(column), section, {"limit", "length", "pad", "truncate", "with_length", "pad_to"},
              "kind = \"tokens\" or \"bytes\"");
    if (!is_sequence(column)) return;
    if (is_bytes(column))
      check_bytes(column);
    else
      check_tokens(column);
    const std::string lengths = column.name + "_length";
    const bool is_taken = std::any_of(columns_.begin(), columns_.end(), [&lengths](const ColumnSection& other) {
      return other.name == lengths && other.kind != ColumnKind::kIgnore;
    });
    if (column.with_length && is_taken)
      refuse(column, "with_length",
             "adds a column " + lengths + ", but data.columns." + lengths + " has this name; rename the other column");
    static const std::set<std::string> kArrays = {"inputs", "categories", "labels", "targets", "weights"};
    if (kArrays.contains(column.name))
      reading_.refuse("data.columns." + column.name,
                      "data.columns." + column.name +
                          " has the name of another array of a record; give it another name, and this one by from");
  }

  void check_bytes(const ColumnSection& column) const {
    const std::string section = section_of(column);
    const bool is_refused = reading_.is_refused(section + "length") || reading_.is_refused(section + "limit");
    only_with(reading_, column.length > 0 || is_refused, section, {"pad", "truncate", "with_length", "pad_to"},
              "length; without it, values stay as they are");
    if (column.length == 0 && column.limit == 0 && !is_refused)
      refuse(column, "limit",
             "is missing; expected the most bytes of a value, or length, the number of bytes that each value gets by "
             "padding or cutting");
    if (column.length > 0 && column.limit > 0)
      refuse(column, "limit", "is given, but length says already how many bytes a value gets; keep one of them");
    if (column.pad > 255) refuse(column, "pad", "is " + std::to_string(column.pad) + "; expected a byte, 0 to 255");
  }

  void check_tokens(const ColumnSection& column) const {
    const std::string section = section_of(column);
    only_with(reading_, !column.tokenizer.empty(), section, {"special_tokens"}, "a tokenizer");
    if (column.length == 0 && !reading_.is_refused(section + "length"))
      refuse(column, "length", "is missing; expected the number of tokens that the model takes");
    if (column.tokenizer.empty() && column.limit == 0 && !reading_.is_refused(section + "limit"))
      refuse(column, "tokenizer",
             "is missing; expected the file that makes tokens of texts, or limit if the column has tokens");
    if (!column.tokenizer.empty() && column.limit > 0)
      refuse(column, "limit", "is given, but the tokenizer has its own number of tokens; leave limit out");
    if (column.limit > 0 && column.pad >= column.limit)
      refuse(column, "pad", "isn't below limit, which is " + std::to_string(column.limit) + "; choose another token");
  }

  void check_words(const ColumnSection& column) const {
    if (column.hash > 0 && !column.vocabulary.empty())
      refuse(column, "hash", "and vocabulary are two ways to number the words; keep one of them");
    std::set<std::string> seen;
    for (const std::string& word : column.vocabulary)
      if (!seen.insert(word).second) return refuse(column, "vocabulary", "has " + quoted(word) + " twice; keep one");
  }

  void check_cross(const ColumnSection& column) const {
    if (column.cross.empty()) return;
    if (column.cross.size() < 2) return refuse(column, "cross", "has one column; expected at least two");
    if (column.hash == 0) refuse(column, "cross", "needs hash, the number of values of the combined category; add it");
    for (const std::string& name : column.cross) {
      const auto found = std::find_if(columns_.begin(), columns_.end(),
                                      [&name](const ColumnSection& other) { return other.name == name; });
      if (found == columns_.end() || !is_category(*found) || !found->cross.empty())
        refuse(column, "cross",
               "names " + quoted(name) +
                   ", expected columns of the kind \"category\" (not a cross), "
                   "or of the kind \"numeric\" with boundaries, and without one_hot");
    }
  }

  const std::vector<ColumnSection>& columns_;
  Reading& reading_;
};

}  // namespace

// Whether the files have what columns of tokens and bytes take, and the model takes these.
//
// A column of the kind "bytes" is a column of tokens whose tokens are the bytes of a value. With `length` it has a
// fixed shape, which programs and the transformer need. With `limit` a trainer gets Python's `bytes`, for example a
// file that it decodes itself. These values are never cut, because a cut file is of no use, and the memory of a batch
// grows with them: 256 files of up to 16 MiB would otherwise reserve 4 GiB in each batch that is read ahead. One of the
// two keys is required. A default for `limit` would be too small for files or, for Parquet, too large: its footers
// don't say how long values are, so a row group counts with `limit` bytes for each record.
static void check_sources_of_sequences(const JobConfig& job, Reading& reading) {
  const DataSection& data = job.data;
  const bool has_texts = data.format != DataFormat::kLibsvm && data.format != DataFormat::kImages;
  const bool has_lists =
      data.format == DataFormat::kJsonl || data.format == DataFormat::kTfrecord || data.format == DataFormat::kParquet;
  for (const ColumnSection& column : data.columns) {
    if (!is_sequence(column)) continue;
    const std::string name = "data.columns." + column.name;
    const std::string kind = is_bytes(column) ? "bytes" : "tokens";
    if (!has_texts || (is_tokens(column) && !has_lists && column.tokenizer.empty()))
      reading.refuse(name + ".kind",
                     name + ".kind is \"" + kind + "\", but the files have no " +
                         (has_texts ? "lists of tokens; set its tokenizer, or use jsonl, tfrecord or parquet"
                                    : "texts; use another data.format"));
    if (!job.model.builtin.empty() && job.model.builtin != "transformer")
      reading.refuse(name, name + " has " + kind + ", which model.builtin = \"" + job.model.builtin +
                               "\" doesn't take; use \"transformer\", or leave the column out");
    if (job.model.builtin == "transformer" && is_bytes(column) && column.limit > 0 && column.length == 0)
      reading.refuse(name + ".limit",
                     name +
                         ".limit keeps values as they are, which model.builtin = \"transformer\" doesn't take; set "
                         "length to " +
                         std::to_string(std::uint64_t{job.model.transformer.context} + 1) +
                         " instead, which is model.transformer.context + 1");
  }
}

static void check_buckets(const DataSection& data, Reading& reading) {
  only_with(reading, !data.bucket_by.empty(), "data.", {"bucket_window"}, "bucket_by");
  if (!data.bucket_by.empty() && std::none_of(data.columns.begin(), data.columns.end(), [&data](const auto& column) {
        return is_sequence(column) && column.name == data.bucket_by;
      }))
    reading.refuse("data.bucket_by",
                   "data.bucket_by is " + quoted(data.bucket_by) +
                       ", but data.columns has no column of the kind \"tokens\" or \"bytes\" with this name; "
                       "name one, or leave bucket_by out");
  if (!data.bucket_by.empty() && data.shuffle == ShuffleKind::kNone)
    reading.refuse("data.bucket_by",
                   "data.bucket_by changes the order of the records, but data.shuffle = \"none\" keeps that of the "
                   "files; leave one of them out");
}

// Refuses what the data files don't have in any case, because of their format.
static void check_sources(const DataSection& data, Reading& reading) {
  const bool are_images = data.format == DataFormat::kImages;
  const bool are_libsvm = data.format == DataFormat::kLibsvm;
  const ColumnSection* features = nullptr;
  for (const ColumnSection& column : data.columns) {
    const std::string& from = column.from.empty() ? column.name : column.from;
    const std::string name = "data.columns." + column.name;
    const std::string taken = name + " takes " + quoted(from) + " of the files, ";
    const bool takes_words = column.kind == ColumnKind::kCategory || column.kind == ColumnKind::kLabel;
    only_with(reading, are_libsvm && from == "features", name + ".", {"zero_based"},
              "the column \"features\" of format = \"libsvm\"");
    if (column.kind == ColumnKind::kIgnore || !column.cross.empty()) continue;
    if (is_image(column) && (are_libsvm || data.format == DataFormat::kParquet || data.format == DataFormat::kJsonl)) {
      reading.refuse(name + ".kind",
                     name +
                         ".kind is \"image\", but images aren't read from files of this data.format; use \"images\", "
                         "\"webdataset\" or \"tfrecord\"");
    } else if (are_images && from != "image" && from != "class") {
      reading.refuse(name, taken +
                               "but image files have \"image\" and \"class\" (the name of their folder); name one of "
                               "them with from");
    } else if (are_images && (column.kind == ColumnKind::kNumeric || is_weight(column))) {
      reading.refuse(name + ".kind",
                     name + ".kind is \"" + (is_weight(column) ? "weight" : "numeric") +
                         "\", but image files have no numbers; expected \"image\" for \"image\", and \"label\" or "
                         "\"category\" for \"class\"");
    } else if (are_images && takes_words && from == "image") {
      reading.refuse(name, taken +
                               "which is a whole image file, as words; set its from to \"class\", or its kind to "
                               "\"image\"");
    } else if (are_images && is_image(column) && from == "class") {
      reading.refuse(name, taken + "which is the name of a folder, as an image; set its from to \"image\"");
    } else if (are_libsvm && from == "weight" && !is_weight(column)) {
      reading.refuse(name + ".kind",
                     name + ".kind must be \"weight\", because it takes the weight of libsvm's LABEL:WEIGHT");
    } else if (are_libsvm && from != "features" && from != "label" && from != "weight") {
      reading.refuse(name,
                     taken +
                         "but libsvm files have \"label\", \"features\" and \"weight\" (of LABEL:WEIGHT); name one "
                         "of them with from");
    } else if (are_libsvm && takes_words && from == "features") {
      reading.refuse(name,
                     taken + "which are numbers, as words; set its kind to \"numeric\", or its from to \"label\"");
    } else if (are_libsvm && from == "features") {
      if (value_count(column) > kMaxLibsvmWidth)
        reading.refuse(name + ".shape", name + ".shape has more than " + std::to_string(kMaxLibsvmWidth) +
                                            " values; expected at most that in libsvm files, whose records are stored "
                                            "with all zeros in memory");
      if (features != nullptr && value_count(column) != value_count(*features))
        reading.refuse(name + ".shape",
                       name + ".shape has the size " + std::to_string(value_count(column)) + ", but data.columns." +
                           features->name + " takes \"features\" with the size " +
                           std::to_string(value_count(*features)) + "; set both to the largest index of the files");
      features = &column;
    }
  }
}

// A label with normalise is a number, and the builtin models with this loss undo it. The classes of other losses have
// no mean, and a program or trainer would have to undo it by itself.
static void check_targets(const JobConfig& job, Reading& reading) {
  for (const ColumnSection& column : job.data.columns) {
    if (column.kind != ColumnKind::kLabel) continue;
    const std::string name = "data.columns." + column.name;
    if (column.normalise == Normalise::kStandard && !takes_target(job.model))
      reading.refuse(name + ".normalise",
                     name +
                         ".normalise is \"standard\", but only builtin models of one output with model.loss = \"mse\" "
                         "take a normalised label; leave normalise out, and let a program or trainer do it itself");
    if (!column.vocabulary.empty() && takes_target(job.model))
      reading.refuse(name + ".vocabulary",
                     name +
                         ".vocabulary makes classes of the label, but a model of one output with model.loss = \"mse\" "
                         "takes a number; leave vocabulary out, or choose another model.loss");
  }
}

// What to do about a category that this builtin model doesn't take.
static std::string instead_of_category(const ColumnSection& column, const std::string& builtin) {
  if (builtin == "matrix_factorization") return "set its kind to \"numeric\" if it has the numbers of users or items";
  const bool takes_numbers = builtin == "linear" || builtin == "mlp";
  return takes_numbers && column.cross.empty() ? "set its one_hot, use \"wide_deep\"" : "use \"wide_deep\"";
}

void check_columns(const JobConfig& job, Reading& reading) {
  const DataSection& data = job.data;
  const bool takes = data.format != DataFormat::kIdx && data.format != DataFormat::kNpy &&
                     data.format != DataFormat::kNpz && data.format != DataFormat::kText;
  const bool needs = takes && data.format != DataFormat::kCsv;
  only_with(reading, !data.columns.empty(), "data.", {"index", "shuffle_window"}, "data.columns");
  // A file may set this key to its default, which changes nothing.
  only_with(reading, !data.columns.empty() || data.missing.empty(), "data.", {"missing"}, "data.columns");
  only_with(reading, !data.columns.empty() || !data.tokenizer.empty(), "data.", {"memory"},
            "data.columns or data.tokenizer");
  check_buckets(data, reading);
  if (data.shuffle == ShuffleKind::kBlocks && data.columns.empty())
    reading.refuse("data.shuffle", "data.shuffle = \"blocks\" is for data.columns; set it to \"epoch\"");
  only_with(reading, data.shuffle == ShuffleKind::kBlocks, "data.", {"shuffle_window"}, "shuffle = \"blocks\"");
  check_sources(data, reading);
  if (needs && data.columns.empty() && !data.files.empty() && !reading.is_refused("data.format"))
    reading.refuse("data.format",
                   "data.format is of files with named columns, but data.columns is missing; say there what becomes of "
                   "each column");
  if (data.columns.empty()) return;
  only_with(reading, takes, "data.", {"columns"}, "another format than \"idx\", \"npy\", \"npz\" and \"text\"");
  only_with(reading, data.labels.empty(), "data.", {"labels"}, "files of labels; data.columns names the label");
  const bool has_image = std::any_of(data.columns.begin(), data.columns.end(), is_image);
  only_with(reading, data.scale == 1.0 || has_image, "data.", {"scale"},
            "images and files of numbers alone; normalise the columns of data.columns instead");
  Columns(data.columns, reading).check();
  const bool is_dense = !job.model.builtin.empty() && job.model.builtin != "wide_deep";
  check_sources_of_sequences(job, reading);
  check_targets(job, reading);
  for (const ColumnSection& column : data.columns) {
    if (is_weight(column) && job.model.builtin == "transformer")
      reading.refuse("data.columns." + column.name,
                     "data.columns." + column.name +
                         " is a weight, which model.builtin = \"transformer\" doesn't take; leave the column out");
    if ((is_number(column) || is_one_hot(column)) && job.model.builtin == "transformer")
      reading.refuse("data.columns." + column.name,
                     "data.columns." + column.name +
                         " gives numbers, which model.builtin = \"transformer\" doesn't take; leave the column out");
    const bool is_too_wide = is_one_hot(column) && job.model.builtin == "matrix_factorization";
    if (is_dense && (is_category(column) || is_too_wide))
      reading.refuse("data.columns." + column.name,
                     "data.columns." + column.name + " is a category, which model.builtin = \"" + job.model.builtin +
                         "\" doesn't take; " + instead_of_category(column, job.model.builtin) +
                         ", or leave the column out");
  }
}

}  // namespace disttrain::config
