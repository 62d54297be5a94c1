#include <sys/stat.h>

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

#include "input/find_files.h"
#include "input/idx.h"
#include "input/load.h"
#include "input/npy.h"
#include "input/npz.h"
#include "input/probability_labels.h"
#include "input/read_parallel.h"
#include "input/record_shape.h"

namespace disttrain::input {

namespace {

Result<Array> read_file(const Source& source, const std::string& path) {
  Result<std::unique_ptr<FileReader>> file = FileReader::open(path, source.is_cancelled, source.max_expansion);
  if (!file) return tl::unexpected(std::move(file.error()));
  Result<ArrayHeader> header = source.format == DataFormat::kIdx ? read_idx_header(**file) : read_npy_header(**file);
  if (!header) return tl::unexpected(std::move(header.error()));
  return read_array(**file, *header);
}

Result<std::vector<Array>> read_files(const Source& source, const std::vector<std::string>& paths) {
  return read_parallel<Array>(paths, [&source](const std::string& path) { return read_file(source, path); });
}

bool is_there(const std::string& path) {
  struct stat about {};
  return ::stat(path.c_str(), &about) == 0;
}

Result<std::vector<std::string>> find_label_files(const Source& source, const std::vector<std::string>& inputs) {
  if (!source.labels.empty()) return find_files(source, source.labels, source.labels_key);
  const std::string hint = ": set " + source.labels_key + " to a pattern of the names of the label files";
  if (source.format != DataFormat::kIdx) {
    return fail(ErrorCode::kConfig,
                source.path + "/" + source.files + ": the names of npy files don't say where their labels are" + hint);
  }
  std::vector<std::string> labels;
  for (const std::string& input : inputs) {
    const std::vector<std::string> candidates = idx_label_candidates(input);
    const auto found = std::find_if(candidates.begin(), candidates.end(), is_there);
    if (candidates.empty()) {
      return fail(ErrorCode::kConfig,
                  input + ": its name doesn't contain \"images\", so the name of its label file isn't known" + hint);
    }
    if (found == candidates.end()) {
      return fail(ErrorCode::kNoInput,
                  candidates.front() + ": this file is missing, but it should have the labels of " + input + hint);
    }
    labels.push_back(*found);
  }
  return labels;
}

std::vector<std::uint64_t> record_shape(const Array& file) {
  return {file.header.shape.begin() + 1, file.header.shape.end()};
}

// The file whose shape those of the others are compared with: the first one that divides its records the most, because
// flat records, for example, fit each shape.
const Array& shaped_file(const std::vector<Array>& files) {
  return *std::max_element(files.begin(), files.end(), [](const Array& one, const Array& other) {
    return part_counts(record_shape(one)).size() < part_counts(record_shape(other)).size();
  });
}

// Checks that the records of all files have the same number of values, in the same order. `training` is the shape of
// the training set's records if these are a test set, otherwise {}. A model may take flat records, so that it doesn't
// tell the orders apart.
Status check_alike(const std::vector<Array>& files, const std::vector<std::uint64_t>& training,
                   const std::string& key) {
  const Array& first = files.front();
  const Array& shaped = shaped_file(files);
  for (const Array& file : files) {
    if (file.row_elements() == first.row_elements()) continue;
    return fail(ErrorCode::kData, file.path + ": its records have " + std::to_string(file.row_elements()) +
                                      " values (shape " + describe_shape(file.header.shape) + "), expected " +
                                      std::to_string(first.row_elements()) + " as in " + first.path + " (shape " +
                                      describe_shape(first.header.shape) + "): does the pattern " + key +
                                      " match too many files?");
  }
  for (const Array& file : files) {
    if (have_same_order(record_shape(file), record_shape(shaped))) continue;
    return fail(ErrorCode::kData, file.path + ": its records have the shape " + describe_shape(record_shape(file)) +
                                      ", expected " + describe_shape(record_shape(shaped)) + " as in " + shaped.path +
                                      ": transpose the array, or does the pattern " + key + " match too many files?");
  }
  // fits() says that records of another size don't fit the model.
  const std::vector<std::uint64_t> shape = record_shape(shaped);
  const std::uint64_t elements = std::accumulate(training.begin(), training.end(), std::uint64_t{1}, std::multiplies());
  if (elements != shaped.row_elements() || have_same_order(shape, training)) return {};
  return fail(ErrorCode::kData, shaped.path + ": its records have the shape " + describe_shape(shape) + ", expected " +
                                    describe_shape(training) + " as in the training set: transpose the array");
}

std::uint64_t rows_of(const std::vector<Array>& files) {
  std::uint64_t rows = 0;
  for (const Array& file : files) rows += file.rows();
  return rows;
}

Status check_pairs(const std::vector<Array>& inputs, const std::vector<Array>& labels) {
  const auto differ = [](const std::string& path, std::uint64_t found, std::uint64_t expected, const std::string& of) {
    return fail(ErrorCode::kData, path + ": " + std::to_string(found) + " labels, expected " +
                                      std::to_string(expected) + ", one for each record in " + of +
                                      ": do these files belong together?");
  };
  if (inputs.size() == labels.size()) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].rows() != labels[i].rows()) {
        return differ(labels[i].path, labels[i].rows(), inputs[i].rows(), inputs[i].path);
      }
    }
  } else if (rows_of(inputs) != rows_of(labels)) {
    return differ(labels.front().path + " and " + std::to_string(labels.size() - 1) + " more files", rows_of(labels),
                  rows_of(inputs), inputs.front().path + " and " + std::to_string(inputs.size() - 1) + " more files");
  }
  return {};
}

bool are_integers(const std::vector<Array>& files) {
  return std::none_of(files.begin(), files.end(), [](const Array& file) { return is_float(file.header.type); });
}

// The type in which the values of all files are kept in memory, if the model takes them as `wanted` (nothing: a trainer
// takes them as they are). Integers keep their values. But a model that takes float32 gets it, so that such data
// doesn't take 8 bytes for each value.
DType kept_type(const std::vector<Array>& files, std::optional<DType> wanted) {
  const auto all = [&files](std::initializer_list<ElementType> types) {
    return std::all_of(files.begin(), files.end(), [types](const Array& file) {
      return std::find(types.begin(), types.end(), file.header.type) != types.end();
    });
  };
  if (all({ElementType::kU8})) return DType::kUint8;
  if (all({ElementType::kU8, ElementType::kI8, ElementType::kI16, ElementType::kI32})) return DType::kInt32;
  if (are_integers(files) && wanted != DType::kFloat32) return DType::kInt64;
  return wanted == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
}

// Whether the array's bytes are values of this type on this host.
bool has_type(const Array& array, DType type) {
  const ElementType stored = array.header.type;
  if (type == DType::kUint8) return stored == ElementType::kU8;
  return !array.header.big_endian && ((type == DType::kInt32 && stored == ElementType::kI32) ||
                                      (type == DType::kInt64 && stored == ElementType::kI64));
}

// Joins the values of all files. Frees each file's array as soon as its values are copied.
Result<Values> join(std::vector<Array> files, DType type) {
  Values joined{type, files.front().row_elements(), {}, record_shape(shaped_file(files))};
  if (files.size() == 1 && has_type(files.front(), type)) {
    joined.bytes = std::move(files.front().bytes);
    return joined;
  }
  const std::uint64_t bytes = rows_of(files) * joined.elements * size_of(type);
  joined.bytes = std::make_unique_for_overwrite<std::byte[]>(bytes);
  std::span<std::byte> rest(joined.bytes.get(), bytes);
  for (Array& file : files) {
    const std::uint64_t taken = file.rows() * file.row_elements() * size_of(type);
    if (Status ok = write_as(type, file, rest.first(taken)); !ok) return tl::unexpected(ok.error());
    rest = rest.subspan(taken);
    file.bytes.reset();
  }
  return joined;
}

// Whole numbers, one for each record, are labels if the model takes integers. Otherwise integers of at least 0 are
// labels: a loss of numbers and a trainer get other numbers in their own type, whichever values a file has. All other
// values are targets.
Status join_labels(std::vector<Array> files, std::optional<DType> wanted, Contents& contents) {
  const bool takes_integers = wanted && *wanted != DType::kFloat32 && *wanted != DType::kFloat64;
  bool whole = files.front().row_elements() == 1 && (takes_integers || are_integers(files));
  for (const Array& file : files) {
    if (!whole) break;
    const std::optional<std::vector<std::int64_t>> found = whole_numbers(file);
    whole = found.has_value();
    if (!whole) break;
    const std::vector<std::int64_t>& labels = *found;
    whole = takes_integers || std::all_of(labels.begin(), labels.end(), [](std::int64_t label) { return label >= 0; });
    contents.labels.insert(contents.labels.end(), labels.begin(), labels.end());
  }
  if (whole) return {};
  contents.labels.clear();
  const DType type = kept_type(files, wanted);
  Result<Values> targets = join(std::move(files), type);
  if (!targets) return tl::unexpected(targets.error());
  contents.targets = std::move(*targets);
  return {};
}

struct InputsAndLabels {
  std::vector<Array> inputs;
  std::vector<Array> labels;
};

// The inputs and labels are in separate files.
Result<InputsAndLabels> read_pairs(const Source& source, const std::vector<std::string>& input_paths) {
  const Result<std::vector<std::string>> label_paths = find_label_files(source, input_paths);
  if (!label_paths) return tl::unexpected(label_paths.error());
  Result<std::vector<Array>> labels = read_files(source, *label_paths);
  if (!labels) return tl::unexpected(labels.error());
  Result<std::vector<Array>> inputs = read_files(source, input_paths);
  if (!inputs) return tl::unexpected(inputs.error());
  return InputsAndLabels{std::move(*inputs), std::move(*labels)};
}

// Each file has both arrays: the labels, whose name is data.labels or "y", and the inputs, which are named "x" or are
// the only other array.
Result<InputsAndLabels> read_npz_pairs(const Source& source, const std::vector<std::string>& paths) {
  const std::string label_name = source.labels.empty() ? "y" : source.labels;
  Result<std::vector<std::vector<NamedArray>>> files = read_parallel<std::vector<NamedArray>>(
      paths,
      [&source](const std::string& path) { return read_npz(path, {}, source.is_cancelled, source.max_expansion); });
  if (!files) return tl::unexpected(files.error());
  InputsAndLabels pairs;
  for (std::size_t i = 0; i < paths.size(); ++i) {
    std::vector<NamedArray>& arrays = (*files)[i];
    NamedArray* inputs = nullptr;
    NamedArray* labels = nullptr;
    std::string names;
    for (NamedArray& array : arrays) {
      names += (names.empty() ? "\"" : ", \"") + array.name + "\"";
      if (array.name == label_name)
        labels = &array;
      else if (array.name == "x" || arrays.size() == 2)
        inputs = &array;
    }
    if (inputs == nullptr || labels == nullptr)
      return fail(ErrorCode::kData,
                  paths[i] + ": has the arrays " + (names.empty() ? "(none)" : names) +
                      ", expected the inputs as \"x\" or as the only other array, and the labels as \"" + label_name +
                      "\": name the labels' array with " + source.labels_key);
    pairs.inputs.push_back(std::move(inputs->array));
    pairs.labels.push_back(std::move(labels->array));
  }
  return pairs;
}

}  // namespace

Result<Contents> load_arrays(const Source& source) {
  const std::string key = source.files_key;
  const Result<std::vector<std::string>> paths = find_files(source, source.files, key);
  if (!paths) return tl::unexpected(paths.error());
  Result<InputsAndLabels> read =
      source.format == DataFormat::kNpz ? read_npz_pairs(source, *paths) : read_pairs(source, *paths);
  if (!read) return tl::unexpected(read.error());
  std::vector<Array>* const inputs = &read->inputs;
  std::vector<Array>* const labels = &read->labels;

  if (Status alike = check_alike(*inputs, source.record_shape, key); !alike) return tl::unexpected(alike.error());
  if (Status alike = check_alike(*labels, source.label_shape, source.labels_key); !alike)
    return tl::unexpected(alike.error());
  if (Status pairs = check_pairs(*inputs, *labels); !pairs) return tl::unexpected(pairs.error());

  Contents contents;
  contents.records = rows_of(*inputs);
  for (const std::vector<Array>* files : {&*inputs, &*labels})
    for (const Array& file : *files) contents.bytes_read += file.file_bytes;
  const std::vector<LabelFile> files_of_labels = label_files(*labels);
  if (Status joined = join_labels(std::move(*labels), source.labels_as, contents); !joined)
    return tl::unexpected(joined.error());
  if (Status ok = check_probabilities(source, files_of_labels, contents); !ok) return tl::unexpected(ok.error());
  const DType type = kept_type(*inputs, source.inputs_as);
  Result<Values> joined = join(std::move(*inputs), type);
  if (!joined) return tl::unexpected(joined.error());
  contents.inputs = std::move(*joined);
  return contents;
}

}  // namespace disttrain::input
