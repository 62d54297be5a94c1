// Runs the packages of tests/data/program and compares them with PyTorch's own results.
#include "engine/program/program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "engine/program/values.h"
#include "tests/common/program/packages.h"
#include "tests/engine/program/reason_to_skip.h"

namespace disttrain::workerd {
namespace {

using Json = nlohmann::json;
using program::test::made;
using program::test::Members;
using test::reason_to_skip;

// The layout with one bucket for each variable, in the order of a backward pass.
Layout layout_of(const ModelSpec& model) {
  Layout layout;
  layout.model = model;
  layout.shards = 1;
  layout.variable_begins.resize(model.variables.size());
  std::uint64_t begin = 0;
  for (std::size_t v = model.variables.size(); v-- > 0;) {
    layout.variable_begins[v] = begin;
    const std::uint64_t elements = element_count(model.variables[v]);
    layout.buckets.push_back({ShardId{0}, begin, begin, elements});
    begin += elements;
  }
  return layout;
}

// A loaded program with its arrays.
struct Loaded {
  explicit Loaded(const std::string& path, std::uint32_t threads = 1) {
    Result<std::unique_ptr<Computation>> made_program = make_program(path, threads);
    if (!made_program) {
      error = made_program.error().message;
      return;
    }
    computation = std::move(*made_program);
    layout = layout_of(computation->describe());
    parameters.resize(element_count(layout.model));
    gradients.assign(parameters.size(), NAN);
    EXPECT_TRUE(computation->open(layout, parameters, gradients));
    Result<std::vector<float>> values = computation->initial_values();
    if (values)
      parameters = *std::move(values);
    else
      error = values.error().message;
    EXPECT_TRUE(computation->open(layout, parameters, gradients));
  }

  // The values of a variable in one of the arrays.
  std::vector<double> of(const std::vector<float>& array, const std::string& name) const {
    for (std::size_t v = 0; v < layout.model.variables.size(); ++v) {
      if (layout.model.variables[v].name != name) continue;
      const auto begin = array.begin() + static_cast<std::ptrdiff_t>(layout.variable_begins[v]);
      return {begin, begin + static_cast<std::ptrdiff_t>(element_count(layout.model.variables[v]))};
    }
    ADD_FAILURE() << "no variable " << name;
    return {};
  }

  std::unique_ptr<Computation> computation;
  Layout layout;
  std::vector<float> parameters;
  std::vector<float> gradients;
  std::string error;
};

// The columns of one batch.
struct Columns {
  explicit Columns(const Json& json)
      : inputs(json["inputs"].get<std::vector<float>>()), labels(json["labels"].get<std::vector<std::int64_t>>()) {}
  Columns(std::uint64_t examples, std::int64_t label) : inputs(examples * 6), labels(examples, label) {
    for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i] = std::sin(static_cast<float>(i));
  }

  Batch batch() {
    columns = {ColumnValues{std::as_bytes(std::span(inputs)), {}}, ColumnValues{std::as_bytes(std::span(labels)), {}}};
    return {labels.size(), columns};
  }

  std::vector<float> inputs;
  std::vector<std::int64_t> labels;
  std::vector<ColumnValues> columns;
};

void expect_near(const std::vector<double>& found, const Json& expected, const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], expected[i].get<double>(), 1e-5 * (1 + std::abs(expected[i].get<double>()))) << what;
}

class ProgramTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const std::string reason = reason_to_skip(); !reason.empty()) GTEST_SKIP() << reason;
  }
  std::string batch_norm() const { return made(std::string("batch_norm") + GetParam()); }
  std::string dropout() const {
    return made(std::string("dropout") + (GetParam() == std::string(".pt") ? ".pt" : ".pt2"));
  }
  Json expected() const { return Json::parse(program::test::read_file(made("expected.json"))); }
};

// In batch_norm_stages.pt2 the step has several stages.
INSTANTIATE_TEST_SUITE_P(Kinds, ProgramTest, testing::Values(".pt2", "_stages.pt2", ".pt"), [](const auto& kind) {
  std::string name = kind.param;
  std::erase_if(name, [](char c) { return c == '.' || c == '_'; });
  return name;
});

TEST_P(ProgramTest, DescribesTheModelWithoutItsFrozenVariables) {
  const Loaded loaded(batch_norm());
  ASSERT_EQ(loaded.error, "");
  const ModelSpec& model = loaded.computation->describe();
  std::vector<std::string> names;
  for (const VariableSpec& variable : model.variables)
    names.push_back(variable.name + (variable.kind == VariableKind::kState ? " state" : ""));
  EXPECT_EQ(names,
            (std::vector<std::string>{"norm.weight", "norm.bias", "norm.running_mean state", "norm.running_var state",
                                      "norm.num_batches_tracked state", "middle.weight", "middle.bias", "again.bias",
                                      "head.weight", "head.bias"}));
  ASSERT_EQ(model.columns.size(), 2U);
  EXPECT_EQ(model.columns[0], (ColumnSpec{.name = "inputs", .dtype = DType::kFloat32, .shape = {6}}));
  EXPECT_EQ(model.columns[1], (ColumnSpec{.name = "labels", .dtype = DType::kInt64, .shape = {}, .limit = 3}))
      << "packages of this age name no ignored label";
  ASSERT_EQ(model.metrics.size(), 2U);
  EXPECT_EQ(to_string(model.metrics[0]), "accuracy");
  EXPECT_TRUE(model.programs.evaluates);
  EXPECT_TRUE(model.programs.predicts);
  EXPECT_TRUE(model.brings_values);
}

TEST_P(ProgramTest, StepsOfSgdEqualThoseOfPyTorch) {
  Loaded loaded(batch_norm(), 2);
  ASSERT_EQ(loaded.error, "");
  const Json all = expected();
  for (const Json& step : all["steps"]) {
    Columns columns(step);
    const Result<EngineOutput> output = loaded.computation->step(columns.batch(), {}, {});
    ASSERT_TRUE(output) << output.error().message;
    EXPECT_NEAR(output->loss_sum, step["loss_sum"].get<double>(), 1e-4);
    EXPECT_EQ(output->examples, columns.labels.size());
    EXPECT_EQ(output->metrics[0], step["correct"].get<double>());
    EXPECT_EQ(output->metrics[1], static_cast<double>(columns.labels.size()));
    for (const auto& [name, gradient] : step["gradients"].items())
      expect_near(loaded.of(loaded.gradients, name), gradient, "gradient of " + name);
    for (const auto& [name, state] : step["state"].items())
      expect_near(loaded.of(loaded.gradients, name), state, "state " + name);
    for (std::size_t v = 0; v < loaded.layout.model.variables.size(); ++v) {
      const VariableSpec& variable = loaded.layout.model.variables[v];
      for (std::uint64_t i = loaded.layout.variable_begins[v], n = element_count(variable); n-- > 0; ++i)
        loaded.parameters[i] = variable.kind == VariableKind::kState
                                   ? loaded.gradients[i]
                                   : loaded.parameters[i] - all["learning_rate"].get<float>() * loaded.gradients[i];
    }
  }
  for (const VariableSpec& variable : loaded.layout.model.variables)
    expect_near(loaded.of(loaded.parameters, variable.name), all["end"][variable.name], variable.name);

  const Json& evaluation = all["evaluation"];
  Columns columns(evaluation);
  const std::vector<float> before = loaded.parameters;
  const Result<EngineOutput> evaluated = loaded.computation->evaluate(columns.batch());
  ASSERT_TRUE(evaluated) << evaluated.error().message;
  EXPECT_NEAR(evaluated->loss_sum, evaluation["loss_sum"].get<double>(), 1e-4);
  EXPECT_EQ(evaluated->metrics[0], evaluation["correct"].get<double>());
  const Result<EngineOutput> predicted = loaded.computation->predict(columns.batch());
  ASSERT_TRUE(predicted) << predicted.error().message;
  expect_near({predicted->outputs.begin(), predicted->outputs.end()}, evaluation["outputs"], "outputs");
  EXPECT_EQ(loaded.parameters, before) << "evaluate and predict write nothing";
}

TEST_P(ProgramTest, StepAnnouncesAllElementsInOrder) {
  Loaded loaded(batch_norm());
  Columns columns(4, 1);
  std::uint64_t announced = 0;
  const RangeReady ready = [&](std::uint64_t begin, std::uint64_t end) {
    EXPECT_EQ(begin, announced);
    for (std::uint64_t i = begin; i < end; ++i) EXPECT_FALSE(std::isnan(loaded.gradients[i])) << i;
    announced = end;
  };
  ASSERT_TRUE(loaded.computation->step(columns.batch(), {}, ready));
  EXPECT_EQ(announced, loaded.gradients.size());
}

// Gradients that are final leave while the program computes the others.
TEST_P(ProgramTest, StepAnnouncesFinalGradientsBeforeItsEnd) {
  if (GetParam() == std::string(".pt2")) return;  // a single program
  Loaded loaded(batch_norm());
  Columns columns(4, 1);
  std::vector<std::uint64_t> missing;  // after each announcement, the gradients that aren't written
  const RangeReady ready = [&](std::uint64_t, std::uint64_t) {
    missing.push_back(static_cast<std::uint64_t>(std::count_if(loaded.gradients.begin(), loaded.gradients.end(),
                                                               [](float value) { return std::isnan(value); })));
  };
  ASSERT_TRUE(loaded.computation->step(columns.batch(), {}, ready));
  ASSERT_GT(missing.size(), 1U);
  EXPECT_GT(missing.front(), 0U);
  EXPECT_EQ(missing.back(), 0U);
}

// A worker may write new values over the parameters that a step has announced.
TEST_P(ProgramTest, AnnouncedParametersAreNotReadAgain) {
  Loaded loaded(batch_norm());
  Columns columns(4, 1);
  ASSERT_TRUE(loaded.computation->step(columns.batch(), {}, {}));
  const std::vector<float> expected = loaded.gradients;
  const RangeReady overwrite = [&](std::uint64_t begin, std::uint64_t end) {
    std::fill(loaded.parameters.begin() + static_cast<std::ptrdiff_t>(begin),
              loaded.parameters.begin() + static_cast<std::ptrdiff_t>(end), NAN);
  };
  ASSERT_TRUE(loaded.computation->step(columns.batch(), {}, overwrite));
  EXPECT_EQ(loaded.gradients, expected);
}

TEST_P(ProgramTest, DamageOfAnyValueIsAnError) {
  const std::string whole = program::test::read_file(batch_norm());
  const Members members = program::test::members_of(batch_norm());
  const auto values = std::find_if(members.begin(), members.end(),
                                   [](const auto& member) { return member.first.ends_with(".safetensors"); });
  std::uint64_t header = 0;
  std::memcpy(&header, values->second.data(), sizeof(header));
  // The frozen variable body.weight comes first. A file of TorchScript has its values once more.
  const std::string frozen = values->second.substr(sizeof(header) + header, 6 * 8 * sizeof(float));
  const program::test::Folder folder;
  std::size_t places = 0;
  for (std::size_t at = whole.find(frozen); at != std::string::npos; at = whole.find(frozen, at + 1)) {
    std::string damaged = whole;
    damaged[at + 5] ^= 1;
    EXPECT_NE(Loaded(folder.write("damaged" + std::string(GetParam()), damaged)).error.find("has a wrong checksum"),
              std::string::npos);
    ++places;
  }
  EXPECT_EQ(places, GetParam() == std::string(".pt") ? 2U : 1U);
}

TEST_P(ProgramTest, BatchOfOneRecordKeepsTheVariance) {
  Loaded loaded(batch_norm());
  Columns columns(1, 1);
  ASSERT_TRUE(loaded.computation->step(columns.batch(), {}, {}));
  for (const float gradient : loaded.gradients) EXPECT_TRUE(std::isfinite(gradient));
  EXPECT_EQ(loaded.of(loaded.gradients, "norm.running_var"), loaded.of(loaded.parameters, "norm.running_var"));
}

TEST_P(ProgramTest, StateThatIsntFiniteIsPassedOn) {
  Loaded loaded(batch_norm());
  Columns columns(4, 1);
  columns.inputs[0] = std::numeric_limits<float>::infinity();
  ASSERT_TRUE(loaded.computation->step(columns.batch(), {}, {}));
  EXPECT_FALSE(std::isfinite(loaded.of(loaded.gradients, "norm.running_var")[0]));
}

TEST_P(ProgramTest, DropoutIsAFunctionOfTheStepsSeed) {
  Loaded loaded(dropout(), 2);
  ASSERT_EQ(loaded.error, "");
  Columns columns(16, 1);
  const auto gradients_of = [&](const StepSeed& seed) {
    EXPECT_TRUE(loaded.computation->step(columns.batch(), seed, {}));
    return loaded.gradients;
  };
  const std::vector<float> first = gradients_of({.job_seed = 5, .step = 3, .rank = 1});
  EXPECT_EQ(first, gradients_of({.job_seed = 5, .step = 3, .rank = 1}));
  EXPECT_NE(first, gradients_of({.job_seed = 5, .step = 4, .rank = 1}));
  EXPECT_NE(first, gradients_of({.job_seed = 5, .step = 3, .rank = 2}));
  const double loss = loaded.computation->evaluate(columns.batch())->loss_sum;
  EXPECT_EQ(loss, loaded.computation->evaluate(columns.batch())->loss_sum) << "no dropout in an evaluation";
}

TEST_P(ProgramTest, LabelOutOfRangeIsAnError) {
  Loaded loaded(batch_norm());
  Columns columns(4, 3);
  const Result<EngineOutput> output = loaded.computation->step(columns.batch(), {}, {});
  ASSERT_FALSE(output);
  EXPECT_EQ(output.error().code, ErrorCode::kData);
  EXPECT_EQ(output.error().message,
            "column labels of record 0 of the batch has the value 3; the program takes 0 to 2: correct the data, or "
            "export the model for more values");
}

TEST_P(ProgramTest, ColumnOfAnotherShapeIsAnError) {
  Loaded loaded(batch_norm());
  Columns columns(4, 1);
  columns.inputs.pop_back();
  const Result<EngineOutput> output = loaded.computation->evaluate(columns.batch());
  ASSERT_FALSE(output);
  EXPECT_NE(output.error().message.find("takes column inputs as 96 bytes for 4 records of 6 float32; the batch has 92"),
            std::string::npos)
      << output.error().message;
}

TEST_P(ProgramTest, TruncatedFileIsAnError) {
  const std::string whole = program::test::read_file(batch_norm());
  const program::test::Folder folder;
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{10}, whole.size() / 2, whole.size() - 1}) {
    const Loaded loaded(folder.write("cut.pt2", whole.substr(0, bytes)));
    EXPECT_NE(loaded.error.find("truncated"), std::string::npos) << loaded.error;
  }
}

// Variants of the compiled package.
class Pt2Test : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = reason_to_skip(); !reason.empty()) GTEST_SKIP() << reason;
    members_ = program::test::members_of(made("batch_norm.pt2"));
  }
  std::string& json() { return members_["p/disttrain.json"]; }
  std::string error_of_variant() { return Loaded(variant()).error; }
  std::string variant() { return folder_.write("variant.pt2", program::test::zip_of(members_)); }

  Members members_;
  program::test::Folder folder_;
};

TEST_F(Pt2Test, UnchangedVariantIsLoaded) {
  EXPECT_EQ(error_of_variant(), "");
}

TEST_F(Pt2Test, PackageOfAnotherTorchVersionIsAnError) {
  program::test::replace(json(), "\"2.11.0\"", "\"2.9.1\"");
  EXPECT_NE(error_of_variant().find("was exported with torch 2.9.1, and this worker has torch 2.11.0; export the model "
                                    "again with torch==2.11.0"),
            std::string::npos);
}

TEST_F(Pt2Test, PackageForAnotherProcessorIsAnError) {
  program::test::replace(json(), "\"x86-64-v3\"", "\"x86-64-v9\"");
  EXPECT_NE(error_of_variant().find(
                "is compiled for processors of level \"x86-64-v9\", which this worker doesn't know; expected"),
            std::string::npos);
}

TEST_F(Pt2Test, FixedBatchTakesNoOtherSize) {
  program::test::replace(json(), "\"batch\": null", "\"batch\": 5");
  Loaded loaded(variant());
  Columns columns(4, 1);
  const Result<EngineOutput> output = loaded.computation->step(columns.batch(), {}, {});
  ASSERT_FALSE(output);
  EXPECT_NE(
      output.error().message.find(" was exported with dynamic_batch=False, so it takes only batches of 5 records, and "
                                  "not this one of 4: export the model with dynamic_batch=True, or let "
                                  "train.batch_size, evaluate.batch_size, data.records and evaluate.records give "
                                  "batches of 5"),
      std::string::npos);
  Columns five(5, 1);
  EXPECT_TRUE(loaded.computation->step(five.batch(), {}, {}));
}

TEST_F(Pt2Test, NanWeightsAreAnError) {
  std::string& values = members_["p/disttrain.safetensors"];
  std::memset(values.data() + values.size() - sizeof(float), 0xFF, sizeof(float));  // a NaN
  EXPECT_NE(error_of_variant().find("variable head.bias has 1 initial values of 3 that are NaN or infinite"),
            std::string::npos);
}

TEST_F(Pt2Test, MissingOrDamagedLibraryIsAnError) {
  const Members whole = members_;
  members_.erase("p/data/aotinductor/step/step.wrapper.so");
  EXPECT_NE(error_of_variant().find("has no compiled program \"step\""), std::string::npos);
  members_ = whole;
  members_["p/data/aotinductor/step/step.wrapper.so"] = "no library";
  EXPECT_NE(error_of_variant().find("loading the program: libtorch said: "), std::string::npos);
  members_ = whole;
  std::string file = program::test::zip_of(members_);
  file[file.size() / 2] ^= 1;
  EXPECT_NE(Loaded(folder_.write("flipped.pt2", file)).error.find("has a wrong checksum"), std::string::npos);
}

TEST_F(Pt2Test, DamagedFrozenVariableIsAnError) {
  std::string file = program::test::zip_of(members_);
  // The frozen variable body.weight comes first in the file of values.
  const std::string& values = members_["p/disttrain.safetensors"];
  std::uint64_t header = 0;
  std::memcpy(&header, values.data(), sizeof(header));
  file[file.find(values) + sizeof(header) + header] ^= 1;
  EXPECT_NE(Loaded(folder_.write("flipped.pt2", file)).error.find("disttrain.safetensors has a wrong checksum"),
            std::string::npos);
}

TEST_F(Pt2Test, ProgramOfJaxNamesTheDeviceThatRunsIt) {
  program::test::replace(json(), "\"pt2\"", "\"stablehlo\"");
  EXPECT_NE(error_of_variant().find("set device = \"pjrt:"), std::string::npos);
}

// Variants of the package batch_norm.pt.
class TorchScriptMembersTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string reason = reason_to_skip(); !reason.empty()) GTEST_SKIP() << reason;
    checkpoint::DiskFiles files;
    Result<program::PackageFile> package = program::PackageFile::open(files, made("batch_norm.pt"));
    for (const program::Member& member : package->members())
      members_[member.name] = *package->unpack(member, std::uint64_t{1} << 30);
    code_ = std::find_if(members_.begin(), members_.end(), [](const auto& member) {
              return member.first.ends_with(".py");
            })->first;
  }
  std::string error() { return Loaded(folder_.write("variant.pt", program::test::zip_of(members_))).error; }
  // The code with an expression that would overflow the stack.
  std::string deep_code() const {
    return members_.at(code_) + "x = " + std::string(20'000, '(') + "1" + std::string(20'000, ')') + "\n";
  }

  program::test::Folder folder_;
  Members members_;
  std::string code_;  // the name of a member
};

TEST_F(TorchScriptMembersTest, UnchangedVariantIsLoaded) {
  EXPECT_EQ(error(), "");
}

TEST_F(TorchScriptMembersTest, DeepCodeIsAnErrorWhateverTheCaseOfItsName) {
  const std::string deep = deep_code();
  members_[code_] = deep;
  EXPECT_NE(error().find("brackets inside of each other"), std::string::npos) << error();
  members_.erase(code_);
  members_[code_.substr(0, code_.size() - 2) + "PY"] = deep;
  EXPECT_NE(error().find("brackets inside of each other"), std::string::npos) << error();
}

TEST_F(TorchScriptMembersTest, NamesThatDifferOnlyInCaseAreAnError) {
  members_[code_.substr(0, code_.size() - 2) + "PY"] = members_[code_];
  EXPECT_NE(error().find("two names differ only in case"), std::string::npos) << error();
}

// libtorch takes the last end record of the file, even if it lies in the comment of another one. The table behind the
// last one swaps the names of the code and of a member that nobody would check.
TEST_F(TorchScriptMembersTest, SecondTableOfMembersIsAnError) {
  const std::string unchecked = code_.substr(0, code_.size() - 1) + "z";
  members_[unchecked] = deep_code();
  const std::string file = program::test::zip_of(members_);
  const std::size_t end_bytes = 22;
  std::string end = file.substr(file.size() - end_bytes);
  std::uint32_t begin = 0;
  std::memcpy(&begin, end.data() + 16, sizeof(begin));
  const std::string table = file.substr(begin, file.size() - end_bytes - begin);
  std::string second = table;
  const std::size_t at = second.find(unchecked);
  program::test::replace(second, code_, unchecked);
  second.replace(at, code_.size(), code_);
  std::string last = end;
  begin += static_cast<std::uint32_t>(table.size());
  std::memcpy(last.data() + 16, &begin, sizeof(begin));
  last[20] = 1;  // says that a comment of one byte follows
  end[20] = static_cast<char>(end_bytes);
  const std::string both = file.substr(0, file.size() - end_bytes) + second + end + last;
  EXPECT_NE(Loaded(folder_.write("both.pt", both)).error.find("libtorch finds other members"), std::string::npos);
}

TEST(MakeProgramTest, MissingFileIsAnError) {
  const Result<std::unique_ptr<Computation>> program = make_program("/nowhere/step.pt2", 1);
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error().code, ErrorCode::kNoInput);
}

}  // namespace
}  // namespace disttrain::workerd
