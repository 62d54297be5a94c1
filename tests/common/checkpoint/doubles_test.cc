// Checkpoints of models with float64 variables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "common/checkpoint/warm_start.h"
#include "common/checkpoint/weights_file.h"
#include "common/doubles.h"
#include "tests/common/checkpoint/memory_files.h"
#include "tests/common/checkpoint/small_job.h"

namespace disttrain::checkpoint {
namespace {

using testing::HasSubstr;

class Doubles : public testing::Test {
 protected:
  Doubles() { EXPECT_TRUE(files_.make_directory("/job")); }

  // Opens a checkpoint of step 100, whose words are those of held_by().
  Weights saved(const Layout& layout) {
    return Weights::of_checkpoint(files_, std::move(*open_checkpoint(files_, *save(files_, "/job", layout, 1, 100))))
        .value();
  }
  // Element i of a float64 variable that begins at flat word `begin` of that checkpoint.
  static double saved_double(std::uint64_t begin, std::uint64_t i) {
    const auto word = [](std::uint64_t at) { return std::bit_cast<std::uint32_t>(100.0F + static_cast<float>(at)); };
    return std::bit_cast<double>(word(begin + 2 * i) | std::uint64_t{word(begin + 2 * i + 1)} << 32);
  }
  static std::vector<double> doubles_of(Weights& weights, const std::string& name) {
    const std::size_t v = *weights.find(name);
    std::vector<double> values(weights.variables()[v].elements);
    const Status read = weights.read(v, 0, std::span(values));
    EXPECT_TRUE(read) << read.error().message;
    return values;
  }

  MemoryFiles files_;
  const Layout layout_ = layout_of(model_with_doubles(), 2, 4);
};

TEST_F(Doubles, AnyLayoutReadsWhatAnyOtherWrote) {
  std::uint64_t step = 0;
  for (const std::uint32_t shards : {1U, 2U, 3U})
    for (const std::uint64_t bucket : {4U, 6U, 12U, 36U}) {
      if (shards * bucket > 57) continue;
      const auto path = save(files_, "/job", layout_of(model_with_doubles(), shards, bucket), 1, ++step);
      ASSERT_TRUE(path) << path.error().message;
      const Status loaded = load(files_, *open_checkpoint(files_, *path), layout_);
      ASSERT_TRUE(loaded) << loaded.error().message;
    }
}

TEST_F(Doubles, OnlyAManifestWithDoublesHasTheNewerFormat) {
  const std::string with = *save(files_, "/job", layout_, 1, 1);
  const std::string without = *save(files_, "/job", layout_of(small_model(), 2, 4), 1, 2);
  EXPECT_THAT(*read_text(files_, with + "/" + kManifestName, 1 << 20), HasSubstr("\"format\": 3"));
  EXPECT_THAT(*read_text(files_, without + "/" + kManifestName, 1 << 20), HasSubstr("\"format\": 2"));
  const Manifest manifest = open_checkpoint(files_, with)->manifest;
  EXPECT_EQ(manifest.variables, variables_of(layout_));
  EXPECT_EQ(manifest.variables[2].dtype, disttrain::DType::kFloat64);
}

TEST_F(Doubles, AVariableOfAnotherTypeIsAnotherModel) {
  const std::string path = *save(files_, "/job", layout_of(small_model(), 1, 100), 1, 1);
  const Status loaded = load(files_, *open_checkpoint(files_, path), layout_);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, ErrorCode::kConfig);
  EXPECT_THAT(loaded.error().message, HasSubstr("mean [3] float32, the job's is mean [3] float64"));
}

TEST_F(Doubles, AreReadAsTheyAreFromAnyPiece) {
  Weights weights = saved(layout_);
  EXPECT_EQ(weights.variables()[0].dtype, DType::kF32);
  EXPECT_EQ(weights.variables()[2].dtype, DType::kF64);
  for (std::uint64_t begin = 0; begin <= 15; ++begin)
    for (std::uint64_t end = begin; end <= 15; ++end) {
      std::vector<double> got(end - begin);
      ASSERT_TRUE(weights.read(2, begin, std::span(got)));
      for (std::uint64_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], saved_double(0, begin + i));
    }
  EXPECT_EQ(doubles_of(weights, "w0")[1], 137.0);  // the word after 36 words of doubles and one of w0
}

TEST_F(Doubles, AreExportedAsTheyAreUnlessAnotherTypeIsAskedFor) {
  Weights weights = saved(layout_);
  ASSERT_TRUE(write_weights(files_, "/plain", weights,
                            {{"w0", 0, DType::kF32}, {"mean", 1, DType::kF64}, {"w1", 2, DType::kF64}}));
  Weights plain = Weights::open(files_, "/plain").value();
  EXPECT_EQ(plain.variables()[0].dtype, DType::kF32);
  EXPECT_EQ(plain.variables()[1].dtype, DType::kF64);
  EXPECT_EQ(plain.variables()[2].dtype, DType::kF64);
  for (const char* name : {"w0", "mean", "w1"}) EXPECT_EQ(doubles_of(plain, name), doubles_of(weights, name)) << name;

  ASSERT_TRUE(write_weights(files_, "/single", weights, {{"w1", 2, DType::kF32}}));
  Weights single = Weights::open(files_, "/single").value();
  EXPECT_EQ(single.variables()[0].dtype, DType::kF32);
  for (std::size_t i = 0; i < 15; ++i)
    EXPECT_EQ(doubles_of(single, "w1")[i], static_cast<double>(static_cast<float>(saved_double(0, i))));
}

TEST_F(Doubles, AWarmStartTakesThemAndRoundsThemForFloatsOnly) {
  const std::string checkpoint = *save(files_, "/job", layout_, 1, 100);
  for (std::uint32_t s = 0; s < 2; ++s) {
    std::vector<float> held(shard_words(layout_, ShardId(s)));
    ASSERT_TRUE(read_parameters(files_, checkpoint, {}, layout_, ShardId(s), held));
    EXPECT_EQ(held, held_by(layout_, s, 100.0F, 0).parameters);
  }
  const Layout floats = layout_of(small_model(), 1, 100);
  std::vector<float> held(39);
  ASSERT_TRUE(read_parameters(files_, checkpoint, {}, floats, ShardId(0), held));
  for (std::size_t i = 0; i < 15; ++i) EXPECT_EQ(held[i], static_cast<float>(saved_double(0, i)));
}

TEST_F(Doubles, AWarmStartTakesFloatsForThem) {
  const std::string checkpoint = *save(files_, "/job", layout_of(small_model(), 1, 100), 1, 100);
  const Layout whole = layout_of(model_with_doubles(), 1, 36);
  std::vector<float> held(57);
  ASSERT_TRUE(read_parameters(files_, checkpoint, {}, whole, ShardId(0), held));
  const std::span<const double> doubles = as_doubles(std::span<const float>(held).first(36));
  for (std::size_t i = 0; i < doubles.size(); ++i) EXPECT_EQ(doubles[i], 100.0 + static_cast<double>(i));
  EXPECT_EQ(held[36], 118.0F);
}

}  // namespace
}  // namespace disttrain::checkpoint
