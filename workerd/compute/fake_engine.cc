#include "workerd/compute/fake_engine.h"

#include <cmath>
#include <limits>

#include "common/check.h"
#include "workerd/compute/ready_front.h"

namespace disttrain::workerd {
namespace {

class FakeEngine final : public Engine {
 public:
  explicit FakeEngine(const FakeModel& model) : model_(model), spec_(describe_fake(model)) {}

  const ModelSpec& describe() const override { return spec_; }

  Status open(const Layout& layout, std::span<float> parameters, std::span<float> gradients) override {
    DISTTRAIN_CHECK(layout.model == spec_);
    DISTTRAIN_CHECK_EQ(parameters.size(), element_count(spec_));
    DISTTRAIN_CHECK_EQ(gradients.size(), element_count(spec_));
    begins_ = layout.variable_begins;
    parameters_ = parameters;
    gradients_ = gradients;
    front_ = ReadyFront(layout);
    return {};
  }

  Result<StepResult> compute(const Batch& batch, const StepSeed&, const RangeReady& ready) override {
    if (Status status = check(batch); !status) return tl::unexpected(status.error());
    const double sum = sum_of_values(batch);
    front_.begin(ready);
    for (std::uint32_t v = static_cast<std::uint32_t>(spec_.variables.size()); v-- > 0;) {
      const std::uint64_t begin = begins_[v];
      for (std::uint64_t e = 0; e < model_.variable_elements[v]; ++e) {
        float gradient = fake_coefficient(v, e) * static_cast<float>(sum);
        if (model_.reads_parameters && batch.examples > 0) gradient += fake_residue(parameters_[begin + e]);
        gradients_[begin + e] = gradient;
      }
      front_.final_whole(v);
    }
    if (batch.examples == 0) return StepResult{std::numeric_limits<float>::quiet_NaN()};
    return StepResult{static_cast<float>(sum / static_cast<double>(batch.examples))};
  }

  Result<EvaluationResult> evaluate(const Batch& batch) override {
    if (Status status = check(batch); !status) return tl::unexpected(status.error());
    EvaluationResult result{sum_of_values(batch), 0, batch.examples};
    if (model_.classes == 0) return result;
    const auto named =
        static_cast<std::int64_t>(std::fmod(std::fabs(parameters_[begins_[0]]), static_cast<float>(model_.classes)));
    for (std::int64_t label : batch.labels) result.correct += label == named ? 1U : 0U;
    return result;
  }

 private:
  Status check(const Batch& batch) const {
    const std::uint64_t labels = model_.classes > 0 ? batch.examples : 0;
    if (batch.inputs.size() != batch.examples * model_.input_elements || batch.labels.size() != labels)
      return fail(ErrorCode::kData, "a batch of " + std::to_string(batch.examples) + " examples has " +
                                        std::to_string(batch.inputs.size()) + " input values and " +
                                        std::to_string(batch.labels.size()) + " labels; the fake model expects " +
                                        std::to_string(batch.examples * model_.input_elements) + " and " +
                                        std::to_string(labels));
    for (std::int64_t label : batch.labels)
      if (label < 0 || static_cast<std::uint64_t>(label) >= model_.classes)
        return fail(ErrorCode::kData, "a record has label " + std::to_string(label) + "; the fake model has " +
                                          std::to_string(model_.classes) + " classes");
    return {};
  }

  double sum_of_values(const Batch& batch) const {
    double sum = 0.0;
    for (std::uint64_t i = 0; i < batch.examples; ++i)
      sum += static_cast<double>(batch.inputs[i * model_.input_elements]);
    for (std::int64_t label : batch.labels) sum += static_cast<double>(label);
    return sum;
  }

  const FakeModel model_;
  const ModelSpec spec_;
  std::vector<std::uint64_t> begins_;
  std::span<float> parameters_;
  std::span<float> gradients_;
  ReadyFront front_;
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
  spec.input_elements = model.input_elements;
  spec.classes = model.classes;
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
