// The verbs of `disttrain checkpoint`: runs the real program on checkpoints that the library wrote.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "common/checkpoint/disk_files.h"
#include "common/checkpoint/warm_start.h"
#include "tests/common/checkpoint/small_job.h"
#include "tests/shell_word.h"

namespace disttrain::checkpoint {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

struct Ran {
  int code = -1;
  std::string out;
  std::string error;

  Json json() const { return Json::parse(out, nullptr, false); }
};

std::string content_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

std::string plain_safetensors() {
  return shell_word(DISTTRAIN_PYTHON) + " " + shell_word(DISTTRAIN_PLAIN_SAFETENSORS);
}

class CheckpointVerbs : public testing::Test {
 protected:
  CheckpointVerbs() {
    std::string pattern = (fs::temp_directory_path() / "disttrain-verbs-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    fs::create_directories(folder_ / "all/small");
  }
  ~CheckpointVerbs() override { fs::remove_all(folder_); }

  std::string job() const { return (folder_ / "all/small").string(); }
  std::string out(const std::string& name) const { return (folder_ / name).string(); }

  // Saves a checkpoint of the small job. Element i of its flat order has the value step + i.
  std::string saved(std::uint64_t step, std::uint32_t shards = 2, const std::string& job_name = "small",
                    std::uint32_t slots = 1) {
    const fs::path folder = folder_ / "all" / job_name;
    fs::create_directories(folder);
    const auto path = save(files_, folder.string(), layout_of(small_model(), shards, 5), 3, step, slots);
    EXPECT_TRUE(path) << path.error().message;
    return path.value_or("");
  }
  void damage(const std::string& path, std::streamoff at) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(at);
    const char byte = static_cast<char>(file.get() ^ 1);
    file.seekp(at);
    file.put(byte);
  }

  // Runs a command in this test's folder. `command` may contain the path of that folder, even if the path has spaces.
  Ran shell(std::string command) {
    const std::string folder = folder_.string();
    for (std::size_t at = command.find(folder); at != std::string::npos; at = command.find(folder, at + 1)) {
      command.replace(at, folder.size(), shell_word(folder));
      at += shell_word(folder).size() - 1;
    }
    const std::string whole = "cd " + shell_word(folder) + " && " + command + " >.out 2>.error";
    const int status = std::system(whole.c_str());
    Ran ran{WIFEXITED(status) ? WEXITSTATUS(status) : -1, content_of(folder_ / ".out"), content_of(folder_ / ".error")};
    fs::remove(folder_ / ".out");
    fs::remove(folder_ / ".error");
    return ran;
  }
  Ran run(const std::string& arguments) { return shell(shell_word(DISTTRAIN_PROGRAM) + " checkpoint " + arguments); }
  // Reads a file with a program that shares no code with ours.
  Json read_plainly(const std::string& path) {
    const Ran ran = shell(plain_safetensors() + " read " + path);
    EXPECT_EQ(ran.code, 0) << ran.error;
    return ran.json();
  }
  std::vector<std::string> names_in(const fs::path& folder) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename());
    std::sort(names.begin(), names.end());
    return names;
  }

  DiskFiles files_;
  fs::path folder_;
};

// The values of a variable of the small model in a checkpoint of the step `step`.
std::vector<float> values_of(std::size_t variable, float step) {
  const Layout layout = layout_of(small_model(), 1, 1000);
  std::vector<float> values;
  for (std::uint64_t i = 0; i < element_count(layout.model.variables[variable]); ++i)
    values.push_back(step + static_cast<float>(layout.variable_begins[variable] + i));
  return values;
}

TEST_F(CheckpointVerbs, NamesThatControlATerminalAreShown) {
  ModelSpec model = small_model();
  model.variables[0].name =
      "a\x1b[2J\n\xc2\x9b"
      "b";
  const auto path = save(files_, job(), layout_of(model, 2, 5), 3, 9, 1);
  ASSERT_TRUE(path) << path.error().message;
  for (const std::string& verb : {"inspect " + *path, "diff " + *path + " " + *path}) {
    const Ran ran = run(verb);
    EXPECT_EQ(ran.code, 0) << ran.error;
    EXPECT_THAT(ran.out, AllOf(HasSubstr("a\\x1b[2J\\n\\x9bb"), Not(HasSubstr("\x1b")), Not(HasSubstr("\xc2\x9b"))));
    const Ran json = run(verb + " --json");
    EXPECT_EQ(json.json()["variables"][0]["name"], model.variables[0].name) << json.out;
    EXPECT_THAT(json.out, AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr("\xc2\x9b"))));
  }
}

// ---- list

TEST_F(CheckpointVerbs, ListShowsAJobsCheckpointsNewestFirst) {
  for (const std::uint64_t step : {9, 1000, 20}) saved(step);
  const Ran ran = run("list " + job() + " --json");
  EXPECT_EQ(ran.code, 0);
  const Json all = ran.json()["checkpoints"];
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0]["step"], 1000);
  EXPECT_EQ(all[1]["step"], 20);
  EXPECT_EQ(all[2]["step"], 9);
  EXPECT_EQ(all[0]["job"], "small");
  EXPECT_EQ(all[0]["name"], "gen-3-step-00000000000000001000");
  EXPECT_EQ(all[0]["path"], job() + "/gen-3-step-00000000000000001000");
  EXPECT_EQ(all[0]["generation"], 3);
  EXPECT_EQ(all[0]["shards"], 2);
  EXPECT_EQ(all[0]["created"], "1970-01-01T00:00:00Z");
  EXPECT_TRUE(all[0]["readable"]);
  std::uint64_t bytes = 0;
  for (const auto& entry : fs::directory_iterator(all[0]["path"].get<std::string>())) bytes += entry.file_size();
  EXPECT_EQ(all[0]["bytes"], bytes);
}

TEST_F(CheckpointVerbs, ListOfTheDirectoryAboveShowsAllJobs) {
  saved(10);
  saved(20, 1, "other");
  const Ran ran = run("list all");
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(ran.out, AllOf(HasSubstr("small  "), HasSubstr("other  "), HasSubstr("MANIFEST"), HasSubstr("readable")));
}

TEST_F(CheckpointVerbs, ListSaysWhichManifestIsUnreadable) {
  saved(10);
  fs::resize_file(saved(20) + "/MANIFEST.json", 100);
  const Ran ran = run("list " + job() + " --json");
  EXPECT_EQ(ran.code, 0);
  EXPECT_FALSE(ran.json()["checkpoints"][0]["readable"]);
  EXPECT_THAT(ran.json()["checkpoints"][0]["reason"], HasSubstr("MANIFEST.json isn't JSON"));
  EXPECT_TRUE(ran.json()["checkpoints"][1]["readable"]);
}

TEST_F(CheckpointVerbs, ListOfAMissingFolderIsNoInputAndOfAnEmptyFolderIsEmpty) {
  EXPECT_EQ(run("list nowhere").code, 66);
  const Ran empty = run("list " + job() + " --json");
  EXPECT_EQ(empty.code, 0);
  EXPECT_EQ(empty.json(), Json::parse(R"({"checkpoints": [], "set_aside": []})"));
}

TEST_F(CheckpointVerbs, ListShowsWhatWasSetAsideWithItsSize) {
  saved(10);
  const std::string name = fs::path(saved(20)).filename();
  // If a job was started over, a new checkpoint may have the same name.
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(set_aside(files_, saved(20)));
  for (const std::string folder : {"all", "all/small"}) {
    const Json json = run("list " + folder + " --json").json();
    EXPECT_EQ(json["checkpoints"].size(), 1u);
    ASSERT_EQ(json["set_aside"].size(), 2u);
    EXPECT_EQ(json["set_aside"][0]["path"], job() + "/.broken-" + name);
    EXPECT_EQ(json["set_aside"][1]["path"], job() + "/.broken-" + name + "-2");
    EXPECT_GT(json["set_aside"][0]["bytes"], 100);
  }
  const Ran ran = run("list all");
  EXPECT_THAT(ran.out, AllOf(HasSubstr("set aside because it didn't verify: " + job() + "/.broken-" + name + " ("),
                             HasSubstr("disttrain checkpoint verify")));
  EXPECT_EQ(run("verify " + job() + "/.broken-" + name).code, 0) << "this one is undamaged";
}

// ---- inspect

TEST_F(CheckpointVerbs, InspectShowsWhatACheckpointHolds) {
  const std::string path = saved(12000);
  const Ran ran = run("inspect " + path + " --json");
  ASSERT_EQ(ran.code, 0) << ran.error;
  const Json json = ran.json();
  EXPECT_EQ(json["path"], path);
  EXPECT_EQ(json["step"], 12000);
  EXPECT_EQ(json["generation"], 3);
  EXPECT_EQ(json["job"], "small");
  EXPECT_EQ(json["seed"], "fedcba9876543210");
  EXPECT_EQ(json["elements"], 39);
  EXPECT_EQ(json["optimizer"], Json::parse(R"({"rule": "momentum", "slots": 1, "average": false})"));
  EXPECT_EQ(json["variables"][1], Json::parse(R"({"name": "mean", "shape": [3], "kind": "state", "dtype": "float32",
    "elements": 3, "slices": 1, "shards": [1]})"));
  EXPECT_EQ(json["variables"][0]["shards"], Json::parse("[0, 1]"));
  EXPECT_EQ(json["shards"][1]["file"], "shard-1-of-2.safetensors");
  EXPECT_EQ(json["shards"][1]["version"], 12000);
  EXPECT_EQ(json["shards"][1]["applied"][0], Json::parse(R"({"task": "worker/1", "incarnation": "f000000000000001",
    "last_sequence": 7, "clock": 3})"));
  EXPECT_EQ(json["ledger"], Json::parse(R"([{"epoch": 2, "visited_records": 20, "intervals": 2}])"));
}

TEST_F(CheckpointVerbs, InspectOfAJobsFolderShowsItsNewestCheckpoint) {
  saved(10);
  saved(20);
  const Ran ran = run("inspect " + job());
  EXPECT_EQ(ran.code, 0);
  EXPECT_THAT(ran.out, AllOf(HasSubstr("step 20 of generation 3"), HasSubstr("momentum"), HasSubstr("w0"),
                             HasSubstr("[7,3]"), HasSubstr("worker/1"), HasSubstr("20 records of epoch 2")));
}

TEST_F(CheckpointVerbs, InspectOfNoCheckpointIsNoInputAndOfADamagedOneIsData) {
  const Ran none = run("inspect " + job());
  EXPECT_EQ(none.code, 66);
  EXPECT_THAT(none.error, HasSubstr("no checkpoint in " + job()));
  const std::string one = saved(5);
  for (const std::string& verb : {std::string("inspect "), std::string("export "), "diff " + job() + " "}) {
    const Ran of_all = run(verb + out("all") + (verb == "export " ? " " + out("out.safetensors") : ""));
    EXPECT_EQ(of_all.code, 66) << verb;
    EXPECT_THAT(of_all.error, HasSubstr("in " + out("all") +
                                        ": it holds the folder of a job; name a job's folder or one checkpoint, such "
                                        "as the newest, " +
                                        one));
  }
  fs::resize_file(saved(10) + "/MANIFEST.json", 100);
  EXPECT_EQ(run("inspect " + job()).code, 65);
}

// ---- verify

TEST_F(CheckpointVerbs, VerifyOfAnUndamagedCheckpointIsZero) {
  const std::string path = saved(10);
  const Ran ran = run("verify " + path);
  EXPECT_EQ(ran.code, 0) << ran.error;
  EXPECT_THAT(ran.out, HasSubstr(path + " is valid: 2 files"));
}

TEST_F(CheckpointVerbs, VerifyNamesEveryDamagedFile) {
  const std::string path = saved(10, 3);
  damage(path + "/shard-0-of-3.safetensors", 3);
  damage(path + "/shard-2-of-3.safetensors", 300);
  const Ran ran = run("verify " + path);
  EXPECT_EQ(ran.code, 65);
  EXPECT_EQ(ran.out, "");
  EXPECT_THAT(ran.error, AllOf(HasSubstr(path + "/shard-0-of-3"), HasSubstr(path + "/shard-2-of-3"),
                               Not(HasSubstr("shard-1-of-3"))));
}

TEST_F(CheckpointVerbs, VerifyOfAJobsFolderChecksAllItsCheckpoints) {
  const std::string old = saved(10);
  const std::string middle = saved(20);
  const std::string newest = saved(30);
  damage(middle + "/shard-1-of-2.safetensors", 300);
  const Ran ran = run("verify " + job() + " --json");
  EXPECT_EQ(ran.code, 65);
  const Json json = ran.json();
  EXPECT_FALSE(json["well"]);
  ASSERT_EQ(json["checkpoints"].size(), 3u);
  EXPECT_EQ(json["checkpoints"][0]["path"], newest);
  EXPECT_TRUE(json["checkpoints"][0]["well"]);
  EXPECT_FALSE(json["checkpoints"][1]["well"]);
  EXPECT_THAT(json["checkpoints"][1]["problems"][0], HasSubstr(middle + "/shard-1-of-2.safetensors"));
  EXPECT_TRUE(json["checkpoints"][2]["well"]);
  EXPECT_EQ(json["checkpoints"][2]["path"], old);
}

TEST_F(CheckpointVerbs, VerifyFindsEveryKindOfDamage) {
  struct Case {
    const char* file;
    const char* said;
  };
  for (const Case& c : {Case{"shard-0-of-2.safetensors", "shard-0-of-2"}, Case{"MANIFEST.json", "MANIFEST.json"}}) {
    const std::string path = saved(10);
    const std::string file = path + "/" + c.file;
    fs::resize_file(file, fs::file_size(file) / 2);
    Ran ran = run("verify " + path);
    EXPECT_EQ(ran.code, 65) << "cut off: " << c.file;
    EXPECT_THAT(ran.error, HasSubstr(c.said));
    fs::remove(file);
    ran = run("verify " + path);
    EXPECT_EQ(ran.code, 65) << "lacking: " << c.file;
    EXPECT_THAT(ran.error, HasSubstr(c.said));
    fs::remove_all(path);
  }
}

TEST_F(CheckpointVerbs, VerifyOfNothingIsNoInput) {
  EXPECT_EQ(run("verify nowhere").code, 66);
  EXPECT_EQ(run("verify " + job()).code, 66);
}

// ---- diff

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

// ---- export

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

// ---- all verbs

TEST_F(CheckpointVerbs, WrongUseIsAUsageError) {
  for (const char* arguments : {"", "list", "inspect", "verify", "diff a", "export a", "list a b", "lst a"})
    EXPECT_EQ(run(arguments).code, 64) << arguments;
}

}  // namespace
}  // namespace disttrain::checkpoint
