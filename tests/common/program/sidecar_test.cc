#include "common/program/sidecar.h"

#include <gtest/gtest.h>

namespace disttrain::program {
namespace {

const std::string kGood = R"({
 "format": 1, "kind": "pt2", "library": "torch", "library_version": "2.11.0", "cpu": "x86-64-v3", "batch": null,
 "variables": [
  {"name": "w", "kind": "trainable", "shape": [3, 2], "dtype": "float32", "persistent": true},
  {"name": "f", "kind": "frozen", "shape": [4], "dtype": "int16", "persistent": false},
  {"name": "s", "kind": "state", "shape": [], "dtype": "int64", "persistent": true}],
 "aliases": {"again": "w"},
 "columns": [
  {"name": "inputs", "dtype": "float32", "shape": [2], "limit": 0},
  {"name": "labels", "dtype": "int64", "shape": [], "limit": 3}],
 "metrics": [{"name": "top", "kind": "top_5"}],
 "programs": {"step": {"columns": ["inputs", "labels"]}, "predict": {"columns": ["inputs"]}}})";

std::string changed(const std::string& old, const std::string& by) {
  std::string text = kGood;
  const std::size_t place = text.find(old);
  EXPECT_NE(place, std::string::npos) << old;
  return text.replace(place, old.size(), by);
}

TEST(SidecarTest, DescribesAProgram) {
  const Result<Sidecar> sidecar = parse_sidecar(kGood, "p");
  ASSERT_TRUE(sidecar) << sidecar.error().message;
  EXPECT_EQ(sidecar->kind, Kind::kPt2);
  EXPECT_FALSE(sidecar->batch.has_value());
  ASSERT_EQ(sidecar->variables.size(), 3U);
  EXPECT_EQ(sidecar->variables[1].kind, SidecarVariable::Kind::kFrozen);
  EXPECT_EQ(sidecar->aliases.at("again"), "w");
  EXPECT_EQ(sidecar->programs.at("predict").columns, std::vector<std::uint32_t>{0});
  const ModelSpec& model = sidecar->model;
  ASSERT_EQ(model.variables.size(), 2U) << "frozen variables aren't part of the model";
  EXPECT_EQ(model.variables[1].kind, VariableKind::kState);
  EXPECT_EQ(element_count(model), 7U);
  EXPECT_EQ(model.columns[1].limit, 3U);
  EXPECT_EQ(to_string(model.metrics[0]), "top_5");
  EXPECT_EQ(model.programs, (Programs{.evaluates = false, .predicts = true}));
}

TEST(SidecarTest, LabelsMayHaveAValueThatTheLossIgnores) {
  EXPECT_EQ(parse_sidecar(kGood, "p")->model.columns[1].ignored, std::nullopt);
  EXPECT_EQ(parse_sidecar(changed("\"limit\": 3", "\"limit\": 3, \"ignored\": -100"), "p")->model.columns[1].ignored,
            -100);
  EXPECT_FALSE(parse_sidecar(changed("\"limit\": 3", "\"limit\": 3, \"ignored\": 1.5"), "p"));
  EXPECT_FALSE(parse_sidecar(changed("\"limit\": 3", "\"limit\": 0, \"ignored\": -100"), "p"));
  EXPECT_FALSE(parse_sidecar(changed("\"dtype\": \"int64\", \"shape\": [], \"limit\": 3",
                                     "\"dtype\": \"float32\", \"shape\": [3], \"limit\": 3, \"ignored\": 255"),
                             "p"));
}

// Programs of format 1 take float64 variables as float32.
TEST(SidecarTest, FormatTwoHasVariablesOfFloat64) {
  std::string text = changed("\"dtype\": \"float32\", \"persistent\"", "\"dtype\": \"float64\", \"persistent\"");
  EXPECT_EQ(parse_sidecar(text, "p")->model.variables[0].dtype, DType::kFloat32);
  text.replace(text.find("\"format\": 1"), 11, "\"format\": 2");
  const Result<Sidecar> sidecar = parse_sidecar(text, "p");
  ASSERT_TRUE(sidecar) << sidecar.error().message;
  EXPECT_EQ(sidecar->model.variables[0].dtype, DType::kFloat64);
  EXPECT_EQ(sidecar->model.variables[1].dtype, DType::kFloat32);
}

TEST(SidecarTest, RefusesWhatIsWrong) {
  const struct {
    const char* old;
    const char* by;
    const char* error;
  } kCases[] = {
      {"\"pt2\"", "\"exe\"", "\"kind\" is \"exe\""},
      {"\"batch\": null", "\"batch\": 0", "\"batch\" is neither null nor a positive integer"},
      {"[3, 2]", "[3, -2]", "a size that isn't a positive integer"},
      {"[3, 2]", "[4294967296, 4294967296, 4294967296]", "variable w has more than"},
      {"[3, 2]", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "isn't a list of at most 16 sizes"},
      {"\"trainable\"", "\"frozen\"", "no variable is trainable"},
      {"\"trainable\"", "\"loose\"", "expected trainable, state or frozen"},
      {"\"f\"", "\"w\"", "is listed twice"},
      {"\"f\"", "\"f\\u0007\"", "has control characters"},
      {"\"again\": \"w\"", "\"again\": \"v\"", "names no variable"},
      {"\"dtype\": \"int64\", \"shape\": [], \"limit\"", "\"dtype\": \"bytes\", \"shape\": [], \"limit\"",
       "which programs don't take"},
      {"\"limit\": 3", "\"limit\": 18446744073709551615", "the limit of column labels"},
      {"\"top_5\"", "\"top_0\"", "unknown kind"},
      {"\"top\"", "\"to p\"", "has a bad name"},
      {"\"step\"", "\"stop\"", "has no program \"step\""},
      {"\"predict\"", "\"dream\"", "unknown program \"dream\""},
      {"[\"inputs\"]", "[\"outputs\"]", "takes a column that isn't listed"},
      {"\"format\": 1", "\"format\": \"1\"", "\"format\" isn't a number"},
  };
  for (const auto& [old, by, error] : kCases) {
    const Result<Sidecar> sidecar = parse_sidecar(changed(old, by), "step.pt2");
    ASSERT_FALSE(sidecar) << by;
    EXPECT_EQ(sidecar.error().code, ErrorCode::kData) << by;
    EXPECT_NE(sidecar.error().message.find(error), std::string::npos) << sidecar.error().message;
    EXPECT_TRUE(sidecar.error().message.starts_with("step.pt2: ")) << sidecar.error().message;
  }
}

TEST(SidecarTest, NewerFormatAsksForANewerVersion) {
  const Result<Sidecar> sidecar = parse_sidecar(changed("\"format\": 1", "\"format\": 4"), "p");
  ASSERT_FALSE(sidecar);
  EXPECT_EQ(sidecar.error().code, ErrorCode::kConfig);
  EXPECT_NE(sidecar.error().message.find("use a newer disttrain here"), std::string::npos);
}

// The variables are the values 0 to 2, the columns 3 and 4, the results 5 to 8.
std::string with_stages(const std::string& stages) {
  return changed("{\"columns\": [\"inputs\", \"labels\"]}",
                 "{\"columns\": [\"inputs\", \"labels\"], \"stages\": " + stages + "}");
}

TEST(SidecarTest, StepWithoutStagesIsOneStage) {
  const SidecarProgram step = parse_sidecar(kGood, "p")->programs.at("step");
  ASSERT_EQ(step.stages.size(), 1U);
  EXPECT_EQ(step.stages[0].takes, (std::vector<std::uint32_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(step.stages[0].gives, (std::vector<std::uint32_t>{5, 6, 7, 8}));
  EXPECT_EQ(step.values, 9U);
}

TEST(SidecarTest, StepHasStages) {
  const Result<Sidecar> sidecar = parse_sidecar(
      with_stages(R"([{"takes": [0, 3, 4], "gives": [5, 8, 11]}, {"takes": [1, 11, 8], "gives": [6, 7]}])"), "p");
  ASSERT_TRUE(sidecar) << sidecar.error().message;
  const SidecarProgram& step = sidecar->programs.at("step");
  ASSERT_EQ(step.stages.size(), 2U);
  EXPECT_EQ(step.stages[1].takes, (std::vector<std::uint32_t>{1, 11, 8}));
  EXPECT_EQ(step.stages[1].gives, (std::vector<std::uint32_t>{6, 7}));
  EXPECT_EQ(step.values, 12U);
}

TEST(SidecarTest, RefusesStagesThatDoNotFitTogether) {
  const struct {
    const char* stages;
    const char* words;
  } cases[] = {
      {"3", "aren't a list of 2 to 64 entries"},
      {R"([{"takes": [], "gives": [5, 6, 7, 8]}])", "aren't a list of 2 to 64 entries"},
      {R"([{"takes": [9], "gives": [5, 6]}, {"takes": [], "gives": [7, 8, 9]}])",
       "takes value 9, which no stage before"},
      {R"([{"takes": [], "gives": [5, 6, 4]}, {"takes": [], "gives": [7, 8]}])", "gives value 4, which is an input"},
      {R"([{"takes": [], "gives": [5, 6]}, {"takes": [], "gives": [6, 7, 8]}])",
       "gives value 6, which is an input, or"},
      {R"([{"takes": [], "gives": [5, 6]}, {"takes": [], "gives": [8, 9]}])", "don't give all 4 results of the step"},
      {R"([{"takes": [], "gives": []}, {"takes": [], "gives": []}])", "don't give all 4 results of the step"},
      {R"([{"takes": [-1], "gives": [5, 6]}, {"takes": [], "gives": [7, 8]}])", "isn't an integer of 0 to 1000008"},
      {R"([{"takes": [], "gives": [5, 6, 1000009]}, {"takes": [], "gives": [7, 8]}])",
       "isn't an integer of 0 to 1000008"},
      {R"([{"takes": []}, {"takes": [], "gives": [7, 8]}])", "takes or gives no list"},
  };
  for (const auto& [stages, words] : cases) {
    const Result<Sidecar> sidecar = parse_sidecar(with_stages(stages), "p");
    ASSERT_FALSE(sidecar) << stages;
    EXPECT_NE(sidecar.error().message.find(words), std::string::npos) << sidecar.error().message;
  }
}

TEST(SidecarTest, DeepNestingIsAnError) {
  const std::string deep = "[" + std::string(2'000'000, '[') + std::string(2'000'000, ']') + "]";
  const Result<Sidecar> sidecar = parse_sidecar(changed("[3, 2]", deep), "p");
  ASSERT_FALSE(sidecar);
  EXPECT_NE(sidecar.error().message.find("has more than 8 levels"), std::string::npos) << sidecar.error().message;
}

TEST(SidecarTest, EveryTruncationIsAnError) {
  for (std::size_t length = 0; length < kGood.size(); ++length)
    EXPECT_FALSE(parse_sidecar(kGood.substr(0, length), "p")) << length;
}

}  // namespace
}  // namespace disttrain::program
