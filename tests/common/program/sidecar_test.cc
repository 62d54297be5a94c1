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
  const Result<Sidecar> sidecar = parse_sidecar(changed("\"format\": 1", "\"format\": 3"), "p");
  ASSERT_FALSE(sidecar);
  EXPECT_EQ(sidecar.error().code, ErrorCode::kConfig);
  EXPECT_NE(sidecar.error().message.find("use a newer disttrain here"), std::string::npos);
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
