// Reads weights from checkpoints and from safetensors files of other programs, and gives a job its first parameters
// from them.
#include "common/checkpoint/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>

#include "common/checkpoint/disk_files.h"
#include "common/checkpoint/warm_start.h"
#include "common/checkpoint/weights_file.h"
#include "tests/common/checkpoint/memory_files.h"
#include "tests/common/checkpoint/small_job.h"
#include "tests/shell_word.h"

namespace disttrain::checkpoint {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct Given {
  std::string name;
  std::vector<std::uint64_t> shape;
  std::vector<float> values;
};

void write_f32(Files& files, const std::string& path, const std::vector<Given>& given) {
  std::vector<Tensor> tensors;
  std::string data;
  for (const Given& one : given) {
    const auto bytes = std::as_bytes(std::span(one.values));
    tensors.push_back({one.name, DType::kF32, one.shape, data.size(), data.size() + bytes.size()});
    data.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  ASSERT_TRUE(write_text(files, path, encode_header(tensors, {}) + data));
}

// The variables of the small model; adjacent values differ.
std::vector<Given> small_weights() {
  std::vector<Given> given;
  float value = 0.5F;
  for (const VariableSpec& variable : small_model().variables) {
    given.push_back({variable.name, variable.shape, {}});
    for (std::uint64_t i = 0; i < element_count(variable); ++i) given.back().values.push_back(value++);
  }
  return given;
}

// The content of a shard if the model's variables, in order, have these values.
std::vector<float> expected_of(const Layout& layout, std::uint32_t shard, const std::vector<Given>& given) {
  std::vector<float> expected(shard_words(layout, ShardId(shard)));
  const std::vector<VariableEntry> variables = variables_of(layout);
  for (std::size_t v = 0; v < variables.size(); ++v)
    for (const SliceEntry& slice : variables[v].slices)
      for (std::uint64_t i = 0; slice.shard == shard && i < slice.words; ++i)
        expected[slice.offset + i] = given[v].values[slice.begin + i];
  return expected;
}

class WarmStart : public testing::Test {
 protected:
  WarmStart() {
    for (const char* folder : {"/job", "/other"}) EXPECT_TRUE(memory_.make_directory(folder));
  }

  Status read(const std::string& path, const std::map<std::string, std::string>& init_map = {}) {
    return read_with(memory_, path, init_map);
  }
  // Reads the parameters of all shards of the layout into held_.
  Status read_with(Files& files, const std::string& path, const std::map<std::string, std::string>& init_map) {
    held_.clear();
    for (std::uint32_t s = 0; s < layout_.shards; ++s) {
      held_.emplace_back(shard_words(layout_, ShardId(s)), -1.0F);
      if (Status done = read_parameters(files, path, init_map, layout_, ShardId(s), held_.back()); !done) return done;
    }
    return {};
  }
  void expect_holds(const std::vector<Given>& given) {
    for (std::uint32_t s = 0; s < layout_.shards; ++s) EXPECT_EQ(held_[s], expected_of(layout_, s, given)) << s;
  }
  std::string error(const std::string& path, const std::map<std::string, std::string>& init_map = {},
                    ErrorCode code = ErrorCode::kConfig) {
    const Status done = read(path, init_map);
    EXPECT_FALSE(done);
    if (done) return "";
    EXPECT_EQ(done.error().code, code) << done.error().message;
    return done.error().message;
  }

  MemoryFiles memory_;
  const Layout layout_ = layout_of(small_model(), 3, 4);
  std::vector<std::vector<float>> held_;
};

TEST_F(WarmStart, ACheckpointOfAnyLayoutGivesEachShardItsOwn) {
  for (const Layout& from : {layout_of(small_model(), 1, 1000), layout_of(small_model(), 2, 5)}) {
    const std::string folder = "/job" + std::to_string(from.shards);
    ASSERT_TRUE(memory_.make_directory(folder));
    const Result<std::string> path = save(memory_, folder, from, 1, 100, 2);
    ASSERT_TRUE(path);
    const Status done = read(*path);
    ASSERT_TRUE(done) << done.error().message;
    for (std::uint32_t s = 0; s < layout_.shards; ++s) EXPECT_EQ(held_[s], held_by(layout_, s, 100.0F, 0).parameters);
  }
}

TEST_F(WarmStart, AveragesAreReadInPlaceOfTheParameters) {
  const Layout one = layout_of(small_model(), 1, 1000);
  for (const bool has_average : {false, true}) {
    const std::uint64_t step = has_average ? 200 : 100;
    const Result<std::string> path = save(memory_, "/job", one, 1, step, 2, step, has_average);
    ASSERT_TRUE(path);
    Result<OpenCheckpoint> open = open_checkpoint(memory_, *path);
    ASSERT_TRUE(open);
    Result<Weights> weights = Weights::of_checkpoint(memory_, std::move(*open), Weights::Slots::kAverage);
    ASSERT_EQ(weights.has_value(), has_average);
    if (!has_average) {
      EXPECT_EQ(weights.error().code, ErrorCode::kConfig);
      EXPECT_NE(weights.error().message.find("has no moving averages"), std::string::npos);
      continue;
    }
    ASSERT_EQ(weights->variables().size(), one.model.variables.size());
    std::vector<float> w1(15);
    ASSERT_TRUE(weights->read(*weights->find("w1"), 0, w1));
    const std::vector<float> averages = held_by(one, 0, 200.0F, 2).slots[1];
    EXPECT_TRUE(std::equal(w1.begin(), w1.end(), averages.begin()));
  }
}

TEST_F(WarmStart, AJobsFolderMeansItsNewest) {
  for (std::uint64_t step : {100, 300, 200}) ASSERT_TRUE(save(memory_, "/job", layout_, 1, step, 1, step));
  ASSERT_TRUE(read("/job"));
  EXPECT_EQ(held_[0], held_by(layout_, 0, 300.0F, 0).parameters);
}

TEST_F(WarmStart, ANewestThatCantBeReadIsAnErrorAndStaysWhereItIs) {
  ASSERT_TRUE(save(memory_, "/job", layout_, 1, 100));
  const std::string newest = *save(memory_, "/job", layout_, 1, 200);
  memory_.content(newest + "/" + kManifestName).resize(10);
  EXPECT_THAT(error("/job", {}, ErrorCode::kData), HasSubstr(newest));
  EXPECT_EQ(list_checkpoints(memory_, "/job")->size(), 2u);
}

TEST_F(WarmStart, DamageOfACheckpointIsFound) {
  const std::string path = *save(memory_, "/job", layout_, 1, 100, 0);
  memory_.content(path + "/" + shard_file_name(1, 3)).back() ^= std::byte{1};
  EXPECT_THAT(error(path, {}, ErrorCode::kData), HasSubstr(shard_file_name(1, 3)));
}

TEST_F(WarmStart, OneFileOfOthersGivesEachShardItsOwn) {
  write_f32(memory_, "/other/some.safetensors", small_weights());
  const Status done = read("/other/some.safetensors");
  ASSERT_TRUE(done) << done.error().message;
  expect_holds(small_weights());
}

// A shard that doesn't ask for a long time counts as hung.
TEST_F(WarmStart, AHeaderOfManyTensorsIsReadWithManyPausesAndCanBeCancelled) {
  std::vector<Tensor> tensors;
  for (std::uint64_t i = 0; i < 100'000; ++i) tensors.push_back({"t" + std::to_string(i), DType::kU8, {1}, i, i + 1});
  ASSERT_TRUE(write_text(memory_, "/other/f", encode_header(tensors, {}) + std::string(tensors.size(), 'x')));
  std::vector<float> held(shard_words(layout_, ShardId(0)));
  const auto read_until = [&](int last) {
    int asked = 0;
    const Status read =
        read_parameters(memory_, "/other/f", {}, layout_, ShardId(0), held, [&asked, last] { return ++asked == last; });
    EXPECT_FALSE(read);
    return read ? std::pair(ErrorCode(), 0) : std::pair(read.error().code, asked);
  };
  const auto [code, asked] = read_until(-1);
  EXPECT_EQ(code, ErrorCode::kConfig);  // the file has none of the model's variables
  EXPECT_GE(asked, 10);
  for (int last = 1; last <= asked; ++last) EXPECT_EQ(read_until(last), std::pair(ErrorCode::kTemporary, last));
}

TEST_F(WarmStart, AFolderWithModelSafetensorsIsRead) {
  write_f32(memory_, "/other/model.safetensors", small_weights());
  ASSERT_TRUE(read("/other"));
  expect_holds(small_weights());
}

class Sharded : public WarmStart {
 protected:
  Sharded() {
    const std::vector<Given> given = small_weights();
    write_f32(memory_, "/other/model-00001-of-00002.safetensors", {given[2], given[0], {"unused", {1}, {9.0F}}});
    write_f32(memory_, "/other/model-00002-of-00002.safetensors", {given[1]});
  }
  void index(const std::string& weight_map) {
    ASSERT_TRUE(write_text(memory_, "/other/model.safetensors.index.json", "{\"weight_map\": " + weight_map + "}"));
  }
};

TEST_F(Sharded, AFolderWithAnIndexIsRead) {
  index(R"({"w0": "model-00001-of-00002.safetensors", "w1": "model-00001-of-00002.safetensors",
            "mean": "model-00002-of-00002.safetensors"})");
  const Status done = read("/other");
  ASSERT_TRUE(done) << done.error().message;
  expect_holds(small_weights());
}

TEST_F(Sharded, AnIndexThatNamesAMissingFileIsAnError) {
  index(R"({"w0": "model-00003-of-00003.safetensors"})");
  EXPECT_THAT(error("/other", {}, ErrorCode::kNoInput), HasSubstr("model-00003-of-00003"));
}

TEST_F(Sharded, ReadingOfAnIndexCanBeCancelled) {
  index(R"({"w0": "model-00003-of-00003.safetensors"})");
  const auto weights = Weights::open(memory_, "/other", [] { return true; });
  ASSERT_FALSE(weights);
  EXPECT_EQ(weights.error().code, ErrorCode::kTemporary) << weights.error().message;
}

TEST_F(Sharded, AnIndexThatNamesAMissingTensorIsAnError) {
  index(R"({"w9": "model-00002-of-00002.safetensors"})");
  EXPECT_THAT(error("/other", {}, ErrorCode::kData), HasSubstr("has no w9"));
}

TEST_F(Sharded, AnIndexThatPointsElsewhereIsRefused) {
  index(R"({"w0": "../job/x.safetensors"})");
  EXPECT_THAT(error("/other", {}, ErrorCode::kData), HasSubstr("the name of a file in the same folder"));
}

TEST_F(Sharded, AnIndexThatIsNoJsonIsRefused) {
  index("[");
  EXPECT_THAT(error("/other", {}, ErrorCode::kData), HasSubstr("weight_map"));
}

TEST_F(WarmStart, NamesAreMappedFromTheirsToOurs) {
  std::vector<Given> theirs = small_weights();
  theirs[0].name = "fc1.weight";
  theirs[2].name = "fc2.weight";
  write_f32(memory_, "/other/model.safetensors", theirs);
  const Status done = read("/other", {{"fc1.weight", "w0"}, {"fc2.weight", "w1"}});
  ASSERT_TRUE(done) << done.error().message;
  expect_holds(small_weights());
}

TEST_F(WarmStart, AMissingVariableIsNamedWithTheNearestAndTheFirstTen) {
  std::vector<Given> theirs = small_weights();
  theirs[1].name = "maen";
  for (int i = 0; i < 12; ++i) theirs.push_back({"extra" + std::to_string(i), {1}, {0.0F}});
  write_f32(memory_, "/other/model.safetensors", theirs);
  EXPECT_THAT(error("/other"), AllOf(HasSubstr("the file has no mean [3]; did you mean \"maen\"?"),
                                     HasSubstr("none of these variables of the file: maen, extra0"),
                                     HasSubstr("extra8 and 3 more"), Not(HasSubstr("extra9")), Not(HasSubstr("w0, ")),
                                     HasSubstr("init_map"), HasSubstr("/other/model.safetensors")));
}

TEST_F(WarmStart, AllThatIsWrongIsSaidAtOnce) {
  std::vector<Given> theirs = small_weights();
  theirs[0].shape = {3, 7};
  theirs.erase(theirs.begin() + 1);
  write_f32(memory_, "/other/model.safetensors", theirs);
  EXPECT_THAT(error("/other"), AllOf(HasSubstr("the file's w0 has shape [3, 7]; the model expects [7, 3]"),
                                     HasSubstr("the file has no mean [3]"), Not(HasSubstr("uses none of these"))));
}

TEST_F(WarmStart, AMapIsCheckedOnBothSides) {
  write_f32(memory_, "/other/model.safetensors", small_weights());
  EXPECT_THAT(error("/other", {{"w00", "w0"}}),
              HasSubstr("names \"w00\", which isn't in the file; did you mean \"w0\"?"));
  EXPECT_THAT(error("/other", {{"w0", "W9"}}),
              HasSubstr("names \"W9\", which isn't in the model (it has w0, mean, w1)"));
  EXPECT_THAT(error("/other", {{"mean", "w0"}, {"w1", "w0"}}), HasSubstr("gives \"w0\" two sources, \"mean\" and"));
  EXPECT_THAT(error("/other", {{"w0", "w1"}}), HasSubstr("maps w0 to w1, so the model's w0 gets no values"));
}

TEST_F(WarmStart, IgnoredVariablesAreNamedUpToTen) {
  std::vector<Given> theirs = small_weights();
  theirs[0].name = "first";
  const auto ignored = [&](const std::string& path) {
    write_f32(memory_, path, theirs);
    return ignored_parameters(memory_, path, {{"first", "w0"}}, small_model()).value();
  };
  EXPECT_EQ(ignored("/other/a"), "");
  theirs.push_back({"extra0", {1}, {0.0F}});
  EXPECT_EQ(ignored("/other/b"),
            "checkpoint.init_from: 1 variable of /other/b is ignored, because the job trains no variable "
            "of this name: extra0; frozen variables keep the values of the job's program");
  for (int i = 1; i < 12; ++i) theirs.push_back({"extra" + std::to_string(i), {1}, {0.0F}});
  EXPECT_THAT(ignored("/other/c"),
              AllOf(HasSubstr("12 variables of "), HasSubstr(": extra0, extra1, "), HasSubstr(" and 2 more;")));
}

// Each of the three shards looks only at its own values.
TEST_F(WarmStart, AValueThatIsntFiniteIsNamedWithItsVariable) {
  std::vector<Given> theirs = small_weights();
  theirs[2].name = "fc2.weight";
  theirs[2].values[13] = std::numeric_limits<float>::quiet_NaN();
  theirs[2].values[14] = std::numeric_limits<float>::infinity();
  write_f32(memory_, "/other/model.safetensors", theirs);
  EXPECT_THAT(
      error("/other", {{"fc2.weight", "w1"}}, ErrorCode::kData),
      AllOf(HasSubstr("/other/model.safetensors: the file's fc2.weight (for w1) has a value that is NaN or "
                      "infinite as float32, at index 13 of its 15 values in row-major order; correct the file")));
}

TEST_F(WarmStart, NothingThereIsNoInput) {
  EXPECT_THAT(error("/nowhere", {}, ErrorCode::kNoInput), HasSubstr("/nowhere"));
  EXPECT_THAT(error("/other", {}, ErrorCode::kNoInput), HasSubstr("no weights in /other: expected"));
  for (const char* folder : {"/all", "/all/job"}) ASSERT_TRUE(memory_.make_directory(folder));
  const std::string newest = *save(memory_, "/all/job", layout_, 1, 100);
  EXPECT_THAT(error("/all", {}, ErrorCode::kNoInput),
              HasSubstr("no weights in /all: it holds the folder of a job; name a job's folder or one checkpoint, such "
                        "as the newest, " +
                        newest));
}

TEST_F(WarmStart, ADamagedFileIsNamed) {
  ASSERT_TRUE(write_text(memory_, "/other/model.safetensors", "nonsense, and no header"));
  EXPECT_THAT(error("/other", {}, ErrorCode::kData), HasSubstr("/other/model.safetensors"));
}

// Python wrote this file. It has all supported dtypes, and one that isn't supported.
TEST_F(WarmStart, AFileOfPythonIsReadWhateverItsDtype) {
  std::string folder = testing::TempDir() + "disttrain-weights-XXXXXX";
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string file = folder + "/model.safetensors";
  std::ofstream(folder + "/spec.json") << R"({"metadata": {"format": "pt"}, "tensors": {
    "num_batches_tracked": {"dtype": "I64", "shape": [3], "values": [1, 2, 12345678901]},
    "w0": {"dtype": "F16", "shape": [7, 3], "values": [0, 0.5, -1.25, 65504, 5.960464477539063e-08, 6, 7, 8, 9, 10, 11,
           12, 13, 14, 15, 16, 17, 18, 19, 20, 0.333251953125]},
    "mean": {"dtype": "BF16", "shape": [3], "values": [1.0, -3.140625, 1e38]},
    "w1": {"dtype": "F32", "shape": [3, 5], "values": [0.1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, -0.1]}}})";
  const std::string write = shell_word(DISTTRAIN_PYTHON) + " " + shell_word(DISTTRAIN_PLAIN_SAFETENSORS) + " write " +
                            shell_word(file) + " " + shell_word(folder + "/spec.json");
  ASSERT_EQ(std::system(write.c_str()), 0);
  DiskFiles disk;
  const Status done = read_with(disk, file, {});
  ASSERT_TRUE(done) << done.error().message;
  expect_holds({{"w0", {}, {0,  0.5F, -1.25F, 65504, 0x1p-24F,       6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16,
                            17, 18,   19,     20,    0.333251953125F}},
                {"mean", {}, {1.0F, -3.140625F, 0x1.2cp126F}},
                {"w1", {}, {0.1F, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, -0.1F}}});
  const Status counted = read_with(disk, file, {{"num_batches_tracked", "mean"}, {"mean", "mean"}});
  EXPECT_FALSE(counted) << "two sources";
  const Status other = read_with(disk, file, {{"num_batches_tracked", "mean"}});
  ASSERT_TRUE(other) << other.error().message;
  std::filesystem::remove_all(folder);
}

TEST(WeightsTest, ADtypeThatCannotBeConvertedIsRefusedWhenItsValuesAreWanted) {
  MemoryFiles files;
  ASSERT_TRUE(write_text(files, "/f", encode_header({{"n", DType::kC64, {1}, 0, 8}}, {}) + std::string(8, 'x')));
  Result<Weights> weights = Weights::open(files, "/f");
  ASSERT_TRUE(weights) << weights.error().message;
  float value = 0;
  const Status read = weights->read(0, 0, std::span(&value, 1));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::kConfig);
  EXPECT_THAT(read.error().message, HasSubstr("n has dtype C64"));
}

TEST(WeightsTest, AnyRangeOfAnyVariableIsWhatTheWholeSays) {
  MemoryFiles files;
  ASSERT_TRUE(files.make_directory("/job"));
  const Layout layout = layout_of(small_model(), 3, 2);
  Result<Weights> weights = Weights::of_checkpoint(
      files, std::move(*open_checkpoint(files, *save(files, "/job", layout, 1, 100, 2))), Weights::Slots::kToo);
  ASSERT_TRUE(weights) << weights.error().message;
  ASSERT_EQ(weights->variables().size(), 9u);
  for (std::size_t v = 0; v < 9; ++v) {
    const std::size_t of_model = v % 3;
    EXPECT_EQ(weights->variables()[v].name,
              (v < 3 ? "" : "slot" + std::to_string(v / 3 - 1) + "/") + small_model().variables[of_model].name);
    const std::uint64_t elements = weights->variables()[v].elements;
    for (std::uint64_t begin = 0; begin <= elements; ++begin)
      for (std::uint64_t end = begin; end <= elements; ++end) {
        std::vector<float> got(end - begin, -1.0F);
        ASSERT_TRUE(weights->read(v, begin, got));
        for (std::uint64_t i = 0; i < got.size(); ++i)
          ASSERT_EQ(got[i], 100.0F + static_cast<float>(1000 * (v / 3) + layout.variable_begins[of_model] + begin + i));
      }
  }
}

TEST(WeightsTest, WritingThatIsCancelledOrFailsIsAnError) {
  MemoryFiles files;
  const auto all_as = [](DType dtype) { return std::vector<StoredTensor>{{"w0", 0, dtype}, {"w1", 2, dtype}}; };
  write_f32(files, "/model.safetensors", small_weights());
  Result<Weights> weights = Weights::open(files, "/model.safetensors");
  ASSERT_TRUE(weights);
  const Status cancelled = write_weights(files, "/a", *weights, all_as(DType::kF32), [] { return true; });
  ASSERT_FALSE(cancelled);
  EXPECT_EQ(cancelled.error().code, ErrorCode::kTemporary);
  for (const MemoryFiles::Op op :
       {MemoryFiles::Op::kCreate, MemoryFiles::Op::kReserve, MemoryFiles::Op::kAppend, MemoryFiles::Op::kSync}) {
    files.fault = [op](MemoryFiles::Op asked, const std::string& path) -> std::optional<Error> {
      if (asked == op) return Error{ErrorCode::kFailed, "can't do it to " + path};
      return std::nullopt;
    };
    EXPECT_FALSE(write_weights(files, "/b" + std::to_string(static_cast<int>(op)), *weights, all_as(DType::kBF16)));
    files.fault = {};
  }
  ASSERT_TRUE(write_weights(files, "/c", *weights, all_as(DType::kF32)));
  Result<Weights> again = Weights::open(files, "/c");
  ASSERT_TRUE(again) << again.error().message;
  std::vector<float> values(15);
  ASSERT_TRUE(again->read(*again->find("w1"), 0, values));
  EXPECT_EQ(values, small_weights()[2].values);
}

TEST(WeightsTest, ACheckpointThatIsOpenCantBeRemoved) {
  MemoryFiles files;
  ASSERT_TRUE(files.make_directory("/job"));
  const Layout layout = layout_of(small_model(), 1, 100);
  const std::string old = *save(files, "/job", layout, 1, 100, 1, 1);
  ASSERT_TRUE(save(files, "/job", layout, 1, 200, 1, 2));
  {
    const Result<Weights> weights = Weights::open(files, old);
    ASSERT_TRUE(weights);
    EXPECT_TRUE(retain(files, "/job", Retention{1, 0, ""})->empty());
  }
  EXPECT_EQ(*retain(files, "/job", Retention{1, 0, ""}), std::vector<std::string>{old});
}

}  // namespace
}  // namespace disttrain::checkpoint
