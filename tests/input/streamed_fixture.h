// A data set of csv files, which is read from them for each batch, or into memory.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "input/streamed_dataset.h"
#include "tests/input/input_files.h"

namespace disttrain::input {

inline ColumnSection column_of(const std::string& name, ColumnKind kind) {
  ColumnSection column;
  column.name = name;
  column.kind = kind;
  return column;
}

class Streamed : public testing::Test {
 protected:
  // Files of `records` lines each: x, w and k, with words of different lengths.
  void write_files(int files, int records, bool gz = false) {
    int number = 0;
    for (int file = 0; file < files; ++file) {
      std::string text = "x,w,k\n";
      for (int i = 0; i < records; ++i, ++number)
        text +=
            std::to_string(number) + "," + std::string(1 + number % 7, 'w') + "," + std::to_string(number % 3) + "\n";
      const std::string name = "part-" + std::to_string(file) + ".csv";
      folder_.write(gz ? name + ".gz" : name, gz ? gzip(text) : text);
    }
  }

  // If `memory` is 1, the records are read for each batch.
  Source source_of(std::uint64_t memory, ShuffleKind shuffle = ShuffleKind::kEpoch) const {
    Source source = input::source(DataFormat::kCsv, folder_, "part-*");
    source.columns = {column_of("x", ColumnKind::kNumeric), column_of("w", ColumnKind::kCategory),
                      column_of("k", ColumnKind::kLabel)};
    source.columns[0].normalise = Normalise::kStandard;
    source.memory = memory;
    source.shuffle = shuffle;
    return source;
  }

  std::unique_ptr<Dataset> load(const Source& source) {
    Result<std::unique_ptr<Dataset>> dataset = load_dataset(source);
    EXPECT_TRUE(dataset) << dataset.error().message;
    return dataset ? std::move(*dataset) : nullptr;
  }

  std::string error_of(const Source& source, ErrorCode code) {
    const auto dataset = load_dataset(source);
    EXPECT_FALSE(dataset);
    if (dataset) return "";
    EXPECT_EQ(dataset.error().code, code);
    return dataset.error().message;
  }

  // The error of reading some records of a data set that was opened without one.
  static std::string gather_error(const Dataset& dataset, const std::vector<std::uint64_t>& indices) {
    std::vector<float> x(indices.size());
    const std::vector<ColumnOut> outs = {
        {{.name = "x", .dtype = DType::kFloat32, .shape = {}}, std::as_writable_bytes(std::span(x)), {}}};
    const Status gathered = dataset.gather(indices, outs, {});
    return gathered ? "" : gathered.error().message;
  }

  static void expect_equal(const Dataset& a, const Dataset& b, const std::vector<std::uint64_t>& indices) {
    ASSERT_EQ(a.records(), b.records());
    ASSERT_EQ(a.columns().size(), b.columns().size());
    EXPECT_EQ(gather<float>(a, indices, 0, DType::kFloat32, 1), gather<float>(b, indices, 0, DType::kFloat32, 1));
    EXPECT_EQ(gather<std::int32_t>(a, indices, 1, DType::kInt32, 1),
              gather<std::int32_t>(b, indices, 1, DType::kInt32, 1));
    EXPECT_EQ(gather<std::int64_t>(a, indices, 2, DType::kInt64, 1),
              gather<std::int64_t>(b, indices, 2, DType::kInt64, 1));
    EXPECT_EQ(gather<float>(a, indices, 2, DType::kFloat32, 3), gather<float>(b, indices, 2, DType::kFloat32, 3));
  }

  // Swaps two lines of different lengths near a quarter of the file, whose size and time of modification stay the same,
  // as after `touch -r`. Returns the number of lines before them.
  std::uint64_t swap_lines(const std::string& name) const {
    const std::filesystem::path path = folder_ / name;
    const auto time = std::filesystem::last_write_time(path);
    std::string text = read_whole(path);
    const std::size_t first = text.find('\n', text.size() / 4) + 1;
    const std::size_t second = text.find('\n', first) + 1;
    const std::size_t end = text.find('\n', second) + 1;
    EXPECT_NE(second - first, end - second);
    const auto at = [&text](std::size_t byte) { return text.begin() + static_cast<std::ptrdiff_t>(byte); };
    std::rotate(at(first), at(second), at(end));
    folder_.write(name, text);
    std::filesystem::last_write_time(path, time);
    return static_cast<std::uint64_t>(std::count(text.begin(), at(first), '\n'));
  }

  std::vector<std::string> index_files() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
      if (entry.path().filename().string().starts_with(".disttrain-")) names.push_back(entry.path().string());
    return names;
  }

  Folder folder_;
};

inline std::vector<std::uint64_t> all_of(std::uint64_t records) {
  std::vector<std::uint64_t> indices(records);
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

}  // namespace disttrain::input
