#include "engine/fake_engine.h"

#include <array>
#include <cmath>

#include "common/check.h"
#include "engine/ready_front.h"
#include "engine/records.h"
#include "engine/sink_call.h"

namespace disttrain::workerd {
namespace {

class FakeEngine final : public Engine {
 public:
  explicit FakeEngine(const FakeModel& model) : model_(model), spec_(describe_fake(model)) {}

  const ModelSpec& describe() const override { return spec_; }
  Status takes(Program, std::uint64_t) const override { return {}; }

  Status open(const Layout& layout, std::span<float> parameters, std::span<float> gradients) override {
    DISTTRAIN_CHECK(!is_calling_sink_);
    DISTTRAIN_CHECK(layout.model == spec_);
    DISTTRAIN_CHECK_EQ(parameters.size(), element_count(spec_));
    DISTTRAIN_CHECK_EQ(gradients.size(), element_count(spec_));
    begins_ = layout.variable_begins;
    parameters_ = parameters;
    gradients_ = gradients;
    front_ = ReadyFront(layout);
    return {};
  }

  Result<std::vector<float>> initial_values() override { return std::vector<float>(); }

  void start(const EngineInput& input, EngineSink& sink) override {
    DISTTRAIN_CHECK(!is_calling_sink_);
    const SinkCall call(is_calling_sink_);
    const Records records = records_of(input.batch);
    if (Status status = check(records); !status) return sink.finished(tl::unexpected(status.error()));
    if (input.program == Program::kStep) return step(records, sink);
    evaluate(records, sink);
  }

  // There is nothing to end, because each computation ends inside start().
  void abort() override { DISTTRAIN_CHECK(!is_calling_sink_); }

 private:
  void step(const Records& records, EngineSink& sink) {
    const double sum = sum_of_values(records);
    const RangeReady ready = [&sink](std::uint64_t begin, std::uint64_t end) { sink.ready(begin, end); };
    front_.begin(ready);
    for (std::uint32_t v = static_cast<std::uint32_t>(spec_.variables.size()); v-- > 0;) {
      const std::uint64_t begin = begins_[v];
      for (std::uint64_t e = 0; e < model_.variable_elements[v]; ++e) {
        float gradient = fake_coefficient(v, e) * static_cast<float>(sum);
        if (model_.reads_parameters && records.examples > 0) gradient += fake_residue(parameters_[begin + e]);
        gradients_[begin + e] = gradient;
      }
      front_.final_whole(v);
    }
    sink.finished(EngineOutput{.loss_sum = sum, .examples = records.examples});
  }

  void evaluate(const Records& records, EngineSink& sink) {
    EngineOutput output{.loss_sum = sum_of_values(records), .examples = records.examples};
    if (model_.classes > 0) {
      const auto named =
          static_cast<std::int64_t>(std::fmod(std::fabs(parameters_[begins_[0]]), static_cast<float>(model_.classes)));
      accuracy_ = {0.0, static_cast<double>(records.examples)};
      for (std::int64_t label : records.labels) accuracy_[0] += label == named ? 1.0 : 0.0;
      output.metrics = accuracy_;
    }
    sink.finished(output);
  }

  Records records_of(const Batch& batch) const {
    Records records{batch.examples, {}, {}, {}};
    if (batch.columns.empty()) return records;
    records.inputs = batch.columns[0].as<float>();
    if (model_.classes > 0) records.labels = batch.columns[1].as<std::int64_t>();
    return records;
  }

  Status check(const Records& records) const {
    const std::uint64_t labels = model_.classes > 0 ? records.examples : 0;
    if (records.inputs.size() != records.examples * model_.input_elements || records.labels.size() != labels)
      return fail(ErrorCode::kData, "a batch of " + std::to_string(records.examples) + " examples has " +
                                        std::to_string(records.inputs.size()) + " input values and " +
                                        std::to_string(records.labels.size()) + " labels; the fake model expects " +
                                        std::to_string(records.examples * model_.input_elements) + " and " +
                                        std::to_string(labels));
    for (std::int64_t label : records.labels)
      if (label < 0 || static_cast<std::uint64_t>(label) >= model_.classes)
        return fail(ErrorCode::kData, "a record has label " + std::to_string(label) + "; the fake model has " +
                                          std::to_string(model_.classes) + " classes");
    return {};
  }

  double sum_of_values(const Records& records) const {
    double sum = 0.0;
    for (std::uint64_t i = 0; i < records.examples; ++i)
      sum += static_cast<double>(records.inputs[i * model_.input_elements]);
    for (std::int64_t label : records.labels) sum += static_cast<double>(label);
    return sum;
  }

  const FakeModel model_;
  const ModelSpec spec_;
  std::vector<std::uint64_t> begins_;
  std::span<float> parameters_;
  std::span<float> gradients_;
  std::array<double, 2> accuracy_ = {};
  ReadyFront front_;
  bool is_calling_sink_ = false;
};

}  // namespace

ModelSpec describe_fake(const FakeModel& model) {
  ModelSpec spec;
  for (std::size_t v = 0; v < model.variable_elements.size(); ++v)
    spec.variables.push_back({"v" + std::to_string(v),
                              {model.variable_elements[v]},
                              VariableKind::kTrainable,
                              {InitializerKind::kZeros, 0.0},
                              1,
                              1});
  spec.columns.push_back({.name = "inputs", .dtype = DType::kFloat32, .shape = {model.input_elements}});
  if (model.classes > 0) {
    spec.columns.push_back({.name = "labels", .dtype = DType::kInt64, .shape = {}, .limit = model.classes});
    spec.metrics.push_back({.name = "accuracy", .kind = MetricKind::kAccuracy});
  }
  return spec;
}

float fake_coefficient(std::uint32_t variable, std::uint64_t element) {
  return static_cast<float>((variable + element) % 3 + 1);
}

float fake_residue(float parameter) {
  const float residue = std::fmod(parameter, 3.0F);
  if (!std::isfinite(residue)) return 0.0F;
  const float whole = std::trunc(residue);
  return whole < 0.0F ? whole + 3.0F : whole;
}

std::unique_ptr<Engine> make_fake_engine(const FakeModel& model) {
  DISTTRAIN_CHECK(!model.variable_elements.empty());
  DISTTRAIN_CHECK_LE(std::uint64_t{1}, model.input_elements);
  return std::make_unique<FakeEngine>(model);
}

}  // namespace disttrain::workerd
