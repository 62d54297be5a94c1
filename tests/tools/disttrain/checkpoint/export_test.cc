// `disttrain checkpoint export` writes whole variables, in files that other programs can read.
#include <gmock/gmock.h>

#include <bit>

#include "common/checkpoint/warm_start.h"
#include "tests/tools/disttrain/checkpoint/verbs_fixture.h"

namespace disttrain::checkpoint {
namespace {

using testing::HasSubstr;

// The values of a variable of the small model in a checkpoint of the step `step`.
std::vector<float> values_of(std::size_t variable, float step) {
  const Layout layout = layout_of(small_model(), 1, 1000);
  std::vector<float> values;
  for (std::uint64_t i = 0; i < element_count(layout.model.variables[variable]); ++i)
    values.push_back(step + static_cast<float>(layout.variable_begins[variable] + i));
  return values;
}

TEST_F(CheckpointVerbs, ExportHasWholeVariablesThatAnyReaderCanRead) {
  saved(10, 3);
  const Ran ran = run("export " + job() + " out.safetensors");
  ASSERT_EQ(ran.code, 0) << ran.error;
  const Json read = read_plainly("out.safetensors");
  EXPECT_EQ(read["metadata"], Json::parse(R"({"format": "pt"})"));
  ASSERT_EQ(read["tensors"].size(), 3u);
  for (std::size_t v = 0; v < 3; ++v) {
    const VariableSpec spec = small_model().variables[v];
    const Json& tensor = read["tensors"][spec.name];
    EXPECT_EQ(tensor["dtype"], "F32");
    EXPECT_EQ(tensor["shape"], Json(spec.shape));
    EXPECT_EQ(tensor["values"].get<std::vector<float>>(), values_of(v, 10)) << spec.name;
  }
  EXPECT_EQ(names_in(folder_), (std::vector<std::string>{"all", "out.safetensors"}));
  EXPECT_EQ(run("diff " + job() + " out.safetensors").code, 0);
}

// The files of this checkpoint have parts of float64 variables, and odd numbers of words before each slot.
TEST_F(CheckpointVerbs, Float64VariablesOfAnyLayoutAreExportedAsTheyAre) {
  const std::string path = save(files_, job(), layout_of(model_with_doubles(), 3, 4), 3, 10, 2, 1, true).value();
  const std::string other = save(files_, job(), layout_of(model_with_doubles(), 1, 36), 4, 10, 2, 1, true).value();
  EXPECT_EQ(run("diff " + path + " " + other + " --slots").code, 0);
  // The words of held_by(), of which array 2 has the averages, as doubles.
  const auto doubles_from = [](std::size_t begin, std::size_t elements, float base) {
    std::vector<double> values;
    for (std::size_t word = begin; word < begin + 2 * elements; word += 2) {
      const auto half = [base](std::size_t at) { return std::bit_cast<std::uint32_t>(base + static_cast<float>(at)); };
      values.push_back(std::bit_cast<double>(half(word) | std::uint64_t{half(word + 1)} << 32));
    }
    return values;
  };
  for (const bool is_average : {false, true}) {
    const float base = is_average ? 2010.0F : 10.0F;
    ASSERT_EQ(run("export " + path + " out.safetensors --force" + (is_average ? " --average" : "")).code, 0);
    const Json tensors = read_plainly("out.safetensors")["tensors"];
    EXPECT_EQ(tensors["w0"]["dtype"], "F32");
    EXPECT_EQ(tensors["mean"]["dtype"], "F64");
    EXPECT_EQ(tensors["w1"]["dtype"], "F64");
    EXPECT_EQ(tensors["w1"]["values"].get<std::vector<double>>(), doubles_from(0, 15, base));
    EXPECT_EQ(tensors["mean"]["values"].get<std::vector<double>>(), doubles_from(30, 3, base));
    EXPECT_EQ(tensors["w0"]["values"][20], static_cast<double>(base) + 56);
  }
  const Json inspected = run("inspect " + path + " --json").json()["variables"];
  EXPECT_EQ(inspected[2]["dtype"], "float64");
  EXPECT_EQ(inspected[2]["elements"], 15);
  EXPECT_EQ(inspected[2]["shards"], Json::parse("[0, 1, 2]"));

  ASSERT_EQ(run("export " + path + " out.safetensors --force").code, 0);
  EXPECT_EQ(run("diff " + path + " out.safetensors").code, 0);
  // A new job, with another layout, takes its initial parameters from the checkpoint or from the export.
  for (const std::string& from : {path, out("out.safetensors")}) {
    const Layout layout = layout_of(model_with_doubles(), 2, 6);
    for (std::uint32_t shard = 0; shard < 2; ++shard) {
      Held held = empty_shard(layout, shard, 0);
      const Status read = read_parameters(files_, from, {}, layout, ShardId(shard), held.parameters);
      ASSERT_TRUE(read) << read.error().message;
      EXPECT_EQ(held, held_by(layout, shard, 10.0F, 0)) << from;
    }
  }
}

TEST_F(CheckpointVerbs, VariablesOfManyChunksAreComparedAndExportedWhole) {
  ModelSpec model;
  model.variables = {VariableSpec{"a", {1000, 777}, VariableKind::kTrainable, {}, 1, 1},
                     VariableSpec{"b", {300'001}, VariableKind::kTrainable, {}, 1, 1}};
  fs::create_directories(folder_ / "all/large");
  const std::string folder = out("all/large");
  const std::string a = save(files_, folder, layout_of(model, 2, kMaxBucketWords), 1, 10).value();
  const std::string b = save(files_, folder, layout_of(model, 3, 100'003), 2, 10).value();
  const std::string c = save(files_, folder, layout_of(model, 1, 100'003), 2, 11).value();
  EXPECT_EQ(run("diff " + a + " " + b + " --slots").code, 0);
  const Json differing = run("diff " + a + " " + c + " --json").json();
  EXPECT_EQ(differing["variables"][0]["differing"], 777'000);
  EXPECT_EQ(differing["variables"][1]["differing"], 300'001);
  EXPECT_EQ(differing["variables"][1]["largest_difference"], 1.0);
  ASSERT_EQ(run("export " + a + " out.safetensors").code, 0);
  EXPECT_EQ(run("diff out.safetensors " + b).code, 0);
  const Json values = read_plainly("out.safetensors")["tensors"]["b"]["values"];
  for (std::size_t i = 0; i < 300'001; ++i) ASSERT_EQ(values[i], 10.0 + static_cast<double>(i));
}

TEST_F(CheckpointVerbs, ExportInHalfPrecisionIsRounded) {
  saved(2047, 1);
  for (const char* dtype : {"f16", "bf16"}) {
    const std::string name = std::string(dtype) + ".safetensors";
    ASSERT_EQ(run("export " + job() + " " + name + " --dtype " + dtype).code, 0);
    const Json tensor = read_plainly(name)["tensors"]["w1"];  // 2047, 2048, 2049 ...
    const bool is_f16 = std::string(dtype) == "f16";
    EXPECT_EQ(tensor["dtype"], is_f16 ? "F16" : "BF16");
    EXPECT_EQ(tensor["values"][0], is_f16 ? 2047.0 : 2048.0);
    EXPECT_EQ(tensor["values"][2], 2048.0);
    EXPECT_EQ(tensor["values"][4], is_f16 ? 2052.0 : 2048.0);
  }
}

TEST_F(CheckpointVerbs, ExportInShardsHasHuggingFacesNamesAndIndex) {
  saved(10, 2);
  const Ran ran = run("export " + job() + " out --max-shard-size 90B");  // w0: 84 bytes, mean: 12, w1: 60
  ASSERT_EQ(ran.code, 0) << ran.error;
  EXPECT_EQ(names_in(folder_ / "out"),
            (std::vector<std::string>{"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors",
                                      "model.safetensors.index.json"}));
  const Json index = Json::parse(content_of(folder_ / "out/model.safetensors.index.json"));
  EXPECT_EQ(index["metadata"]["total_size"], 156);
  EXPECT_EQ(index["weight_map"], Json::parse(R"({"w0": "model-00001-of-00002.safetensors",
    "mean": "model-00002-of-00002.safetensors", "w1": "model-00002-of-00002.safetensors"})"));
  EXPECT_EQ(read_plainly("out/model-00002-of-00002.safetensors")["tensors"]["w1"]["values"].get<std::vector<float>>(),
            values_of(2, 10));
  EXPECT_EQ(run("diff " + job() + " out").code, 0);
}

TEST_F(CheckpointVerbs, ExportInShardsThatNeedsOneFileHasNoIndex) {
  saved(10);
  fs::create_directory(folder_ / "out");
  ASSERT_EQ(run("export " + job() + " out/ --max-shard-size 5GB").code, 0) << "an empty folder is no obstacle";
  EXPECT_EQ(names_in(folder_ / "out"), std::vector<std::string>{"model.safetensors"});
  EXPECT_EQ(run("diff out " + job()).code, 0);
}

TEST_F(CheckpointVerbs, ExportReplacesOnlyWithForce) {
  saved(10);
  ASSERT_EQ(run("export " + job() + " out.safetensors").code, 0);
  ASSERT_EQ(run("export " + job() + " out --max-shard-size 90B").code, 0);
  const std::string before = content_of(folder_ / "out.safetensors");
  saved(20);
  for (const char* arguments : {" out.safetensors", " out --max-shard-size 1MB"}) {
    const Ran refused = run("export " + job() + arguments);
    EXPECT_EQ(refused.code, 64);
    EXPECT_THAT(refused.error, HasSubstr("--force"));
  }
  EXPECT_EQ(content_of(folder_ / "out.safetensors"), before);
  EXPECT_EQ(run("export " + job() + " out.safetensors --force").code, 0);
  EXPECT_EQ(run("export " + job() + " out --max-shard-size 1MB --force").code, 0);
  EXPECT_EQ(names_in(folder_ / "out"), std::vector<std::string>{"model.safetensors"}) << "no old files are left";
  EXPECT_EQ(run("diff " + job() + " out.safetensors").code, 0);
  EXPECT_EQ(run("diff " + job() + " out").code, 0);
  EXPECT_EQ(names_in(folder_), (std::vector<std::string>{"all", "out", "out.safetensors"}));
}

TEST_F(CheckpointVerbs, ExportWithForceRefusesFoldersThatHoldOtherFiles) {
  saved(10);
  fs::create_directory(folder_ / "out");
  std::ofstream(folder_ / "out/config.json") << "{}";
  const Ran ran = run("export " + job() + " out --max-shard-size 90B --force");
  EXPECT_EQ(ran.code, 64);
  EXPECT_THAT(ran.error, HasSubstr("config.json"));
  EXPECT_EQ(names_in(folder_ / "out"), std::vector<std::string>{"config.json"});
}

TEST_F(CheckpointVerbs, ExportThatFailsLeavesNothing) {
  damage(saved(10, 1) + "/shard-0-of-1.safetensors", 400);
  for (const char* arguments : {" out.safetensors", " out --max-shard-size 90B"}) {
    EXPECT_EQ(run("export " + job() + arguments).code, 65);
    EXPECT_EQ(names_in(folder_), std::vector<std::string>{"all"});
  }
}

TEST_F(CheckpointVerbs, ExportToAWrongPlaceIsAnError) {
  saved(10);
  EXPECT_EQ(run("export " + job() + " out").code, 64) << "neither .safetensors nor --max-shard-size";
  EXPECT_EQ(run("export " + job() + " out.safetensors --max-shard-size 1MB").code, 64);
  EXPECT_EQ(run("export " + job() + " out --max-shard-size 1parsec").code, 64);
  EXPECT_EQ(run("export " + job() + " out.safetensors --dtype f64").code, 64);
  EXPECT_EQ(run("export nowhere out.safetensors").code, 66);
  const Ran ran = run("export " + job() + " no/such/out.safetensors");
  EXPECT_EQ(ran.code, 66);
  EXPECT_THAT(ran.error, HasSubstr("there is no folder " + out("no/such")));
}

// Before it starts a workerd, which may not be on this host.
TEST_F(CheckpointVerbs, PredictionInAFolderThatIsMissingIsTheSameError) {
  saved(10);
  const Ran ran = shell(shell_word(DISTTRAIN_PROGRAM) + " predict " + job() + " no/such/out.csv");
  EXPECT_EQ(ran.code, 66);
  EXPECT_THAT(ran.error, HasSubstr("can't write " + out("no/such/out.csv") + ": there is no folder " + out("no/such")));
}

TEST_F(CheckpointVerbs, ExportIsReadByThePackageInOneLine) {
  const std::string python = DISTTRAIN_NUMPY_PYTHON;
  if (python.empty()) GTEST_SKIP() << "no Python package safetensors here: run tools/setup";
  saved(10, 3);
  ASSERT_EQ(run("export " + job() + " out.safetensors").code, 0);
  ASSERT_EQ(run("export " + job() + " half.safetensors --dtype f16").code, 0);
  std::ofstream(folder_ / "read.py") << R"(import json, sys
from safetensors.numpy import load_file
tensors = load_file(sys.argv[1])
print(json.dumps({name: [str(t.dtype), t.shape, t.flatten().tolist()] for name, t in tensors.items()}))
)";
  for (const char* name : {"out", "half"}) {
    const Ran ran = shell(shell_word(python) + " read.py " + name + ".safetensors");
    ASSERT_EQ(ran.code, 0) << ran.error;
    for (std::size_t v = 0; v < 3; ++v) {
      const Json tensor = ran.json()[small_model().variables[v].name];
      // State may be whole numbers, so it stays as it is.
      const bool is_whole = std::string(name) == "out" || small_model().variables[v].kind == VariableKind::kState;
      EXPECT_EQ(tensor[0], is_whole ? "float32" : "float16");
      EXPECT_EQ(tensor[1], Json(small_model().variables[v].shape));
      EXPECT_EQ(tensor[2].get<std::vector<float>>(), values_of(v, 10));
    }
  }
}

}  // namespace
}  // namespace disttrain::checkpoint
