// `disttrain checkpoint diff` compares the variables of two checkpoints or exports.
#include <gmock/gmock.h>

#include "tests/tools/disttrain/checkpoint/verbs_fixture.h"

namespace disttrain::checkpoint {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST_F(CheckpointVerbs, DiffOfOtherLayoutsWithTheSameValuesIsEqual) {
  const std::string a = saved(10, 1, "a");
  const std::string b = saved(10, 3, "b", 2);
  const Ran ran = run("diff " + a + " all/b --json");
  EXPECT_EQ(ran.code, 0) << ran.error;
  const Json json = ran.json();
  EXPECT_TRUE(json["equal"]);
  EXPECT_EQ(json["b"], b);
  ASSERT_EQ(json["variables"].size(), 3u);
  EXPECT_EQ(json["variables"][0], Json::parse(R"({"name": "w0", "shape": [7, 3], "elements": 21, "equal": true,
    "differing": 0, "largest_difference": 0.0})"));
  EXPECT_EQ(run("diff " + a + " " + b + " --slots").code, 1) << "A has one slot per parameter, B has two";
}

TEST_F(CheckpointVerbs, DiffSaysHowManyElementsDifferAndByHowMuch) {
  const std::string a = saved(10, 1, "a");
  // b is an export of the same checkpoint, in which two elements of w0 were changed.
  ASSERT_EQ(run("export " + a + " a.safetensors").code, 0);
  Json spec = read_plainly("a.safetensors");
  spec["tensors"]["w0"]["values"][3] = spec["tensors"]["w0"]["values"][3].get<double>() + 0.5;
  spec["tensors"]["w0"]["values"][20] = spec["tensors"]["w0"]["values"][20].get<double>() - 2.25;
  std::ofstream(folder_ / "spec.json") << spec;
  ASSERT_EQ(shell(plain_safetensors() + " write b.safetensors spec.json").code, 0);
  const Ran ran = run("diff a.safetensors b.safetensors --json");
  EXPECT_EQ(ran.code, 1);
  const Json json = ran.json();
  EXPECT_FALSE(json["equal"]);
  EXPECT_EQ(json["variables"][0]["differing"], 2);
  EXPECT_EQ(json["variables"][0]["largest_difference"], 2.25);
  EXPECT_TRUE(json["variables"][1]["equal"]);
  const Ran text = run("diff " + a + " b.safetensors");
  EXPECT_EQ(text.code, 1);
  EXPECT_THAT(text.out, AllOf(HasSubstr("2.25"), HasSubstr("equal"), HasSubstr("differ\n")));
}

TEST_F(CheckpointVerbs, DiffComparesFloat64InFullPrecision) {
  const auto write = [this](const std::string& name, const std::string& dtype, double value) {
    const Json tensor = {{"dtype", dtype}, {"shape", {2}}, {"values", {0.5, value}}};
    std::ofstream(folder_ / "spec.json") << Json{{"tensors", {{"x", tensor}}}};
    ASSERT_EQ(shell(plain_safetensors() + " write " + name + " spec.json").code, 0);
  };
  write("a.safetensors", "F64", 1.0);
  write("b.safetensors", "F64", 1.0 + 0x1p-40);
  write("c.safetensors", "F32", 1.0);
  const Json near = run("diff a.safetensors b.safetensors --json").json();
  EXPECT_EQ(near["variables"][0]["differing"], 1);
  EXPECT_EQ(near["variables"][0]["largest_difference"], 0x1p-40);
  EXPECT_EQ(run("diff a.safetensors c.safetensors").code, 0) << "the same numbers in another type";
  EXPECT_EQ(run("diff c.safetensors b.safetensors").code, 1);
}

TEST_F(CheckpointVerbs, DiffSaysWhichNamesAndShapesDiffer) {
  std::ofstream(folder_ / "a.json") << R"({"tensors": {"x": {"dtype": "F32", "shape": [2], "values": [1, 2]},
    "y": {"dtype": "F32", "shape": [2], "values": [1, 2]}}})";
  std::ofstream(folder_ / "b.json") << R"({"tensors": {"x": {"dtype": "F32", "shape": [2, 1], "values": [1, 2]},
    "z": {"dtype": "F32", "shape": [1], "values": [1]}}})";
  for (const char* name : {"a", "b"})
    ASSERT_EQ(shell(plain_safetensors() + " write " + name + ".safetensors " + name + ".json").code, 0);
  const Ran ran = run("diff a.safetensors b.safetensors --json");
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(ran.json()["shapes"], Json::parse(R"([{"name": "x", "a": [2], "b": [2, 1]}])"));
  EXPECT_EQ(ran.json()["only_in_a"], Json::parse(R"([{"name": "y", "shape": [2]}])"));
  EXPECT_EQ(ran.json()["only_in_b"], Json::parse(R"([{"name": "z", "shape": [1]}])"));
}

TEST_F(CheckpointVerbs, DiffOfADamagedCheckpointIsDataAndOfAMissingOneIsNoInput) {
  const std::string a = saved(10, 1, "a");
  const std::string b = saved(10, 1, "b");
  damage(b + "/shard-0-of-1.safetensors", 400);
  const Ran ran = run("diff " + a + " " + b);
  EXPECT_EQ(ran.code, 65);
  EXPECT_THAT(ran.error, HasSubstr(b + "/shard-0-of-1.safetensors"));
  EXPECT_EQ(run("diff " + a + " nowhere").code, 66);
}

}  // namespace
}  // namespace disttrain::checkpoint
