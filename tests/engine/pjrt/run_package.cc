// Computes one batch with a package of disttrain.export_jax, for tests/python/jax_package.py:
//
//   run_package PLUGIN PACKAGE FOLDER PROGRAM EXAMPLES
//
// FOLDER has the batch: the file "column-NAME" for each column. If it has "parameters", these replace the initial
// values. The program writes to FOLDER: "parameters" (as they were used), "gradients", "metrics" (float64) and
// "outputs". All arrays are without a header. The flat ones are in the order of the model's variables, but the float64
// variables come first. It prints the sum of the losses. After an error it prints the message and returns the error's
// code.
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "engine/pjrt/pjrt_program.h"
#include "engine/pjrt/stablehlo_package.h"

namespace disttrain::workerd::pjrt {
namespace {

std::vector<std::byte> read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

template <typename T>
void write(const std::filesystem::path& path, std::span<const T> values) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size_bytes()));
}

Status run(const std::string& plugin, const std::string& package, const std::filesystem::path& folder,
           const std::string& program, std::uint64_t examples) {
  Result<StableHloModel> model = read_stablehlo_package(package);
  if (!model) return tl::unexpected(model.error());
  Result<std::unique_ptr<Computation>> made = make_pjrt_program(plugin, std::move(*model));
  if (!made) return tl::unexpected(made.error());
  Computation& computation = **made;
  const ModelSpec& spec = computation.describe();

  Layout layout;
  layout.model = spec;
  layout.shards = 1;
  layout.variable_begins.resize(spec.variables.size());
  std::uint64_t begin = 0;
  for (const DType dtype : {DType::kFloat64, DType::kFloat32})
    for (std::size_t v = 0; v < spec.variables.size(); ++v) {
      if (spec.variables[v].dtype != dtype) continue;
      layout.variable_begins[v] = begin;
      begin += word_count(spec.variables[v]);
    }
  std::vector<float> parameters(begin);
  std::vector<float> gradients(begin);
  if (Status status = computation.open(layout, parameters, gradients); !status) return status;
  if (std::filesystem::exists(folder / "parameters")) {
    const std::vector<std::byte> bytes = read(folder / "parameters");
    if (bytes.size() != begin * sizeof(float)) return fail(ErrorCode::kUsage, "parameters: wrong size");
    std::copy(bytes.begin(), bytes.end(), std::as_writable_bytes(std::span(parameters)).begin());
  } else {
    const Result<std::vector<float>> values = computation.initial_values();
    if (!values) return tl::unexpected(values.error());
    std::copy(values->begin(), values->end(), parameters.begin());
  }

  std::vector<std::vector<std::byte>> columns;
  for (const ColumnSpec& column : spec.columns) columns.push_back(read(folder / ("column-" + column.name)));
  std::vector<ColumnValues> values;
  for (const std::vector<std::byte>& column : columns) values.push_back({column, {}});
  const Batch batch{examples, values};
  const Result<EngineOutput> output = program == "step"       ? computation.step(batch, {1, 2, 3}, {})
                                      : program == "evaluate" ? computation.evaluate(batch)
                                                              : computation.predict(batch);
  if (!output) return tl::unexpected(output.error());
  write(folder / "parameters", std::span<const float>(parameters));
  write(folder / "gradients", std::span<const float>(gradients));
  write(folder / "metrics", output->metrics);
  write(folder / "outputs", output->outputs);
  std::cout.precision(17);
  std::cout << output->loss_sum << '\n';
  return {};
}

}  // namespace
}  // namespace disttrain::workerd::pjrt

int main(int argc, char** argv) {
  if (argc != 6) {
    std::cout << "usage: run_package PLUGIN PACKAGE FOLDER PROGRAM EXAMPLES\n";
    return 64;
  }
  const disttrain::Status status =
      disttrain::workerd::pjrt::run(argv[1], argv[2], argv[3], argv[4], std::stoull(argv[5]));
  if (status) return 0;
  std::cout << status.error().message << '\n';
  return static_cast<int>(status.error().code);
}
