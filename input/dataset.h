// A data set. Each record has an input and a label or a target. All inputs have the same size. A model takes each of
// them as a column of a batch (ColumnSpec).
//
// A data set is in memory, or its records are read from the files for each batch (streamed_dataset.h). It doesn't
// change after it is loaded, so any thread may read it. In memory, values keep the type that they have in the file, for
// example one byte per pixel. They are converted to the model's type when a batch is made. Only values of 8 bytes that
// the model takes as float32 are converted when they are loaded.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/config/job_config.h"
#include "common/model.h"
#include "common/result.h"
#include "input/decompressor.h"
#include "input/large_array.h"

namespace disttrain::input {

// While load_dataset() reads files, several threads call this regularly. If it returns true, load_dataset() fails with
// kTemporary.
using IsCancelled = std::function<bool()>;

class TableReader;     // table_reader.h
class RecordSource;    // record_source.h
struct FittedColumns;  // columns.h
struct DataFigures;    // data_figures.h

struct Source;
// The functions that open Parquet files.
struct ParquetFunctions {
  Result<std::unique_ptr<TableReader>> (*open_tables)(const Source& source, const std::string& path);
  Result<std::unique_ptr<RecordSource>> (*open_records)(const Source& source, const std::vector<std::string>& paths);
};

// Where the records of a data set come from: the settings of [data] or of [evaluate] in job.toml.
struct Source {
  DataFormat format = DataFormat::kIdx;
  std::string path;   // folder
  std::string files;  // pattern of the data files in the folder
  // Pattern of the label files in the folder. It may be "" for idx files: the names of the label files then follow from
  // the names of the data files.
  std::string labels;
  std::uint64_t begin = 0;  // records [begin, end); end = 0: all
  std::uint64_t end = 0;
  double scale = 1.0;
  // The types in which the model takes the inputs and the labels. Nothing: a trainer takes them as the files have them.
  std::optional<DType> inputs_as;
  std::optional<DType> labels_as;
  std::string tokenizer;      // text: the file that makes tokens of it; "": its bytes are the tokens
  std::uint64_t window = 65;  // text: tokens of a record
  std::uint64_t stride = 64;  // text: tokens from the begin of a record to that of the next one
  // For csv files without [data.columns]. For a test set, the names of the training set's labels, so that both sets
  // give a label the same number: label i has the name label_names[i]. Empty: the labels of the training set are
  // numbers, so those of the test set must be, too. Nothing: labels may be numbers, or texts, which are numbered in
  // sorted order.
  std::optional<std::vector<std::string>> label_names;
  // The same for the header of the training set, whose last name is the label's. Empty: it has none. A file whose
  // header names other inputs, or in another order, is an error.
  std::vector<std::string> header;
  // For idx, npy and npz files of a test set: the shapes of a record's inputs and of its labels in the training set.
  // Files with the values in another order are an error. Empty: flat, which fits each shape.
  std::vector<std::uint64_t> record_shape;
  std::vector<std::uint64_t> label_shape;
  // What becomes of each column, and the words that mean that a value is missing.
  std::vector<ColumnSection> columns;
  std::vector<std::string> missing;
  bool may_lack_labels = false;  // whether the files may have no labels, because a prediction doesn't need them
  // What takes the labels as numbers, and never as classes: `model.loss = "mse"`. Then words are an error. "": any
  // model
  std::string target_taker;
  // The outputs of a builtin model with the loss sigmoid_cross_entropy; 0: any other model. Its targets are numbers
  // from 0 to 1; others are an error. With one output each label that is a number is a target.
  std::uint64_t sigmoid_outputs = 0;
  bool takes_probabilities() const { return sigmoid_outputs == 1; }
  // With columns: the order in which records will be read, the most memory for them in bytes (0: "auto"), and the
  // folder of the index ("": that of the data). bucket_by: the column of tokens or bytes whose lengths are needed; "":
  // none.
  ShuffleKind shuffle = ShuffleKind::kEpoch;
  std::uint64_t shuffle_window = 16;
  std::uint64_t memory = 0;
  std::string index;
  std::string bucket_by;
  std::uint64_t max_expansion = kMaxExpansion;  // of compressed files
  // What [data.columns] takes from the training set. A test set needs it; if it is null, these records are the training
  // set, and load_dataset() computes it.
  std::shared_ptr<const FittedColumns> fitted;
  // For error texts: the section of job.toml, "data" or "evaluate", and the keys that name the folder and the files.
  std::string section = "data";
  std::string path_key = "data.path";
  std::string files_key = "data.files";
  std::string labels_key = "data.labels";
  IsCancelled is_cancelled;  // empty: never cancelled
  // Opens files of the format parquet. The functions are in a library of their own (parquet/parquet_functions.h), which
  // not every program links. If this is null, such files are refused.
  const ParquetFunctions* parquet = nullptr;
};

// These functions return the sources of the training set and of the test set. The test set takes its format and its
// scale from [data]. Of a text it predicts each token once, whatever the training set's stride is.
Source training_source(const DataSection& data);
Source evaluation_source(const DataSection& data, const EvaluateSection& evaluate);

// One array that a data set has for each of its records.
struct DatasetColumn {
  std::string
      name;  // "inputs", "categories" (only with [data.columns]), "labels", or that of a column of tokens or bytes
  DType dtype = DType::kFloat32;
  std::uint64_t elements = 1;  // values of one record
  bool are_classes = false;    // labels that are one whole number for each record, none of them below 0
  bool are_tokens = false;     // a column of tokens or bytes, which is an array of its own
  bool is_ragged = false;      // tokens or bytes with pad_to = "longest", or of the type kBytes
  std::int32_t pad = 0;        // tokens, bytes: stands behind shorter records
  // Of integers: the smallest and the largest of them; of tokens those that a record may have. Otherwise 0 and -1.
  std::int64_t smallest = 0;
  std::int64_t largest = -1;
  // With [data.columns]: the columns whose values the array has, in their order.
  std::vector<ColumnPart> parts = {};
  // Of a record of npy, npz and idx files. Otherwise {}.
  std::vector<std::uint64_t> shape = {};
};

// What random changes of records depend on, besides the record (augment.h).
struct Draw {
  bool is_training = false;  // false: no random changes
  std::uint64_t seed = 0;    // of the job
  std::uint32_t epoch = 0;
};

// Which values of a data set a column of a model takes (bind.h).
struct Binding {
  std::size_t array = 0;    // index into Dataset::columns()
  std::uint64_t first = 0;  // index of the first value among the array's values of a record
};

// Where the values of a column of a batch go.
struct ColumnOut {
  ColumnSpec as;  // must have passed fits()
  // records * element_count(as) elements of type as.dtype
  std::span<std::byte> out;
  Binding from;
  // If `as` is ragged: one for each record. The records are written to the begin of `out`, one after the other. Record
  // i ends before element row_ends[i].
  std::span<std::uint64_t> row_ends = {};
  // If as.dtype is kBytes: the values go here instead of to `out`, and gather() gives the array their size. So the
  // memory of a batch doesn't depend on the most bytes that a value may have.
  LargeArray<std::byte>* strings = nullptr;
};

// A category of a data set.
struct UnknownWords {
  std::string column;         // of [data.columns]
  std::uint64_t records = 0;  // that have a word which isn't in the vocabulary
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::uint64_t records() const = 0;
  virtual const std::vector<DatasetColumn>& columns() const = 0;
  virtual std::uint64_t bytes_read() const = 0;                             // total size of the files on disk
  virtual const std::vector<std::string>& label_names() const = 0;          // empty unless labels are text
  virtual std::shared_ptr<const FittedColumns> fitted_columns() const = 0;  // null without [data.columns]
  // The names of the columns of csv files without [data.columns], that of the label last. Empty if they have no header.
  virtual std::vector<std::string> header() const { return {}; }

  // The first record of each block of records that are read together, ascending from 0. Empty: any record can be read
  // by itself.
  virtual std::vector<std::uint64_t> blocks() const { return {}; }

  // The number of tokens or bytes of each record in the column Source::bucket_by. Empty without one. It is valid as
  // long as the data set.
  virtual std::span<const std::uint32_t> lengths() const { return {}; }

  // A hash of the records' names and places, and of lengths(). Data sets with other hashes have other records. 0: not
  // known.
  virtual std::uint64_t hash() const { return 0; }
  // Something that the operator should know, or "".
  virtual std::string notice() const { return ""; }
  // The categories with such records, of a data set that isn't the training set. A streamed one knows the records that
  // evaluations have read so far.
  virtual std::vector<UnknownWords> unknown_words() const { return {}; }
  // How long the stages of reading take; null for a data set in memory. It lives as long as the data set.
  virtual const DataFigures* figures() const { return nullptr; }

  // Writes the values of the records at `indices`: those that columns[i].from names, as columns[i].as describes them.
  // Each index is less than records(). Inputs that become floats are multiplied by
  // the scale. If whole labels become floats with w values per record, then with w = 1 the value is the label as a
  // number. With w > 1 it is 1 at the label's index and 0 elsewhere. Only tokens and bytes can be written as ragged
  // columns. Any thread may call this.
  //
  // A data set in memory gives no errors. Errors of a streamed one name the file and the record. kData: the file is
  // corrupt or was changed, or a value is wrong. kNoInput, kNoPermission: the file can't be read. `out` then has any
  // values.
  virtual Status gather(std::span<const std::uint64_t> indices, std::span<const ColumnOut> columns,
                        const Draw& draw) const = 0;
};

// Reads all files of the source, several at a time, and joins their records in the sorted order of the files' names. An
// error names the file and what is wrong with it:
// - kNoInput: no file matches, or a file is missing or can't be read.
// - kNoPermission: the process may not read a file.
// - kData: a file is truncated, corrupt or of another format, or the numbers of images and labels differ.
// - kConfig: a setting doesn't fit the files or is missing, or there isn't enough memory.
//
// A record of a text is a window of tokens. The windows of a file begin every `stride` tokens; none goes beyond its
// end.
//
// If every label is a whole number, the records have labels, which are classes if none is below 0. Otherwise
// (fractions, several values per record) the records have targets. Text labels (csv) are numbered in sorted order.
Result<std::unique_ptr<Dataset>> load_dataset(const Source& source);

}  // namespace disttrain::input
