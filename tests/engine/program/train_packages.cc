// Trains with packages of disttrain.export as a worker with one ps and the rule sgd does, for
// tests/python/exporting/trained.py:
//
//   train_packages RATE STEPS [PACKAGE FOLDER]...
//
// FOLDER has the batches: the files step0-NAME, step1-NAME and so on, and evaluate-NAME, with the values of each
// column. The program writes to FOLDER:
//
//   parameters    the variables that aren't frozen, after the last step, in the order of the model
//   losses        float64: for each step the sum of the losses, and that of the evaluation at the end
//   seeds         uint64: for each step the seed of libtorch's random numbers
//   outputs       those of the prediction, float32
//
// All files are arrays without a header. If a package fails, the program prints its path and the message, goes on with
// the next one, and returns 1 at its end.
#include <ATen/Context.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "common/doubles.h"
#include "engine/program/program.h"

namespace disttrain::workerd {
namespace {

struct Columns {
  std::vector<std::string> bytes;
  std::vector<ColumnValues> values;
  std::uint64_t examples = 0;

  Batch batch() const { return {examples, values}; }
};

Columns read_columns(const ModelSpec& model, const std::filesystem::path& folder, const std::string& prefix) {
  Columns columns;
  for (const ColumnSpec& column : model.columns) {
    std::ifstream file(folder / (prefix + "-" + column.name), std::ios::binary);
    columns.bytes.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    columns.examples = columns.bytes.back().size() / (element_count(column) * size_of(column.dtype));
  }
  for (const std::string& bytes : columns.bytes) columns.values.push_back({std::as_bytes(std::span(bytes)), {}});
  return columns;
}

template <typename T>
void write(const std::filesystem::path& path, std::span<const T> values) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size_bytes()));
}

// The layout with one bucket for each variable, in the order of the model.
Layout layout_of(const ModelSpec& model) {
  Layout layout;
  layout.model = model;
  layout.shards = 1;
  std::uint64_t begin = 0;
  for (const VariableSpec& variable : model.variables) {
    layout.variable_begins.push_back(begin);
    layout.buckets.push_back({ShardId{0}, begin, begin, word_count(variable)});
    begin += word_count(variable);
  }
  return layout;
}

// What a shard does with a push.
void apply(const Layout& layout, double rate, std::span<float> parameters, std::span<float> pushed) {
  for (std::size_t v = 0; v < layout.model.variables.size(); ++v) {
    const VariableSpec& variable = layout.model.variables[v];
    const std::span<float> old = parameters.subspan(layout.variable_begins[v], word_count(variable));
    const std::span<float> push = pushed.subspan(layout.variable_begins[v], word_count(variable));
    with_type(variable.dtype, [&]<typename T>(T) {
      const std::span<T> values = values_in<T>(old);
      const std::span<T> changes = values_in<T>(push);
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = variable.kind == VariableKind::kState ? changes[i] : values[i] - static_cast<T>(rate) * changes[i];
    });
  }
}

Status train(const std::string& path, const std::filesystem::path& folder, double rate, std::uint64_t steps) {
  Result<std::unique_ptr<Computation>> made = make_program(path, 1);
  if (!made) return tl::unexpected(made.error());
  Computation& computation = **made;
  const Layout layout = layout_of(computation.describe());
  std::uint64_t words = 0;
  for (const VariableSpec& variable : layout.model.variables) words += word_count(variable);
  std::vector<float> parameters(words);
  std::vector<float> pushed(words);
  if (Status opened = computation.open(layout, parameters, pushed); !opened) return opened;
  const Result<std::vector<float>> initial = computation.initial_values();
  if (!initial) return tl::unexpected(initial.error());
  std::copy(initial->begin(), initial->end(), parameters.begin());

  std::vector<double> losses;
  std::vector<std::uint64_t> seeds;
  for (std::uint64_t step = 0; step < steps; ++step) {
    const Columns columns = read_columns(layout.model, folder, "step" + std::to_string(step));
    const Result<EngineOutput> output = computation.step(columns.batch(), {.job_seed = 1, .step = step, .rank = 0}, {});
    if (!output) return tl::unexpected(output.error());
    losses.push_back(output->loss_sum);
    seeds.push_back(at::globalContext().defaultGenerator(at::kCPU).current_seed());
    apply(layout, rate, parameters, pushed);
  }
  const Columns columns = read_columns(layout.model, folder, "evaluate");
  const Result<EngineOutput> evaluated = computation.evaluate(columns.batch());
  if (!evaluated) return tl::unexpected(evaluated.error());
  losses.push_back(evaluated->loss_sum);
  const Result<EngineOutput> predicted = computation.predict(columns.batch());
  if (!predicted) return tl::unexpected(predicted.error());
  write(folder / "outputs", predicted->outputs);
  write(folder / "parameters", std::span<const float>(parameters));
  write(folder / "losses", std::span<const double>(losses));
  write(folder / "seeds", std::span<const std::uint64_t>(seeds));
  return {};
}

}  // namespace
}  // namespace disttrain::workerd

int main(int argc, char** argv) {
  if (argc < 5 || argc % 2 == 0) {
    std::cerr << "usage: train_packages RATE STEPS [PACKAGE FOLDER]...\n";
    return 64;
  }
  bool failed = false;
  for (int i = 3; i < argc; i += 2) {
    const disttrain::Status status =
        disttrain::workerd::train(argv[i], argv[i + 1], std::stod(argv[1]), std::stoull(argv[2]));
    if (!status) std::cout << argv[i] << ": " << status.error().message << '\n';
    failed = failed || !status;
  }
  return failed ? 1 : 0;
}
