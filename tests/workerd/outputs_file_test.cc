// The formats of the file that `disttrain predict` writes.
#include "workerd/predict/outputs_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "input/parquet/parquet_file.h"
#include "tests/input/input_files.h"

namespace disttrain::workerd {
namespace {

using testing::ElementsAre;

class Outputs : public testing::Test {
 protected:
  // Writes three rows of two columns.
  std::string write(const std::string& name) {
    const std::string path = folder_ / name;
    Result<OutputsFile> file = OutputsFile::open(path, 3);
    EXPECT_TRUE(file) << file.error().message;
    EXPECT_TRUE(file->add(std::vector<float>{0.5F, -1, 2, 3}, 2));
    EXPECT_FALSE(std::filesystem::exists(path));
    EXPECT_TRUE(file->add(std::vector<float>{1e-30F, 5}, 2));
    EXPECT_TRUE(file->finish());
    return path;
  }

  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_.path()), {}));
  }

  input::Folder folder_;
};

TEST_F(Outputs, CsvHasAHeadLineAndALineForEachRow) {
  EXPECT_EQ(input::read_whole(write("a.csv")), "output_0,output_1\n0.5,-1\n2,3\n1e-30,5\n");
  EXPECT_EQ(files(), 1U);
}

TEST_F(Outputs, ParquetHasAColumnOfFloatsForEachOutput) {
  const auto file = input::ParquetFile::open(
      write("a.parquet"), {{"output_0", input::ValueKind::kFloat}, {"output_1", input::ValueKind::kFloat}});
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_THAT((*file)->groups(), ElementsAre(3));
  ASSERT_TRUE((*file)->start(0));
  input::Table table;
  ASSERT_TRUE(*(*file)->next(table));
  EXPECT_THAT(table.columns[0].floats, ElementsAre(0.5F, 2, 1e-30F));
  EXPECT_THAT(table.columns[1].floats, ElementsAre(-1, 3, 5));
  EXPECT_TRUE(table.columns[0].lengths.empty());
  EXPECT_EQ(files(), 1U);
}

TEST_F(Outputs, RowsOfAnotherLengthAreRefusedAndNoFileStays) {
  for (const char* name : {"a.npy", "a.csv", "a.parquet"}) {
    Result<OutputsFile> file = OutputsFile::open(folder_ / name, 3);
    ASSERT_TRUE(file);
    EXPECT_TRUE(file->add(std::vector<float>{1, 2}, 2));
    EXPECT_EQ(file->add(std::vector<float>{1, 2, 3}, 3).error().code, ErrorCode::kData);
  }
  EXPECT_EQ(files(), 0U);
}

TEST_F(Outputs, OtherNamesAndFoldersThatDontExistAreRefused) {
  EXPECT_EQ(OutputsFile::open(folder_ / "a.txt", 3).error().code, ErrorCode::kUsage);
  for (const char* name : {"no/a.npy", "no/a.csv", "no/a.parquet"})
    EXPECT_EQ(OutputsFile::open(folder_ / name, 3).error().code, ErrorCode::kFailed) << name;
}

}  // namespace
}  // namespace disttrain::workerd
