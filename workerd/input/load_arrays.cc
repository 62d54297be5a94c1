#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "workerd/input/find_files.h"
#include "workerd/input/idx.h"
#include "workerd/input/load.h"
#include "workerd/input/npy.h"
#include "workerd/input/read_parallel.h"

namespace disttrain::input {

namespace {

Result<Array> read_file(const Source& source, const std::string& path) {
  Result<std::unique_ptr<FileReader>> file = FileReader::open(path, source.is_cancelled);
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
  if (!source.labels.empty()) return find_files(source, source.labels, source.section + ".labels");
  const std::string hint = ": set " + source.section + ".labels to a pattern of the names of the label files";
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

// Checks that the records of all files have the same number of values.
Status check_alike(const std::vector<Array>& files, const std::string& key) {
  const Array& first = files.front();
  for (const Array& file : files) {
    if (file.row_elements() != first.row_elements()) {
      return fail(ErrorCode::kData, file.path + ": its records have " + std::to_string(file.row_elements()) +
                                        " values (shape " + describe_shape(file.header.shape) + "), expected " +
                                        std::to_string(first.row_elements()) + " as in " + first.path + " (shape " +
                                        describe_shape(first.header.shape) + "): does the pattern " + key +
                                        " match too many files?");
    }
  }
  return {};
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

// Joins the inputs of all files. If all files have values of one byte, the result has bytes too, otherwise floats.
// Frees each file's array as soon as its values are copied.
Status join_inputs(std::vector<Array> files, Contents& contents) {
  contents.records = rows_of(files);
  contents.input_elements = files.front().row_elements();
  for (const Array& file : files) contents.bytes_read += file.file_bytes;
  const bool all_bytes =
      std::all_of(files.begin(), files.end(), [](const Array& a) { return a.header.type == ElementType::kU8; });
  if (all_bytes && files.size() == 1) {
    contents.bytes = std::move(files.front().bytes);
    return {};
  }
  const std::uint64_t values = contents.records * contents.input_elements;
  if (all_bytes) {
    contents.bytes = std::make_unique_for_overwrite<std::byte[]>(values);
  } else {
    contents.floats.reserve(values);
  }
  std::uint64_t at = 0;
  for (Array& file : files) {
    const std::uint64_t count = file.rows() * file.row_elements();
    if (all_bytes) {
      std::memcpy(contents.bytes.get() + at, file.bytes.get(), count);
    } else {
      const Result<std::vector<float>> floats = to_floats(file);
      if (!floats) return tl::unexpected(floats.error());
      contents.floats.insert(contents.floats.end(), floats->begin(), floats->end());
    }
    at += count;
    file.bytes.reset();
  }
  return {};
}

Status join_labels(const std::vector<Array>& files, Contents& contents) {
  bool whole = files.front().row_elements() == 1;
  for (const Array& file : files) {
    contents.bytes_read += file.file_bytes;
    whole = whole && !is_float(file.header.type);
    if (!whole) continue;
    const std::vector<std::int64_t> labels = to_integers(file);
    whole = std::all_of(labels.begin(), labels.end(), [](std::int64_t label) { return label >= 0; });
    contents.labels.insert(contents.labels.end(), labels.begin(), labels.end());
  }
  if (whole) return {};
  contents.labels.clear();
  contents.target_elements = files.front().row_elements();
  for (const Array& file : files) {
    const Result<std::vector<float>> targets = to_floats(file);
    if (!targets) return tl::unexpected(targets.error());
    contents.targets.insert(contents.targets.end(), targets->begin(), targets->end());
  }
  return {};
}

}  // namespace

Result<Contents> load_arrays(const Source& source) {
  const std::string key = source.section + ".files";
  const Result<std::vector<std::string>> input_paths = find_files(source, source.files, key);
  if (!input_paths) return tl::unexpected(input_paths.error());
  const Result<std::vector<std::string>> label_paths = find_label_files(source, *input_paths);
  if (!label_paths) return tl::unexpected(label_paths.error());

  Result<std::vector<Array>> labels = read_files(source, *label_paths);
  if (!labels) return tl::unexpected(labels.error());
  Result<std::vector<Array>> inputs = read_files(source, *input_paths);
  if (!inputs) return tl::unexpected(inputs.error());

  if (Status alike = check_alike(*inputs, key); !alike) return tl::unexpected(alike.error());
  if (Status alike = check_alike(*labels, source.section + ".labels"); !alike) return tl::unexpected(alike.error());
  if (Status pairs = check_pairs(*inputs, *labels); !pairs) return tl::unexpected(pairs.error());

  Contents contents;
  if (Status joined = join_labels(*labels, contents); !joined) return tl::unexpected(joined.error());
  if (Status joined = join_inputs(std::move(*inputs), contents); !joined) return tl::unexpected(joined.error());
  return contents;
}

}  // namespace disttrain::input
