// Files of every format that are empty, truncated, damaged, or of another format than data.format says. Reading them
// must fail with an error that names the file. Formats with [data.columns] are read into memory and for each batch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "input/parquet/parquet_functions.h"
#include "tests/input/damage.h"
#include "tests/input/input_files.h"

namespace disttrain::input {
namespace {

using testing::HasSubstr;

constexpr int kRounds = 60;

std::string sample(const std::string& name) {
  return read_whole(std::string(DISTTRAIN_TEST_DATA "/") + name);
}

// A format, a valid file of it, and how a job reads it.
struct Kind {
  std::string name;
  DataFormat format = DataFormat::kCsv;
  std::string content;
  std::string number;   // the column of numbers in the file; "": the format has no [data.columns]
  std::string label;    // the column of labels
  std::size_t cut = 0;  // so many bytes at the end may be missing; 0: each byte is missed
};

std::ostream& operator<<(std::ostream& out, const Kind& kind) {
  return out << kind.name;
}

std::vector<Kind> all_kinds() {
  std::string jsonl;
  std::string libsvm;
  std::string csv = "a,k\n";
  for (int i = 0; i < 20; ++i) {
    const std::string label = std::to_string(i % 3);
    jsonl += R"({"a": 0.5, "k": )" + label + "}\n";
    libsvm += label + " 1:0.5\n";
    csv += "0.5," + label + "\n";
  }
  return {{"Idx", DataFormat::kIdx, idx_bytes({3, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}), "", ""},
          {"Npy", DataFormat::kNpy, npy<float>("<f4", "(3, 2)", {1, 2, 3, 4, 5, 6}), "", ""},
          {"Npz", DataFormat::kNpz, sample("npz/deflated.npz"), "", ""},
          {"Csv", DataFormat::kCsv, csv, "", ""},
          {"CsvColumns", DataFormat::kCsv, csv, "a", "k"},
          {"Jsonl", DataFormat::kJsonl, jsonl, "a", "k"},
          {"Libsvm", DataFormat::kLibsvm, libsvm, "features", "label"},
          {"Tfrecord", DataFormat::kTfrecord, sample("tfrecord/examples.tfrecord"), "age", "age"},
          {"Parquet", DataFormat::kParquet, sample("parquet/table.parquet"), "small", "small"},
          // Python's tarfile fills the file with zeros up to 10 KiB.
          {"Webdataset", DataFormat::kWebdataset, sample("webdataset/samples.tar"), "cls", "__key__", 8192},
          // libpng doesn't miss the chunk IEND.
          {"Images", DataFormat::kImages, sample("image/colour.png"), "image", "class", 12}};
}

bool is_text(const Kind& kind) {
  return kind.format == DataFormat::kCsv || kind.format == DataFormat::kJsonl || kind.format == DataFormat::kLibsvm;
}

class BadFiles : public testing::TestWithParam<Kind> {
 protected:
  BadFiles() {
    // The labels of the formats idx and npy are in a good file.
    folder_.write("labels", GetParam().format == DataFormat::kNpy ? npy<std::int32_t>("<i4", "(3,)", {0, 1, 2})
                                                                  : idx_bytes({3}, {0, 1, 2}));
  }

  // `memory` is 1 to read the records for each batch.
  Source source_of(std::uint64_t memory) const {
    const Kind& kind = GetParam();
    const bool has_label_files = kind.format == DataFormat::kIdx || kind.format == DataFormat::kNpy;
    Source source = input::source(kind.format, folder_, "x/file*", has_label_files ? "labels" : "");
    source.memory = memory;
    source.parquet = &parquet_functions();
    if (kind.number.empty()) return source;
    ColumnSection x;
    x.name = "x";
    x.from = kind.number;
    if (kind.format == DataFormat::kWebdataset) x.missing = 0.0;
    if (kind.format == DataFormat::kImages) {
      x.kind = ColumnKind::kImage;
      x.shape = {3, 2, 2};
    }
    ColumnSection label;
    label.name = "k";
    label.from = kind.label;
    label.kind = ColumnKind::kLabel;
    source.columns = {x, label};
    return source;
  }

  // Loads the files and reads all records. Returns the error, or nothing.
  std::optional<std::string> error_of(const Source& source) const {
    const Result<std::unique_ptr<Dataset>> dataset = load_dataset(source);
    if (!dataset) return dataset.error().message;
    std::vector<std::uint64_t> indices((*dataset)->records());
    for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = i;
    std::vector<std::vector<std::byte>> values;
    std::vector<ColumnOut> outs;
    for (const DatasetColumn& column : (*dataset)->columns()) {
      values.emplace_back(indices.size() * column.elements * size_of(column.dtype));
      outs.push_back({{.name = column.name, .dtype = column.dtype, .shape = {column.elements}},
                      values.back(),
                      {.array = outs.size()}});
    }
    const Status gathered = (*dataset)->gather(indices, outs, {});
    return gathered ? std::nullopt : std::optional(gathered.error().message);
  }

  // How the format may be read: into memory, and for each batch if it can be.
  std::vector<std::uint64_t> memories() const {
    const Kind& kind = GetParam();
    if (kind.number.empty() || kind.format == DataFormat::kParquet) return {1 << 30};
    return {1 << 30, 1};
  }

  // Compressed files that are read for each batch need other settings.
  void expect_refused(const std::string& name, const std::string& content, const std::string& what) {
    folder_.write("x/" + name, content);
    const bool is_packed = name.ends_with(".gz");
    for (const std::uint64_t memory : is_packed ? std::vector<std::uint64_t>{1 << 30} : memories()) {
      const std::optional<std::string> error = error_of(source_of(memory));
      ASSERT_TRUE(error.has_value()) << what << ", memory " << memory;
      // Images can't be compressed, whatever the files hold.
      EXPECT_THAT(*error, HasSubstr(is_packed && GetParam().format == DataFormat::kImages ? "x/file" : "x/" + name))
          << what;
      EXPECT_LT(error->size(), 1500u) << what;
    }
    std::filesystem::remove(folder_ / ("x/" + name));
  }

  Folder folder_;
};

INSTANTIATE_TEST_SUITE_P(Formats, BadFiles, testing::ValuesIn(all_kinds()),
                         [](const testing::TestParamInfo<Kind>& of) { return of.param.name; });

TEST_P(BadFiles, GoodOneIsRead) {
  folder_.write("x/file", GetParam().content);
  for (const std::uint64_t memory : memories()) EXPECT_EQ(error_of(source_of(memory)).value_or(""), "");
}

TEST_P(BadFiles, EmptyOneIsRefused) {
  expect_refused("file", "", "empty");
  expect_refused("file.gz", "", "empty, but named .gz");
  if (GetParam().format != DataFormat::kParquet) expect_refused("file.gz", gzip(""), "gzip of nothing");
}

TEST_P(BadFiles, OneOfAnotherFormatIsRefused) {
  for (const Kind& other : all_kinds()) {
    if (other.format == GetParam().format) continue;
    expect_refused("file", other.content, other.name);
    expect_refused("file.gz", gzip(other.content), other.name + " with gzip");
  }
}

TEST_P(BadFiles, TruncatedOneIsRefused) {
  const Kind& kind = GetParam();
  const std::string& content = kind.content;
  // Lines have no end mark, so a line that isn't whole shows the truncation: "0.5" in csv, "1 1:" in libsvm.
  std::vector<std::size_t> sizes;
  if (is_text(kind)) sizes.push_back(content.size() - (kind.format == DataFormat::kCsv ? 3 : 4));
  const std::size_t step = std::max<std::size_t>(1, content.size() / 50);
  for (std::size_t size = 1; !is_text(kind) && size < content.size() - kind.cut; size += step) sizes.push_back(size);
  for (const std::size_t size : sizes)
    expect_refused("file", content.substr(0, size), std::to_string(size) + " of " + std::to_string(content.size()));
}

TEST_P(BadFiles, TruncatedCompressedOneIsRefused) {
  if (GetParam().format == DataFormat::kParquet) return;  // is compressed inside
  const std::string packed = gzip(GetParam().content);
  for (const std::size_t size : {packed.size() - 1, packed.size() / 2, std::size_t{12}})
    expect_refused("file.gz", packed.substr(0, size), std::to_string(size));
}

TEST_P(BadFiles, DamagedOneIsReadOrRefused) {
  for (std::uint64_t seed = 0; seed < kRounds; ++seed) {
    Random random(seed);
    folder_.write("x/file", damage(GetParam().content, random));
    for (const std::uint64_t memory : memories()) {
      const std::string error = error_of(source_of(memory)).value_or("x/file is read");
      EXPECT_THAT(error, HasSubstr("x/file")) << "seed " << seed;
    }
  }
}

TEST_P(BadFiles, OneThatIsNoFileIsRefused) {
  std::filesystem::create_directories(folder_ / "x/file");
  std::filesystem::create_symlink(folder_ / "nowhere", folder_ / "x/file-link");
  for (const char* const gone : {"x/file", "x/file-link"}) {
    for (const std::uint64_t memory : memories())
      EXPECT_THAT(error_of(source_of(memory)).value_or(""), HasSubstr(gone));
    std::filesystem::remove(folder_ / gone);
  }
}

}  // namespace
}  // namespace disttrain::input
