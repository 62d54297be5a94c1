// Small data files for the tests of input, in a folder that is removed with the test.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <zlib.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "input/dataset.h"

namespace disttrain::input {

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "disttrain-input-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

  std::string write(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories(std::filesystem::path(*this / name).parent_path());
    std::ofstream(*this / name, std::ios::binary) << content;
    return *this / name;
  }

 private:
  std::string path_;
};

inline std::string read_whole(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// One gzip member.
inline std::string gzip(const std::string& content) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string packed(deflateBound(&stream, content.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

// The bytes of the values: big-endian as in the format idx, or little-endian.
template <typename T>
std::string bytes_of(const std::vector<T>& values, bool big_endian) {
  std::string bytes;
  for (const T value : values) {
    char raw[sizeof(T)];
    std::memcpy(raw, &value, sizeof(T));
    for (std::size_t i = 0; i < sizeof(T); ++i) bytes += raw[big_endian ? sizeof(T) - 1 - i : i];
  }
  return bytes;
}

inline std::string idx_header(std::uint8_t type, const std::vector<std::uint32_t>& shape) {
  std::string header{'\0', '\0', static_cast<char>(type), static_cast<char>(shape.size())};
  return header + bytes_of(shape, true);
}

template <typename T>
std::string idx(std::uint8_t type, const std::vector<std::uint32_t>& shape, const std::vector<T>& values) {
  return idx_header(type, shape) + bytes_of(values, true);
}

inline std::string idx_bytes(const std::vector<std::uint32_t>& shape, const std::vector<std::uint8_t>& values) {
  return idx<std::uint8_t>(0x08, shape, values);
}

// The header of a file of version 1, 2 or 3 of the format. `dictionary` is the header's text, as numpy writes it.
inline std::string npy_header(const std::string& dictionary, int version = 1) {
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  std::string header = "\x93NUMPY" + std::string{static_cast<char>(version), '\0'};
  for (std::size_t i = 0; i < length_bytes; ++i) {
    header += static_cast<char>((dictionary.size() + 1) >> (8 * i));
  }
  return header + dictionary + "\n";
}

template <typename T>
std::string npy(const std::string& type, const std::string& shape, const std::vector<T>& values, int version = 1) {
  return npy_header("{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }", version) +
         bytes_of(values, false);
}

inline Source source(DataFormat format, const Folder& folder, const std::string& files,
                     const std::string& labels = "") {
  Source source;
  source.format = format;
  source.path = folder.path();
  source.files = files;
  source.labels = labels;
  return source;
}

inline ColumnSection column_section(const std::string& name, ColumnKind kind) {
  ColumnSection section;
  section.name = name;
  section.kind = kind;
  return section;
}

struct Rows {
  std::vector<float> inputs;
  std::vector<std::int64_t> labels;
  std::vector<float> targets;
};

template <typename T>
std::vector<T> gather(const Dataset& dataset, const std::vector<std::uint64_t>& indices, std::size_t column,
                      DType dtype, std::uint64_t elements) {
  std::vector<T> values(indices.size() * elements);
  const std::vector<ColumnOut> outs = {
      {{.name = "", .dtype = dtype, .shape = {elements}}, std::as_writable_bytes(std::span(values)), {column, 0}}};
  const Status gathered = dataset.gather(indices, outs, {});
  EXPECT_TRUE(gathered) << gathered.error().message;
  return values;
}

inline std::vector<std::string> names_of_columns(const Dataset& dataset) {
  std::vector<std::string> names;
  for (const DatasetColumn& column : dataset.columns()) names.push_back(column.name);
  return names;
}

inline bool has_labels(const Dataset& dataset) {
  return dataset.columns().at(1).are_classes;
}
inline std::uint64_t input_elements(const Dataset& dataset) {
  return dataset.columns().at(0).elements;
}
inline std::uint64_t target_elements(const Dataset& dataset) {
  return has_labels(dataset) ? 0 : dataset.columns().at(1).elements;
}
inline std::int64_t largest_label(const Dataset& dataset) {
  return dataset.columns().at(1).largest;
}

inline Rows rows_of(const Dataset& dataset, const std::vector<std::uint64_t>& indices) {
  Rows rows;
  rows.inputs = gather<float>(dataset, indices, 0, DType::kFloat32, input_elements(dataset));
  if (has_labels(dataset))
    rows.labels = gather<std::int64_t>(dataset, indices, 1, DType::kInt64, 1);
  else
    rows.targets = gather<float>(dataset, indices, 1, DType::kFloat32, target_elements(dataset));
  return rows;
}

inline Rows all_rows(const Dataset& dataset) {
  std::vector<std::uint64_t> indices(dataset.records());
  for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = i;
  return rows_of(dataset, indices);
}

inline std::unique_ptr<Dataset> load(const Source& source) {
  Result<std::unique_ptr<Dataset>> loaded = load_dataset(source);
  EXPECT_TRUE(loaded) << loaded.error().message;
  return loaded ? std::move(*loaded) : nullptr;
}

// Loading must fail with this code, and with a message that contains all of `parts`.
inline void expect_error(const Source& source, ErrorCode code, const std::vector<std::string>& parts) {
  const Result<std::unique_ptr<Dataset>> loaded = load_dataset(source);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, code) << loaded.error().message;
  for (const std::string& part : parts) {
    EXPECT_NE(loaded.error().message.find(part), std::string::npos)
        << "\"" << part << "\" isn't in: " << loaded.error().message;
  }
}

}  // namespace disttrain::input
