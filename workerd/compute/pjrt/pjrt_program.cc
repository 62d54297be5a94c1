#include "workerd/compute/pjrt/pjrt_program.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "common/check.h"
#include "common/doubles.h"
#include "common/random.h"
#include "workerd/compute/pjrt/program_set.h"

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
      : client_(std::move(client)), model_(std::move(model)), spec_(model_.spec), programs_(*client_, model_) {}

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

  Result<std::vector<Part>> begin(Program program, const Batch& batch);
  Status bring_frozen();
  Result<std::vector<Buffer>> bring_variables(VariableKind kind, std::span<const float> flat) const;
  Status bring_columns(const Batch& batch, const Part& part, std::vector<Buffer>& to) const;
  Result<std::vector<Buffer>> run(const Part& part, const Batch& batch, const std::vector<Buffer>& trainable,
                                  std::span<const float> state, const std::uint32_t* seed) const;
  Status add_figures(const Part& part, const std::vector<Buffer>& outputs);
  Status read_gradients(const std::vector<Buffer>& outputs, const Batch& batch, const Part& part,
                        const RangeReady& ready);
  void add_gradient(const Place& place, bool is_first, double weight);
  void take_state(const Place& place, bool is_first);

  // constant after construction
  const std::unique_ptr<Client> client_;
  const StableHloModel model_;
  const ModelSpec& spec_;
  ProgramSet programs_;

  // of open()
  Layout layout_;
  std::vector<Place> places_;          // for each variable
  std::vector<std::size_t> in_order_;  // the variables in the order of the flat arrays
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
  in_order_.resize(places_.size());
  std::iota(in_order_.begin(), in_order_.end(), std::size_t{0});
  std::sort(in_order_.begin(), in_order_.end(),
            [this](std::size_t a, std::size_t b) { return places_[a].begin < places_[b].begin; });
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
  Result<std::vector<Buffer>> trainable = bring_variables(VariableKind::kTrainable, parameters_);
  if (!trainable) return tl::unexpected(trainable.error());
  for (std::size_t i = 0; i < parts->size(); ++i) {
    const Part& part = (*parts)[i];
    // Each part of each worker's step has random numbers of its own.
    const PhiloxBlock words =
        random_block(seed.job_seed, stream_of("pjrt step", seed.step), std::uint64_t{seed.rank} << 32 | i);
    Result<std::vector<Buffer>> outputs = run(part, batch, *trainable, i > 0 ? gradients_ : parameters_, words.data());
    const bool is_last = i + 1 == parts->size();
    if (is_last) trainable->clear();  // nothing reads the parameters any more
    if (!outputs) return tl::unexpected(outputs.error());
    if (Status status = add_figures(part, *outputs); !status) return tl::unexpected(status.error());
    if (Status status = read_gradients(*outputs, batch, part, is_last ? ready : RangeReady()); !status)
      return tl::unexpected(status.error());
  }
  output_.metrics = metrics_;
  return output_;
}

Result<EngineOutput> PjrtProgram::evaluate(const Batch& batch) {
  const Result<std::vector<Part>> parts = begin(Program::kEvaluate, batch);
  if (!parts) return tl::unexpected(parts.error());
  const Result<std::vector<Buffer>> trainable = bring_variables(VariableKind::kTrainable, parameters_);
  if (!trainable) return tl::unexpected(trainable.error());
  for (const Part& part : *parts) {
    const Result<std::vector<Buffer>> outputs = run(part, batch, *trainable, parameters_, nullptr);
    if (!outputs) return tl::unexpected(outputs.error());
    if (Status status = add_figures(part, *outputs); !status) return tl::unexpected(status.error());
  }
  output_.metrics = metrics_;
  return output_;
}

Result<EngineOutput> PjrtProgram::predict(const Batch& batch) {
  const Result<std::vector<Part>> parts = begin(Program::kPredict, batch);
  if (!parts) return tl::unexpected(parts.error());
  const Result<std::vector<Buffer>> trainable = bring_variables(VariableKind::kTrainable, parameters_);
  if (!trainable) return tl::unexpected(trainable.error());
  std::uint64_t width = 0;  // outputs of one example
  for (const Part& part : *parts) {
    const Result<std::vector<Buffer>> outputs = run(part, batch, *trainable, parameters_, nullptr);
    if (!outputs) return tl::unexpected(outputs.error());
    std::uint64_t of_part = 1;
    for (const std::int64_t dim : part.executable->outputs()[0].dims) of_part *= static_cast<std::uint64_t>(dim);
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
Result<std::vector<Buffer>> PjrtProgram::bring_variables(VariableKind kind, std::span<const float> flat) const {
  std::vector<Buffer> buffers;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const VariableSpec& variable = spec_.variables[i];
    if (variable.kind != kind) continue;
    Result<Buffer> buffer = Buffer::of(*client_, array_type(element_type(variable.dtype), variable.shape),
                                       std::as_bytes(flat.subspan(places_[i].begin, places_[i].words)));
    if (!buffer) return tl::unexpected(buffer.error());
    buffers.push_back(std::move(*buffer));
  }
  return buffers;
}

Status PjrtProgram::bring_columns(const Batch& batch, const Part& part, std::vector<Buffer>& to) const {
  for (std::size_t i = 0; i < spec_.columns.size(); ++i) {
    const ColumnSpec& column = spec_.columns[i];
    const std::uint64_t record = element_count(column) * size_of(column.dtype);
    DISTTRAIN_CHECK_EQ(batch.columns[i].bytes.size(), batch.examples * record);
    Result<Buffer> buffer = Buffer::of(
        *client_, array_type(element_type(column.dtype), column.shape, {static_cast<std::int64_t>(part.examples)}),
        batch.columns[i].bytes.subspan(part.begin * record, part.examples * record));
    if (!buffer) return tl::unexpected(buffer.error());
    to.push_back(std::move(*buffer));
  }
  return {};
}

// Runs a part's program. `state` has the values of the state variables, in the order of the layout. Nothing reads the
// state and the columns when this function has returned.
Result<std::vector<Buffer>> PjrtProgram::run(const Part& part, const Batch& batch, const std::vector<Buffer>& trainable,
                                             std::span<const float> state, const std::uint32_t* seed) const {
  const Result<std::vector<Buffer>> states = bring_variables(VariableKind::kState, state);
  if (!states) return tl::unexpected(states.error());
  std::vector<Buffer> others;
  if (Status status = bring_columns(batch, part, others); !status) return tl::unexpected(status.error());
  if (seed != nullptr) {
    Result<Buffer> buffer = Buffer::of(*client_, {abi::kUint32Type, {2}}, std::as_bytes(std::span(seed, 2)));
    if (!buffer) return tl::unexpected(buffer.error());
    others.push_back(std::move(*buffer));
  }
  std::vector<const Buffer*> inputs;
  auto next_trainable = trainable.begin();
  auto next_state = states->begin();
  for (const VariableSpec& variable : spec_.variables)
    inputs.push_back(variable.kind == VariableKind::kState ? &*next_state++ : &*next_trainable++);
  for (const Buffer& buffer : frozen_) inputs.push_back(&buffer);
  for (const Buffer& buffer : others) inputs.push_back(&buffer);
  return part.executable->run(inputs);
}

// Adds the part's loss and metrics to the batch's.
Status PjrtProgram::add_figures(const Part& part, const std::vector<Buffer>& outputs) {
  float loss = 0.0F;
  if (Status status = outputs[0].read(std::as_writable_bytes(std::span(&loss, 1))); !status) return status;
  output_.loss_sum += static_cast<double>(loss) * static_cast<double>(part.examples);
  if (spec_.metrics.empty()) return {};
  std::vector<float> accumulators(metrics_.size());
  if (Status status = outputs[1].read(std::as_writable_bytes(std::span(accumulators))); !status) return status;
  for (std::size_t i = 0; i < metrics_.size(); ++i) metrics_[i] += static_cast<double>(accumulators[i]);
  return {};
}

// Adds the part's gradients to the batch's, and takes its state.
Status PjrtProgram::read_gradients(const std::vector<Buffer>& outputs, const Batch& batch, const Part& part,
                                   const RangeReady& ready) {
  const bool is_first = part.begin == 0;
  if (!is_first) part_gradients_.resize(gradients_.size());
  const std::span<float> destination = is_first ? gradients_ : std::span(part_gradients_);
  const std::size_t first_output = spec_.metrics.empty() ? 1 : 2;
  std::vector<PendingRead> reads;
  for (const std::size_t i : in_order_) {
    Result<PendingRead> read = outputs[first_output + i].start_read(
        std::as_writable_bytes(destination.subspan(places_[i].begin, places_[i].words)));
    if (!read) return tl::unexpected(read.error());
    reads.push_back(std::move(*read));
  }
  for (std::size_t at = 0; at < in_order_.size(); ++at) {
    const std::size_t i = in_order_[at];
    if (Status status = reads[at].wait(); !status) return status;
    if (spec_.variables[i].kind == VariableKind::kState)
      take_state(places_[i], is_first);
    else if (part.examples < batch.examples)
      add_gradient(places_[i], is_first, static_cast<double>(part.examples) / static_cast<double>(batch.examples));
    if (ready) ready(places_[i].begin, places_[i].begin + places_[i].words);
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

// Takes the new value of a state variable. A value that isn't finite is dropped: one example has no variance.
void PjrtProgram::take_state(const Place& place, bool is_first) {
  const std::span<float> value = gradients_.subspan(place.begin, place.words);
  const std::span<const float> found =
      is_first ? value : std::span<const float>(part_gradients_).subspan(place.begin, place.words);
  const bool is_finite = with_type(place.dtype, [found]<typename T>(T) {
    const std::span<const T> values = values_in<T>(found);
    return std::all_of(values.begin(), values.end(), [](T each) { return std::isfinite(each); });
  });
  if (is_first && !is_finite)
    std::copy_n(parameters_.subspan(place.begin, place.words).begin(), place.words, value.begin());
  if (!is_first && is_finite) std::copy(found.begin(), found.end(), value.begin());
}

}  // namespace

Result<std::unique_ptr<Computation>> make_pjrt_program(const std::string& plugin_path, StableHloModel model) {
  Result<std::unique_ptr<Client>> client = Client::open(plugin_path);
  if (!client) return tl::unexpected(client.error());
  return std::make_unique<PjrtProgram>(std::move(*client), std::move(model));
}

}  // namespace disttrain::workerd::pjrt
