#include "engine/pjrt/pjrt_program.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "common/check.h"
#include "common/doubles.h"
#include "common/random.h"
#include "engine/pjrt/program_set.h"
#include "engine/pjrt/step_plan.h"
#include "engine/ready_front.h"

namespace disttrain::workerd::pjrt {
namespace {

abi::ElementType element_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return abi::kFloat32Type;
    case DType::kFloat64:
      return abi::kFloat64Type;
    case DType::kFloat16:
      return abi::kFloat16Type;
    case DType::kBfloat16:
      return abi::kBfloat16Type;
    case DType::kInt32:
      return abi::kInt32Type;
    case DType::kInt64:
      return abi::kInt64Type;
    case DType::kUint8:
      return abi::kUint8Type;
    case DType::kBytes:
      break;
  }
  return abi::kInvalidType;
}

// The type of an array whose shape begins with `first`.
ArrayType array_type(abi::ElementType element, const std::vector<std::uint64_t>& shape,
                     const std::vector<std::int64_t>& first = {}) {
  ArrayType type{element, first};
  for (const std::uint64_t dim : shape) type.dims.push_back(static_cast<std::int64_t>(dim));
  return type;
}

class PjrtProgram final : public Computation {
 public:
  PjrtProgram(std::unique_ptr<Client> client, StableHloModel model)
      : client_(std::move(client)),
        model_(std::move(model)),
        spec_(model_.spec),
        programs_(*client_, model_),
        plan_(plan_step(model_)) {}

  const ModelSpec& describe() const override { return spec_; }
  Status takes(Program program, std::uint64_t examples) const override { return programs_.takes(program, examples); }
  Status open(const Layout& layout, std::span<float> parameters, std::span<float> gradients) override;
  Result<std::vector<float>> initial_values() override;
  Result<EngineOutput> step(const Batch& batch, const StepSeed& seed, const RangeReady& ready) override;
  Result<EngineOutput> evaluate(const Batch& batch) override;
  Result<EngineOutput> predict(const Batch& batch) override;

 private:
  // The place of a variable in the flat arrays.
  struct Place {
    std::uint64_t begin = 0;
    std::uint64_t words = 0;
    DType dtype = DType::kFloat32;
  };

  // One for each variable of ModelSpec. Nothing for those that aren't on the device.
  using Variables = std::vector<std::optional<Buffer>>;

  Result<std::vector<Part>> begin(Program program, const Batch& batch);
  Status bring_frozen();
  Status bring_variables(VariableKind kind, std::span<const float> flat, Variables& to) const;
  Result<std::vector<Buffer>> bring_others(const Batch& batch, const Part& part, const std::uint32_t* seed) const;
  std::vector<const Buffer*> inputs_of(const Variables& variables, const std::vector<Buffer>& others) const;
  Result<std::vector<Buffer>> run(const Part& part, const Batch& batch, const Variables& variables) const;
  Status run_stages(const Batch& batch, const Part& part, const std::uint32_t* seed, Variables& variables);
  Status add_figures(const Part& part, const Buffer& loss, const Buffer* accumulators);
  Status settle(const std::vector<std::uint32_t>& settled, const std::vector<std::optional<Buffer>>& given,
                const Batch& batch, const Part& part, Variables& variables);
  void add_gradient(const Place& place, bool is_first, double weight);
  void take_state(const Place& place, const Part& part);

  // constant after construction
  const std::unique_ptr<Client> client_;
  const StableHloModel model_;
  const ModelSpec& spec_;
  ProgramSet programs_;
  StepPlan plan_;  // open() sorts its settled variables by their places in the flat arrays

  // of open()
  Layout layout_;
  std::vector<Place> places_;  // for each variable
  ReadyFront front_;
  std::span<float> parameters_;
  std::span<float> gradients_;

  std::vector<Buffer> frozen_;  // made once

  // of the computation under way, or the last one
  EngineOutput output_;
  std::vector<double> metrics_;
  std::vector<float> outputs_;
  std::vector<float> part_gradients_;  // of any part but the first; empty until a batch has several parts
};

Status PjrtProgram::open(const Layout& layout, std::span<float> parameters, std::span<float> gradients) {
  DISTTRAIN_CHECK(layout.model == spec_);
  DISTTRAIN_CHECK_EQ(parameters.size(), word_count(spec_));
  DISTTRAIN_CHECK_EQ(gradients.size(), word_count(spec_));
  places_.clear();
  for (std::size_t i = 0; i < spec_.variables.size(); ++i)
    places_.push_back({layout.variable_begins[i], word_count(spec_.variables[i]), spec_.variables[i].dtype});
  for (PlannedStage& stage : plan_.stages)
    std::sort(stage.settled.begin(), stage.settled.end(),
              [this](std::uint32_t a, std::uint32_t b) { return places_[a].begin < places_[b].begin; });
  front_ = ReadyFront(layout);
  parameters_ = parameters;
  gradients_ = gradients;
  layout_ = layout;
  return {};
}

Result<std::vector<float>> PjrtProgram::initial_values() {
  return model_.source->initial_values(layout_);
}

Result<EngineOutput> PjrtProgram::step(const Batch& batch, const StepSeed& seed, const RangeReady& ready) {
  const Result<std::vector<Part>> parts = begin(Program::kStep, batch);
  if (!parts) return tl::unexpected(parts.error());
  Variables variables;
  if (Status status = bring_variables(VariableKind::kTrainable, parameters_, variables); !status)
    return tl::unexpected(status.error());
  const RangeReady to_nobody;
  for (std::size_t i = 0; i < parts->size(); ++i) {
    // A part begins with the state of the part before it.
    if (Status status = bring_variables(VariableKind::kState, i > 0 ? gradients_ : parameters_, variables); !status)
      return tl::unexpected(status.error());
    // Each part of each worker's step has random numbers of its own.
    const PhiloxBlock words =
        random_block(seed.job_seed, stream_of("pjrt step", seed.step), std::uint64_t{seed.rank} << 32 | i);
    front_.begin(i + 1 == parts->size() && std::isfinite(output_.loss_sum) ? ready : to_nobody);
    if (Status status = run_stages(batch, (*parts)[i], words.data(), variables); !status)
      return tl::unexpected(status.error());
  }
  output_.metrics = metrics_;
  return output_;
}

Result<EngineOutput> PjrtProgram::evaluate(const Batch& batch) {
  const Result<std::vector<Part>> parts = begin(Program::kEvaluate, batch);
  if (!parts) return tl::unexpected(parts.error());
  Variables variables;
  for (const VariableKind kind : {VariableKind::kTrainable, VariableKind::kState})
    if (Status status = bring_variables(kind, parameters_, variables); !status) return tl::unexpected(status.error());
  for (const Part& part : *parts) {
    const Result<std::vector<Buffer>> outputs = run(part, batch, variables);
    if (!outputs) return tl::unexpected(outputs.error());
    const Buffer* const accumulators = spec_.metrics.empty() ? nullptr : &(*outputs)[1];
    if (Status status = add_figures(part, (*outputs)[0], accumulators); !status) return tl::unexpected(status.error());
  }
  output_.metrics = metrics_;
  return output_;
}

Result<EngineOutput> PjrtProgram::predict(const Batch& batch) {
  const Result<std::vector<Part>> parts = begin(Program::kPredict, batch);
  if (!parts) return tl::unexpected(parts.error());
  Variables variables;
  for (const VariableKind kind : {VariableKind::kTrainable, VariableKind::kState})
    if (Status status = bring_variables(kind, parameters_, variables); !status) return tl::unexpected(status.error());
  std::uint64_t width = 0;  // outputs of one example
  for (const Part& part : *parts) {
    const Result<std::vector<Buffer>> outputs = run(part, batch, variables);
    if (!outputs) return tl::unexpected(outputs.error());
    std::uint64_t of_part = 1;
    for (const std::int64_t dim : part.stages[0]->outputs()[0].dims) of_part *= static_cast<std::uint64_t>(dim);
    if (part.begin > 0 && of_part / part.examples != width)
      return fail(ErrorCode::kConfig, "the model's predict programs for different batch sizes return " +
                                          std::to_string(width) + " and " + std::to_string(of_part / part.examples) +
                                          " outputs for one example; export the model again");
    width = of_part / part.examples;
    outputs_.resize(width * batch.examples);
    const std::span<float> destination = std::span(outputs_).subspan(width * part.begin, of_part);
    if (Status status = (*outputs)[0].read(std::as_writable_bytes(destination)); !status)
      return tl::unexpected(status.error());
  }
  output_.outputs = outputs_;
  return output_;
}

Result<std::vector<Part>> PjrtProgram::begin(Program program, const Batch& batch) {
  DISTTRAIN_CHECK(batch.examples > 0);
  DISTTRAIN_CHECK_EQ(batch.columns.size(), spec_.columns.size());
  output_ = {};
  output_.examples = batch.examples;
  metrics_.assign(accumulator_size(spec_.metrics), 0.0);
  outputs_.clear();
  if (Status status = bring_frozen(); !status) return tl::unexpected(status.error());
  return programs_.parts_of(program, batch.examples);
}

Status PjrtProgram::bring_frozen() {
  for (std::size_t i = frozen_.size(); i < model_.frozen.size(); ++i) {
    const FrozenVariable& variable = model_.frozen[i];
    Result<Buffer> buffer =
        Buffer::of(*client_, array_type(element_type(variable.dtype), variable.shape), variable.values);
    if (!buffer) return tl::unexpected(buffer.error());
    frozen_.push_back(std::move(*buffer));
  }
  return {};
}

// Brings the variables of one kind from an array in the order of the layout.
Status PjrtProgram::bring_variables(VariableKind kind, std::span<const float> flat, Variables& to) const {
  to.resize(places_.size());
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const VariableSpec& variable = spec_.variables[i];
    if (variable.kind != kind) continue;
    Result<Buffer> buffer = Buffer::of(*client_, array_type(element_type(variable.dtype), variable.shape),
                                       std::as_bytes(flat.subspan(places_[i].begin, places_[i].words)));
    if (!buffer) return tl::unexpected(buffer.error());
    to[i].emplace(std::move(*buffer));
  }
  return {};
}

// Brings a part's columns and, for a step, its seed.
Result<std::vector<Buffer>> PjrtProgram::bring_others(const Batch& batch, const Part& part,
                                                      const std::uint32_t* seed) const {
  std::vector<Buffer> others;
  for (std::size_t i = 0; i < spec_.columns.size(); ++i) {
    const ColumnSpec& column = spec_.columns[i];
    const std::uint64_t record = element_count(column) * size_of(column.dtype);
    DISTTRAIN_CHECK_EQ(batch.columns[i].bytes.size(), batch.examples * record);
    Result<Buffer> buffer = Buffer::of(
        *client_, array_type(element_type(column.dtype), column.shape, {static_cast<std::int64_t>(part.examples)}),
        batch.columns[i].bytes.subspan(part.begin * record, part.examples * record));
    if (!buffer) return tl::unexpected(buffer.error());
    others.push_back(std::move(*buffer));
  }
  if (seed != nullptr) {
    Result<Buffer> buffer = Buffer::of(*client_, {abi::kUint32Type, {2}}, std::as_bytes(std::span(seed, 2)));
    if (!buffer) return tl::unexpected(buffer.error());
    others.push_back(std::move(*buffer));
  }
  return others;
}

// A program's inputs, in the order of StableHloProgram.
std::vector<const Buffer*> PjrtProgram::inputs_of(const Variables& variables, const std::vector<Buffer>& others) const {
  std::vector<const Buffer*> inputs;
  for (const std::optional<Buffer>& variable : variables) inputs.push_back(&*variable);
  for (const Buffer& buffer : frozen_) inputs.push_back(&buffer);
  for (const Buffer& buffer : others) inputs.push_back(&buffer);
  return inputs;
}

// Runs a part of an evaluation or a prediction. Nothing reads the columns when this function has returned.
Result<std::vector<Buffer>> PjrtProgram::run(const Part& part, const Batch& batch, const Variables& variables) const {
  const Result<std::vector<Buffer>> others = bring_others(batch, part, nullptr);
  if (!others) return tl::unexpected(others.error());
  return part.stages[0]->run(inputs_of(variables, *others));
}

// Runs a part of a step. Announces the variables to front_ as they are settled.
Status PjrtProgram::run_stages(const Batch& batch, const Part& part, const std::uint32_t* seed, Variables& variables) {
  const Result<std::vector<Buffer>> others = bring_others(batch, part, seed);
  if (!others) return tl::unexpected(others.error());
  std::vector<const Buffer*> values = inputs_of(variables, *others);
  DISTTRAIN_CHECK_EQ(values.size(), plan_.inputs);
  DISTTRAIN_CHECK_EQ(part.stages.size(), plan_.stages.size());
  values.resize(plan_.values);
  std::vector<std::optional<Buffer>> given(plan_.values);
  bool is_loss_known = false;
  for (std::size_t s = 0; s < plan_.stages.size(); ++s) {
    const PlannedStage& stage = plan_.stages[s];
    std::vector<const Buffer*> taken;
    for (const std::uint32_t value : stage.takes) taken.push_back(values[value]);
    Result<std::vector<Buffer>> outputs = part.stages[s]->run(taken);
    if (!outputs) return tl::unexpected(outputs.error());
    for (std::size_t i = 0; i < stage.gives.size(); ++i) {
      given[stage.gives[i]].emplace(std::move((*outputs)[i]));
      values[stage.gives[i]] = &*given[stage.gives[i]];
    }
    for (const std::uint32_t value : stage.dropped) given[value].reset();
    // In most programs the first stage gives the loss.
    if (const Buffer* loss = values[plan_.inputs]; loss != nullptr && !std::exchange(is_loss_known, true)) {
      float mean = 0.0F;
      if (Status status = loss->read(std::as_writable_bytes(std::span(&mean, 1))); !status) return status;
      front_.note_loss(mean);
    }
    if (Status status = settle(stage.settled, given, batch, part, variables); !status) return status;
  }
  return add_figures(part, *values[plan_.inputs], values[plan_.inputs + 1]);
}

// Adds the part's loss and metrics to the batch's. `accumulators` is null in a model without metrics.
Status PjrtProgram::add_figures(const Part& part, const Buffer& loss, const Buffer* accumulators) {
  float value = 0.0F;
  if (Status status = loss.read(std::as_writable_bytes(std::span(&value, 1))); !status) return status;
  output_.loss_sum += static_cast<double>(value) * static_cast<double>(part.examples);
  if (accumulators == nullptr) return {};
  std::vector<float> found(metrics_.size());
  if (Status status = accumulators->read(std::as_writable_bytes(std::span(found))); !status) return status;
  for (std::size_t i = 0; i < metrics_.size(); ++i) metrics_[i] += static_cast<double>(found[i]);
  return {};
}

// Adds the part's gradients of these variables to the batch's, and takes their state. No stage of this part reads the
// variables any more. After the last part they may change, so the device then forgets them.
Status PjrtProgram::settle(const std::vector<std::uint32_t>& settled, const std::vector<std::optional<Buffer>>& given,
                           const Batch& batch, const Part& part, Variables& variables) {
  const bool is_first = part.begin == 0;
  const bool is_last = part.begin + part.examples == batch.examples;
  if (!is_first) part_gradients_.resize(gradients_.size());
  const std::span<float> destination = is_first ? gradients_ : std::span(part_gradients_);
  const std::size_t first_result = plan_.inputs + 2;
  std::vector<PendingRead> reads;
  for (const std::uint32_t v : settled) {
    Result<PendingRead> read = given[first_result + v]->start_read(
        std::as_writable_bytes(destination.subspan(places_[v].begin, places_[v].words)));
    if (!read) return tl::unexpected(read.error());
    reads.push_back(std::move(*read));
  }
  for (std::size_t at = 0; at < settled.size(); ++at) {
    const std::uint32_t v = settled[at];
    if (Status status = reads[at].wait(); !status) return status;
    if (spec_.variables[v].kind == VariableKind::kState)
      take_state(places_[v], part);
    else if (part.examples < batch.examples)
      add_gradient(places_[v], is_first, static_cast<double>(part.examples) / static_cast<double>(batch.examples));
    if (is_last) variables[v].reset();
    front_.final_whole(v);
  }
  return {};
}

// Weights the gradient of a first part, or adds that of another part.
void PjrtProgram::add_gradient(const Place& place, bool is_first, double weight) {
  with_type(place.dtype, [&]<typename T>(T) {
    const auto factor = static_cast<T>(weight);
    const std::span<T> sum = values_in<T>(gradients_.subspan(place.begin, place.words));
    if (is_first) {
      for (T& value : sum) value *= factor;
    } else {
      const std::span<const T> part = values_in<T>(std::span(part_gradients_).subspan(place.begin, place.words));
      for (std::size_t e = 0; e < sum.size(); ++e) sum[e] += factor * part[e];
    }
  });
}

// Takes the new value of a state variable. A value that isn't finite makes the ps skip the step, as a gradient does.
// But that of one example is dropped: one example has no variance.
void PjrtProgram::take_state(const Place& place, const Part& part) {
  const bool is_first = part.begin == 0;
  const std::span<float> value = gradients_.subspan(place.begin, place.words);
  const std::span<const float> found =
      is_first ? value : std::span<const float>(part_gradients_).subspan(place.begin, place.words);
  const bool is_dropped =
      part.examples == 1 && !with_type(place.dtype, [found]<typename T>(T) {
        const std::span<const T> values = values_in<T>(found);
        return std::all_of(values.begin(), values.end(), [](T each) { return std::isfinite(each); });
      });
  if (is_first && is_dropped)
    std::copy_n(parameters_.subspan(place.begin, place.words).begin(), place.words, value.begin());
  if (!is_first && !is_dropped) std::copy(found.begin(), found.end(), value.begin());
}

}  // namespace

Result<std::unique_ptr<Computation>> make_pjrt_program(const std::string& plugin_path, StableHloModel model) {
  Result<std::unique_ptr<Client>> client = Client::open(plugin_path);
  if (!client) return tl::unexpected(client.error());
  return std::make_unique<PjrtProgram>(std::move(*client), std::move(model));
}

}  // namespace disttrain::workerd::pjrt
