// Windows of bytes from text files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/builtin/builtin.h"
#include "input/fits.h"
#include "tests/input/input_files.h"

namespace disttrain::input {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class TextFiles : public testing::Test {
 protected:
  Source text_source(std::uint64_t window, std::uint64_t stride) const {
    Source source;
    source.format = DataFormat::kText;
    source.path = folder_.path();
    source.files = "*.txt";
    source.window = window;
    source.stride = stride;
    return source;
  }

  static std::vector<std::string> windows_of(const Dataset& dataset) {
    std::vector<std::string> windows;
    const std::uint64_t size = dataset.columns().at(0).elements;
    for (std::uint64_t i = 0; i < dataset.records(); ++i) {
      const auto window = gather<std::uint8_t>(dataset, {i}, 0, DType::kUint8, size);
      windows.emplace_back(window.begin(), window.end());
    }
    return windows;
  }

  Folder folder_;
};

TEST_F(TextFiles, WindowsBeginEveryStrideBytesAndStayWithinTheirFile) {
  folder_.write("a.txt", "abcdefgh");
  folder_.write("b.txt", "xyz");
  folder_.write("c.txt", "012345");
  const auto dataset = load_dataset(text_source(4, 3));
  ASSERT_TRUE(dataset) << dataset.error().message;
  EXPECT_EQ((*dataset)->bytes_read(), 17U);
  EXPECT_THAT(windows_of(**dataset), ElementsAre("abcd", "defg", "0123"));
  EXPECT_EQ((*dataset)->columns().size(), 1U);
  EXPECT_EQ((*dataset)->columns()[0].largest, 'z');
}

TEST_F(TextFiles, PackedFilesAreRead) {
  folder_.write("a.txt.gz", gzip("abcdef"));
  Source source = text_source(3, 1);
  source.files = "*.gz";
  const auto dataset = load_dataset(source);
  ASSERT_TRUE(dataset) << dataset.error().message;
  EXPECT_THAT(windows_of(**dataset), ElementsAre("abc", "bcd", "cde", "def"));
}

TEST_F(TextFiles, RecordsMayBeSelected) {
  folder_.write("a.txt", "abcd");
  folder_.write("b.txt", "efgh");
  Source source = text_source(2, 1);
  source.begin = 2;
  source.end = 5;
  const auto dataset = load_dataset(source);
  ASSERT_TRUE(dataset) << dataset.error().message;
  EXPECT_THAT(windows_of(**dataset), ElementsAre("cd", "ef", "fg"));
}

TEST_F(TextFiles, LongerThanAChunkAreWhole) {
  std::string content(3'000'000, ' ');
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>('a' + i * i % 26);
  folder_.write("a.txt", content);
  const auto dataset = load_dataset(text_source(1'000'000, 1'000'000));
  ASSERT_TRUE(dataset) << dataset.error().message;
  const std::vector<std::string> windows = windows_of(**dataset);
  ASSERT_EQ(windows.size(), 3U);
  EXPECT_EQ(windows[0] + windows[1] + windows[2], content);
}

TEST_F(TextFiles, TokensMayBeWiderThanBytes) {
  folder_.write("a.txt", "\xff\x01");
  const auto dataset = load_dataset(text_source(2, 1));
  ASSERT_TRUE(dataset) << dataset.error().message;
  EXPECT_THAT(gather<std::int32_t>(**dataset, {0}, 0, DType::kInt32, 2), ElementsAre(255, 1));
}

TEST_F(TextFiles, ShorterThanAWindowAreRefused) {
  folder_.write("a.txt", "abc");
  folder_.write("b.txt", "");
  const auto dataset = load_dataset(text_source(4, 3));
  ASSERT_FALSE(dataset);
  EXPECT_EQ(dataset.error().code, ErrorCode::kData);
  EXPECT_THAT(dataset.error().message, HasSubstr("the largest of these files is shorter than a record of 4 bytes"));
}

TEST_F(TextFiles, AnEvaluationPredictsEachByteOnce) {
  DataSection data;
  data.format = DataFormat::kText;
  data.window = 33;
  EXPECT_EQ(training_source(data).window, 33U);
  EXPECT_EQ(training_source(data).stride, 32U) << "0 stands for this";
  data.stride = 1;
  EXPECT_EQ(training_source(data).stride, 1U);
  EXPECT_EQ(evaluation_source(data, {}).stride, 32U);
  data.window = 1;
  EXPECT_EQ(evaluation_source(data, {}).stride, 1U);
}

TEST_F(TextFiles, MustFitTheTransformer) {
  folder_.write("a.txt", "abcdefgh");
  ModelSection model;
  model.builtin = "transformer";
  model.transformer.context = 3;
  const Source source = text_source(4, 3);
  const auto dataset = load_dataset(source);
  ASSERT_TRUE(dataset);
  EXPECT_TRUE(fits(**dataset, builtin_model(model).value(), model, source));

  model.transformer.context = 4;
  Status fit = fits(**dataset, builtin_model(model).value(), model, source);
  ASSERT_FALSE(fit);
  EXPECT_EQ(fit.error().code, ErrorCode::kConfig);
  EXPECT_THAT(fit.error().message, HasSubstr("4 bytes each, but the model takes 5: set data.window to 5"));

  model.transformer.context = 3;
  model.transformer.vocabulary = 'h';
  fit = fits(**dataset, builtin_model(model).value(), model, source);
  ASSERT_FALSE(fit);
  EXPECT_EQ(fit.error().code, ErrorCode::kData);
  EXPECT_THAT(fit.error().message,
              HasSubstr("have values from 0 to 104, but the model's column \"tokens\" takes 0 to 103"));
}

}  // namespace
}  // namespace disttrain::input
