// Takes files of the formats without [data.columns], and changes, removes or inserts bytes. Each file must load, or
// fail with a message that names the file. With a sanitizer, the test also finds bad memory accesses.
#include <gtest/gtest.h>

#include "tests/input/damage.h"
#include "tests/input/input_files.h"

namespace disttrain::input {
namespace {

constexpr int kRounds = 400;

void survive(DataFormat format, const std::string& name, const std::string& labels, const std::string& content,
             const std::string& good_labels) {
  const Folder folder;
  if (!labels.empty()) folder.write(labels, good_labels);
  int loaded = 0;
  for (std::uint64_t seed = 0; seed < kRounds; ++seed) {
    Random random(seed);
    const std::string file = folder.write(name, damage(content, random));
    const Result<std::unique_ptr<Dataset>> result = load_dataset(source(format, folder, name, labels));
    if (result) {
      ++loaded;
      all_rows(**result);
    } else {
      EXPECT_NE(result.error().message.find(folder.path()), std::string::npos)
          << "seed " << seed << ": " << result.error().message;
    }
  }
  EXPECT_LT(loaded, kRounds) << "no damage was ever found";
}

const std::string kPixels = idx_bytes({6, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6});
const std::string kLabels = idx_bytes({6}, {0, 1, 2, 3, 4, 5});
const std::string kNpyLabels = npy<std::int32_t>("<i4", "(4,)", {0, 1, 2, 3});
const std::string kTable = "a,b,\"c\"\n1,2,cat\n3,4,\"dog\"\n5.5,-6e2,cat\n";

TEST(DamagedFiles, IdxIsSurvived) {
  survive(DataFormat::kIdx, "images", "labels", kPixels, kLabels);
}

TEST(DamagedFiles, IdxLabelsAreSurvived) {
  survive(DataFormat::kIdx, "labels", "labels", kLabels, kLabels);
}

TEST(DamagedFiles, GzipIsSurvived) {
  survive(DataFormat::kIdx, "images.gz", "labels", gzip(kPixels), kLabels);
}

TEST(DamagedFiles, NpyIsSurvived) {
  survive(DataFormat::kNpy, "x.npy", "y.npy", npy<double>("<f8", "(4, 2)", {1, 2, 3, 4, 5, 6, 7, 8}), kNpyLabels);
}

TEST(DamagedFiles, CsvIsSurvived) {
  survive(DataFormat::kCsv, "a.csv", "", kTable, "");
}

TEST(DamagedFiles, PackedCsvIsSurvived) {
  survive(DataFormat::kCsv, "a.csv.gz", "", gzip(kTable), "");
}

TEST(DamagedFiles, RandomBytesAreSurvived) {
  const Folder folder;
  folder.write("labels", kLabels);
  Random random(7);
  for (int round = 0; round < kRounds; ++round) {
    std::string bytes(random.below(200), '\0');
    for (char& byte : bytes) byte = static_cast<char>(random.below(256));
    folder.write("any", bytes);
    for (const DataFormat format : {DataFormat::kIdx, DataFormat::kNpy}) {
      EXPECT_FALSE(load_dataset(source(format, folder, "any", "labels")));
    }
    EXPECT_FALSE(load_dataset(source(DataFormat::kCsv, folder, "any"))) << round;
  }
}

}  // namespace
}  // namespace disttrain::input
