#include <gtest/gtest.h>

#include <limits>

#include "input/idx.h"
#include "tests/input/input_files.h"

namespace disttrain::input {
namespace {

constexpr auto kIdx = DataFormat::kIdx;
using Floats = std::vector<float>;
using Labels = std::vector<std::int64_t>;

class Idx : public testing::Test {
 protected:
  // Two records of 2 x 2 pixels.
  void write_two(const std::string& prefix = "train") const {
    folder_.write(prefix + "-images-idx3-ubyte", idx_bytes({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 255}));
    folder_.write(prefix + "-labels-idx1-ubyte", idx_bytes({2}, {7, 0}));
  }

  Folder folder_;
};

TEST_F(Idx, PlainFilesAreReadAndLabelsFoundByConvention) {
  write_two();
  const auto dataset = load(source(kIdx, folder_, "train-images-idx3-ubyte"));
  ASSERT_NE(dataset, nullptr);
  EXPECT_EQ(dataset->records(), 2u);
  EXPECT_EQ(input_elements(*dataset), 4u);
  EXPECT_EQ(target_elements(*dataset), 0u);
  EXPECT_EQ(largest_label(*dataset), 7);
  EXPECT_EQ(dataset->bytes_read(), 16u + 8 + 8 + 2);
  const Rows rows = rows_of(*dataset, {1, 0, 1});
  EXPECT_EQ(rows.inputs, (Floats{5, 6, 7, 255, 1, 2, 3, 4, 5, 6, 7, 255}));
  EXPECT_EQ(rows.labels, (Labels{0, 7, 0}));
}

TEST_F(Idx, PackedImagesMayHavePlainLabels) {
  folder_.write("a-images-idx3-ubyte.gz", gzip(idx_bytes({1, 2}, {3, 4})));
  folder_.write("a-labels-idx1-ubyte", idx_bytes({1}, {2}));
  const auto dataset = load(source(kIdx, folder_, "a-images*"));
  ASSERT_NE(dataset, nullptr);
  EXPECT_EQ(all_rows(*dataset).labels, (Labels{2}));
}

TEST(IdxLabels, MayBeCompressedInAnotherWayThanTheImages) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(idx_label_candidates("d/images-idx3"), (Names{"d/labels-idx1", "d/labels-idx1.gz", "d/labels-idx1.zst"}));
  EXPECT_EQ(idx_label_candidates("images.gz"), (Names{"labels.gz", "labels", "labels.zst"}));
  EXPECT_EQ(idx_label_candidates("images.zst"), (Names{"labels.zst", "labels", "labels.gz"}));
  EXPECT_EQ(idx_label_candidates("digits.gz"), Names{});
}

TEST_F(Idx, ScaleMultipliesTheInputs) {
  write_two();
  Source with_scale = source(kIdx, folder_, "train-images*");
  with_scale.scale = 1.0 / 255;
  const auto dataset = load(with_scale);
  ASSERT_NE(dataset, nullptr);
  EXPECT_EQ(rows_of(*dataset, {1}).inputs[3], 255 * static_cast<float>(1.0 / 255));
}

TEST_F(Idx, SeveralFilesAreJoinedInSortedOrder) {
  folder_.write("b-images-idx3-ubyte", idx_bytes({1, 2}, {30, 40}));
  folder_.write("b-labels-idx1-ubyte", idx_bytes({1}, {3}));
  folder_.write("a-images-idx3-ubyte.gz", gzip(idx_bytes({2, 2}, {1, 2, 10, 20})));
  folder_.write("a-labels-idx1-ubyte.gz", gzip(idx_bytes({2}, {0, 1})));
  const auto dataset = load(source(kIdx, folder_, "*-images-*"));
  ASSERT_NE(dataset, nullptr);
  EXPECT_EQ(all_rows(*dataset).inputs, (Floats{1, 2, 10, 20, 30, 40}));
  EXPECT_EQ(all_rows(*dataset).labels, (Labels{0, 1, 3}));
}

TEST_F(Idx, RecordsPickARange) {
  write_two("a");
  write_two("b");
  Source middle = source(kIdx, folder_, "*-images-*");
  middle.begin = 1;
  middle.end = 3;
  const auto dataset = load(middle);
  ASSERT_NE(dataset, nullptr);
  EXPECT_EQ(dataset->records(), 2u);
  EXPECT_EQ(all_rows(*dataset).inputs, (Floats{5, 6, 7, 255, 1, 2, 3, 4}));
  EXPECT_EQ(all_rows(*dataset).labels, (Labels{0, 7}));
}

TEST_F(Idx, LargestLabelIsThatOfTheRange) {
  write_two();
  Source second = source(kIdx, folder_, "train-images*");
  second.begin = 1;
  EXPECT_EQ(largest_label(*load(second)), 0);
}

TEST_F(Idx, RangeBeyondTheRecordsIsRefused) {
  write_two();
  Source far = source(kIdx, folder_, "train-images*");
  far.end = 3;
  expect_error(far, ErrorCode::kConfig, {"data.records = [0, 3]", "[0, 2]"});
  far.begin = 5;
  far.end = 0;
  expect_error(far, ErrorCode::kConfig, {"data.records"});
}

TEST_F(Idx, AllElementTypesAreRead) {
  const auto check = [this](const std::string& content, const Floats& expected) {
    folder_.write("x-images", content);
    const auto dataset = load(source(kIdx, folder_, "x-images", "x-labels"));
    ASSERT_NE(dataset, nullptr);
    EXPECT_EQ(all_rows(*dataset).inputs, expected);
  };
  folder_.write("x-labels", idx_bytes({1}, {0}));
  check(idx<std::int8_t>(0x09, {1, 2}, {-1, 2}), {-1, 2});
  check(idx<std::int16_t>(0x0B, {1, 2}, {-300, 2}), {-300, 2});
  check(idx<std::int32_t>(0x0C, {1, 2}, {-70000, 2}), {-70000, 2});
  check(idx<float>(0x0D, {1, 2}, {0.5F, -2}), {0.5F, -2});
  check(idx<double>(0x0E, {1, 2}, {0.25, -2}), {0.25F, -2});
}

TEST_F(Idx, FractionalLabelsAreTargets) {
  folder_.write("x-images", idx_bytes({2, 1}, {1, 2}));
  folder_.write("x-labels", idx<float>(0x0D, {2, 2}, {0.5F, 1, 1.5F, 2}));
  const auto dataset = load(source(kIdx, folder_, "x-images", "x-labels"));
  ASSERT_NE(dataset, nullptr);
  EXPECT_EQ(target_elements(*dataset), 2u);
  EXPECT_EQ(largest_label(*dataset), -1);
  EXPECT_EQ(rows_of(*dataset, {1}).targets, (Floats{1.5F, 2}));
}

TEST_F(Idx, NegativeLabelsAreTargets) {
  folder_.write("x-images", idx_bytes({2, 1}, {1, 2}));
  folder_.write("x-labels", idx<std::int8_t>(0x09, {2}, {-1, 1}));
  const auto dataset = load(source(kIdx, folder_, "x-images", "x-labels"));
  ASSERT_NE(dataset, nullptr);
  EXPECT_EQ(target_elements(*dataset), 1u);
  EXPECT_EQ(all_rows(*dataset).targets, (Floats{-1, 1}));
}

// ---- what can be wrong ----

// The message must name the key of the folder and not that of the file pattern, because the folder is wrong.
TEST_F(Idx, MissingFolderIsNamedWithItsKey) {
  Source elsewhere = source(kIdx, folder_, "*");
  elsewhere.path = folder_ / "nowhere";
  const std::string folder = "data folder \"" + elsewhere.path + "\"";
  expect_error(elsewhere, ErrorCode::kNoInput,
               {folder + " doesn't exist; set data.path to a folder that holds the files"});
  elsewhere.path_key = "evaluate.path";
  elsewhere.section = "evaluate";
  expect_error(elsewhere, ErrorCode::kNoInput, {folder + " doesn't exist; set evaluate.path to"});
  folder_.write("nowhere", "");
  expect_error(elsewhere, ErrorCode::kNoInput, {folder + " isn't a folder; set evaluate.path to"});
}

TEST_F(Idx, PatternWithoutMatchIsNamed) {
  expect_error(source(kIdx, folder_, "train-*"), ErrorCode::kNoInput,
               {folder_.path(), "data.files = \"train-*\"", "or set data.path"});
}

TEST_F(Idx, KeysAreThoseOfTheSection) {
  Source test = source(kIdx, folder_, "t10k-*");
  test.files_key = "evaluate.files";
  expect_error(test, ErrorCode::kNoInput, {"evaluate.files = \"t10k-*\""});
}

TEST_F(Idx, FolderIsNotAFile) {
  folder_.write("train-images/x", "");
  expect_error(source(kIdx, folder_, "train-images", "train-images"), ErrorCode::kNoInput, {"is a folder"});
}

TEST_F(Idx, MissingLabelsAreNamed) {
  folder_.write("train-images-idx3-ubyte", idx_bytes({1, 1}, {1}));
  expect_error(source(kIdx, folder_, "train-*"), ErrorCode::kNoInput,
               {folder_ / "train-labels-idx1-ubyte", "data.labels"});
}

TEST_F(Idx, LabelsWithoutAConventionMustBeNamed) {
  folder_.write("pixels", idx_bytes({1, 1}, {1}));
  expect_error(source(kIdx, folder_, "pixels"), ErrorCode::kConfig, {folder_ / "pixels", "data.labels"});
}

TEST_F(Idx, SameFilePlainAndPackedIsRefused) {
  write_two();
  folder_.write("train-images-idx3-ubyte.gz", gzip(idx_bytes({1, 1}, {1})));
  expect_error(source(kIdx, folder_, "train-images*"), ErrorCode::kConfig, {"count twice"});
}

TEST_F(Idx, FewerLabelsThanImagesAreCounted) {
  write_two();
  folder_.write("train-labels-idx1-ubyte", idx_bytes({1}, {1}));
  expect_error(source(kIdx, folder_, "train-images*"), ErrorCode::kData,
               {folder_ / "train-labels-idx1-ubyte", "1 labels, expected 2"});
}

TEST_F(Idx, TruncatedValuesAreCounted) {
  write_two();
  folder_.write("train-images-idx3-ubyte", idx_bytes({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7}));
  expect_error(source(kIdx, folder_, "train-images*"), ErrorCode::kData,
               {folder_ / "train-images-idx3-ubyte", "7 bytes of values, expected 8", "[2, 2, 2]"});
}

TEST_F(Idx, TruncatedHeaderIsNamed) {
  write_two();
  for (std::size_t size : {1u, 3u, 9u}) {
    folder_.write("train-images-idx3-ubyte", idx_bytes({2, 2, 2}, {}).substr(0, size));
    expect_error(source(kIdx, folder_, "train-images*"), ErrorCode::kData, {"train-images", "truncated"});
  }
}

TEST_F(Idx, EmptyFileIsNamed) {
  write_two();
  folder_.write("train-images-idx3-ubyte", "");
  expect_error(source(kIdx, folder_, "train-images*"), ErrorCode::kData, {"train-images", "is empty"});
}

TEST_F(Idx, NoRecordsAreAnError) {
  folder_.write("x-images", idx_bytes({0, 4}, {}));
  folder_.write("x-labels", idx_bytes({0}, {}));
  expect_error(source(kIdx, folder_, "x-images"), ErrorCode::kData, {"no records"});
}

TEST_F(Idx, TrailingBytesAreAnError) {
  write_two();
  folder_.write("train-images-idx3-ubyte", idx_bytes({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9}));
  expect_error(source(kIdx, folder_, "train-images*"), ErrorCode::kData, {"train-images", "after the last value"});
}

TEST_F(Idx, WrongMagicIsShown) {
  write_two();
  folder_.write("train-images-idx3-ubyte", "PNG? or what");
  expect_error(source(kIdx, folder_, "train-images*"), ErrorCode::kData, {"50 4e 47 3f", "data.format"});
}

TEST_F(Idx, SizesBeyondTheFileAskForNoMemory) {
  write_two();
  folder_.write("train-images-idx3-ubyte", idx_header(0x08, {0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}) + "abc");
  expect_error(source(kIdx, folder_, "train-images*"), ErrorCode::kData, {"can't hold that many values"});
}

TEST_F(Idx, FilesOfOtherShapesAreNotMixed) {
  write_two();
  expect_error(source(kIdx, folder_, "train-*", "train-labels*"), ErrorCode::kData,
               {"data.files match too many files"});
}

TEST_F(Idx, InputThatIsNotFiniteIsPlaced) {
  folder_.write("x-images", idx<float>(0x0D, {2, 2}, {0, 0, 0, std::numeric_limits<float>::quiet_NaN()}));
  folder_.write("x-labels", idx_bytes({2}, {0, 1}));
  expect_error(source(kIdx, folder_, "x-images"), ErrorCode::kData, {"value 1 of record 1", "finite"});
}

// ---- gzip ----

class PackedIdx : public Idx {
 protected:
  PackedIdx() {
    std::vector<std::uint8_t> pixels(100 * 50);
    for (std::size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<std::uint8_t>(i * i * 7 + i / 3);
    content_ = idx_bytes({100, 50}, pixels);
    packed_ = gzip(content_);
    folder_.write("x-labels.gz", gzip(idx_bytes({100}, std::vector<std::uint8_t>(100, 1))));
  }

  Source write_images(const std::string& bytes) {
    folder_.write("x-images.gz", bytes);
    return source(kIdx, folder_, "x-images.gz");
  }

  std::string content_;
  std::string packed_;
};

TEST_F(PackedIdx, WholeFileIsRead) {
  const auto dataset = load(write_images(packed_));
  ASSERT_NE(dataset, nullptr);
  EXPECT_EQ(rows_of(*dataset, {99}).inputs[49], static_cast<float>(static_cast<std::uint8_t>(content_.back())));
}

TEST_F(PackedIdx, SeveralMembersAreOneContent) {
  EXPECT_NE(load(write_images(gzip(content_.substr(0, 2000)) + gzip(content_.substr(2000)))), nullptr);
}

TEST_F(PackedIdx, TruncationIsSaid) {
  expect_error(write_images(packed_.substr(0, packed_.size() / 2)), ErrorCode::kData, {"x-images.gz", "truncated"});
}

TEST_F(PackedIdx, MissingChecksumIsTruncation) {
  expect_error(write_images(packed_.substr(0, packed_.size() - 4)), ErrorCode::kData, {"x-images.gz", "truncated"});
}

TEST_F(PackedIdx, FlippedBitIsFoundByTheChecksum) {
  std::string damaged = packed_;
  damaged[damaged.size() - 6] = static_cast<char>(damaged[damaged.size() - 6] ^ 1);
  expect_error(write_images(damaged), ErrorCode::kData, {"x-images.gz", "corrupt gzip", "data check"});
}

TEST_F(PackedIdx, SomethingBehindTheLastMemberIsAnError) {
  expect_error(write_images(packed_ + "rest of another file"), ErrorCode::kData, {"x-images.gz", "corrupt gzip"});
}

TEST_F(PackedIdx, NameWithoutGzipInsideIsSaid) {
  expect_error(write_images(content_), ErrorCode::kData, {"x-images.gz", "1f 8b"});
}

TEST_F(PackedIdx, FirstBadFileOfSeveralIsNamedAndTheOthersCounted) {
  write_images("bad");
  folder_.write("y-images.gz", "bad");
  folder_.write("y-labels.gz", gzip(idx_bytes({1}, {1})));
  expect_error(source(kIdx, folder_, "?-images.gz"), ErrorCode::kData,
               {folder_ / "x-images.gz", "; 1 more file can't be read"});
}

TEST(MnistMini, IsRead) {
  Source mini;
  mini.path = DISTTRAIN_TEST_DATA "/mnist-mini";
  mini.files = "train-images-idx3-ubyte*";
  const auto dataset = load(mini);
  ASSERT_NE(dataset, nullptr);
  EXPECT_EQ(dataset->records(), 6000u);
  EXPECT_EQ(input_elements(*dataset), 784u);
  EXPECT_EQ(largest_label(*dataset), 9);
  EXPECT_EQ(rows_of(*dataset, {0, 1, 2}).labels, (Labels{5, 0, 4}));  // MNIST's first digits
}

}  // namespace
}  // namespace disttrain::input
