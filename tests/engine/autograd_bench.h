// Builtin models for tests, with the parameters and records of pytorch_numbers.py, and a bench that computes them.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/builtin/builtin.h"
#include "engine/autograd/autograd_model.h"
#include "engine/torch_model.h"
#include "tests/engine/drive.h"
#include "tests/engine/reference.h"

namespace disttrain::workerd::test {

constexpr float kRate = 0.001F;

// A number from -1 to 1: splitmix64 of (stream, index), as in pytorch_numbers.py.
inline double random_at(std::uint64_t stream, std::uint64_t index) {
  std::uint64_t x = index + (stream << 40U) + 0x9E3779B97F4A7C15U;
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
  x ^= x >> 31U;
  return static_cast<double>(x >> 40U) / 0x1p23 - 1.0;
}

inline std::vector<float> floats(std::uint64_t stream, std::size_t size) {
  std::vector<float> values(size);
  for (std::size_t i = 0; i < size; ++i) values[i] = static_cast<float>(random_at(stream, i));
  return values;
}

template <typename T>
inline std::vector<T> integers(std::uint64_t stream, std::uint64_t limit, std::size_t size) {
  std::vector<T> values(size);
  for (std::size_t i = 0; i < size; ++i)
    values[i] = static_cast<T>(std::floor((random_at(stream, i) + 1.0) / 2.0 * static_cast<double>(limit)));
  return values;
}

inline float initial(std::size_t index, const VariableSpec& variable, std::uint64_t element) {
  const double u = random_at(100 + index, element);
  const std::vector<std::uint64_t>& shape = variable.shape;
  const bool is_factor = variable.name.ends_with("weight") || variable.name.ends_with("running_var");
  if (shape.size() == 1) return static_cast<float>(0.1 * u + (is_factor ? 1.0 : 0.0));
  if (shape.size() == 2)
    return static_cast<float>(u * std::sqrt(3.0 / static_cast<double>(std::max(shape[0], shape[1]))));
  return static_cast<float>(u / std::sqrt(static_cast<double>(element_count(variable) / shape[0])));
}

// Owns the columns of a batch.
class TestBatch {
 public:
  explicit TestBatch(std::uint64_t examples) : examples_(examples) {}

  template <typename T>
  TestBatch& add(std::vector<T> values) {
    const auto bytes = std::as_bytes(std::span(values));
    columns_.emplace_back(bytes.begin(), bytes.end());
    return *this;
  }
  // Makes the last column ragged.
  TestBatch& rows_end_at(std::vector<std::uint64_t> ends) {
    row_ends_.resize(columns_.size());
    row_ends_.back() = std::move(ends);
    return *this;
  }
  template <typename T>
  void set(std::size_t column, std::size_t index, T value) {
    std::memcpy(columns_[column].data() + index * sizeof(T), &value, sizeof(T));
  }
  Batch batch() {
    values_.clear();
    row_ends_.resize(columns_.size());
    for (std::size_t c = 0; c < columns_.size(); ++c) values_.push_back({columns_[c], row_ends_[c]});
    return {examples_, values_};
  }

 private:
  std::uint64_t examples_;
  std::vector<std::vector<std::byte>> columns_;
  std::vector<std::vector<std::uint64_t>> row_ends_;
  std::vector<ColumnValues> values_;
};

// A model that is open, with the parameters of pytorch_numbers.py.
class Bench {
 public:
  // threads = 0: the model of autograd_model.h itself. Otherwise the one that a worker with so many threads has, which
  // may have kernels of its own.
  explicit Bench(const ModelSection& model, std::uint32_t threads = 0)
      : spec_(builtin_model(model).value()),
        inner_(threads > 0 ? make_torch_model(model, threads).value() : make_autograd_model(model, spec_)),
        layout_(reversed_layout(spec_)),
        parameters_(element_count(spec_)),
        gradients_(element_count(spec_), std::numeric_limits<float>::quiet_NaN()) {
    for (std::size_t v = 0; v < spec_.variables.size(); ++v)
      for (std::uint64_t e = 0; e < element_count(spec_.variables[v]); ++e)
        parameters_[layout_.variable_begins[v] + e] = initial(v, spec_.variables[v], e);
    EXPECT_TRUE(inner_->open(layout_, parameters_, gradients_));
  }

  // The mean loss.
  double step(TestBatch& records, const StepSeed& seed = {}) {
    ranges_.clear();
    const auto ready = [this](std::uint64_t begin, std::uint64_t end) { ranges_.emplace_back(begin, end); };
    const Result<EngineOutput> output = inner_->step(records.batch(), seed, ready);
    EXPECT_TRUE(output) << output.error().message;
    return output ? output->loss_sum / static_cast<double>(output->examples) : NAN;
  }

  // What a ps does after a step, with the rule sgd and one worker.
  void apply() {
    for (std::size_t v = 0; v < spec_.variables.size(); ++v)
      for (std::uint64_t e = 0; e < element_count(spec_.variables[v]); ++e) {
        const std::uint64_t at = layout_.variable_begins[v] + e;
        if (spec_.variables[v].kind == VariableKind::kState)
          parameters_[at] = gradients_[at];
        else
          parameters_[at] -= kRate * gradients_[at];
      }
  }

  Result<EngineOutput> evaluate(TestBatch& records) { return inner_->evaluate(records.batch()); }

  std::span<const float> gradient(std::size_t variable) const { return part(gradients_, variable); }
  std::span<const float> parameter(std::size_t variable) const { return part(parameters_, variable); }

  Computation& computation() { return *inner_; }
  const ModelSpec& spec() const { return spec_; }
  const Ranges& ranges() const { return ranges_; }
  std::vector<float>& gradients() { return gradients_; }
  std::vector<float>& parameters() { return parameters_; }

 private:
  std::span<const float> part(const std::vector<float>& array, std::size_t variable) const {
    return std::span(array).subspan(layout_.variable_begins[variable], element_count(spec_.variables[variable]));
  }

  const ModelSpec spec_;
  const std::unique_ptr<Computation> inner_;
  const Layout layout_;
  std::vector<float> parameters_;
  std::vector<float> gradients_;
  Ranges ranges_;
};

struct Case {
  const char* name;
  ModelSection model;
  TestBatch records;
};

inline ModelSection model_of(const std::string& builtin) {
  ModelSection model;
  model.builtin = builtin;
  return model;
}

inline Case mlp_case() {
  ModelSection model = model_of("mlp");
  model.layers = {7, 9, 4};
  model.activation = Activation::kTanh;
  model.label_smoothing = 0.1;
  model.class_weights = {0.5, 1.0, 2.0, 0.0};
  return {"mlp", model, TestBatch(6).add(floats(1, 42)).add(integers<std::int64_t>(2, 4, 6))};
}

inline Case cnn_case() {
  ModelSection model = model_of("cnn");
  model.label_smoothing = 0.2;
  return {"cnn", model, TestBatch(3).add(floats(1, 3 * 784)).add(integers<std::int64_t>(2, 10, 3))};
}

inline Case resnet_case(const char* name, std::uint32_t depth, Stem stem, std::uint32_t examples, std::uint32_t side) {
  ModelSection model = model_of("resnet");
  model.resnet.depth = depth;
  model.resnet.stem = stem;
  model.resnet.image = {3, side, side};
  return {name, model,
          TestBatch(examples)
              .add(floats(1, std::size_t{examples} * 3 * side * side))
              .add(integers<std::int64_t>(2, 10, examples))};
}

inline Case transformer_case(const char* name, bool tied) {
  ModelSection model = model_of("transformer");
  model.transformer = {.blocks = 2, .heads = 2, .width = 8, .context = 5, .vocabulary = 11, .tied_embeddings = tied};
  return {name, model, TestBatch(3).add(integers<std::uint8_t>(1, 11, 18))};
}

// The same records, but the second one has four tokens and the third one has one, which predicts nothing.
inline Case ragged_transformer_case() {
  Case ragged = transformer_case("transformer-ragged", true);
  std::vector<std::uint8_t> tokens = integers<std::uint8_t>(1, 11, 18);
  tokens.erase(tokens.begin() + 13, tokens.end());
  tokens.erase(tokens.begin() + 10, tokens.begin() + 12);
  ragged.records = TestBatch(3).add(tokens).rows_end_at({6, 10, 11});
  return ragged;
}

inline Case matrix_factorization_case() {
  ModelSection model = model_of("matrix_factorization");
  model.matrix_factorization = {.users = 6, .items = 5, .factors = 3};
  model.loss = Loss::kMse;
  const auto users = integers<std::int64_t>(1, 6, 8);
  const auto items = integers<std::int64_t>(2, 5, 8);
  std::vector<float> inputs;
  for (std::size_t i = 0; i < users.size(); ++i) {
    inputs.push_back(static_cast<float>(users[i]));
    inputs.push_back(static_cast<float>(items[i]));
  }
  return {"matrix-factorization", model, TestBatch(8).add(inputs).add(floats(3, 8))};
}

inline Case wide_deep_case() {
  ModelSection model = model_of("wide_deep");
  model.wide_deep = {.numeric = 3, .categories = {4, 6}, .embedding = 7, .hidden = {8}, .outputs = 2};
  model.activation = Activation::kGelu;
  model.loss = Loss::kSigmoidCrossEntropy;
  const auto first = integers<std::int64_t>(2, 4, 5);
  const auto second = integers<std::int64_t>(3, 6, 5);
  std::vector<std::int64_t> categories;
  for (std::size_t i = 0; i < first.size(); ++i) categories.insert(categories.end(), {first[i], second[i]});
  return {"wide-deep", model, TestBatch(5).add(floats(1, 15)).add(categories).add(integers<float>(4, 2, 10))};
}

inline std::vector<Case> small_cases() {
  return {mlp_case(),
          cnn_case(),
          resnet_case("resnet18", 18, Stem::kCifar, 4, 32),
          transformer_case("transformer", true),
          transformer_case("transformer-untied", false),
          ragged_transformer_case(),
          matrix_factorization_case(),
          wide_deep_case()};
}

inline std::vector<Case> deep_cases() {
  return {resnet_case("resnet34", 34, Stem::kImagenet, 4, 64), resnet_case("resnet50", 50, Stem::kImagenet, 4, 64)};
}

inline std::string name_of(const testing::TestParamInfo<Case>& info) {
  std::string name = info.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

}  // namespace disttrain::workerd::test
