#include "input/mixed_dataset.h"

#include <cmath>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include "common/check.h"
#include "common/random.h"
#include "input/bind.h"
#include "input/typed_values.h"

namespace disttrain::input {

namespace {

bool is_float_type(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64;
}

template <typename T>
void mix_rows(std::span<const Mixture> mixtures, std::span<const T> others, std::span<T> values) {
  const std::size_t width = values.size() / mixtures.size();
  for (std::size_t i = 0; i < mixtures.size(); ++i) {
    const T share = mixtures[i].share;
    for (std::size_t e = i * width; e < (i + 1) * width; ++e)
      values[e] = share * values[e] + (T(1) - share) * others[e];
  }
}

class MixedDataset final : public Dataset {
 public:
  MixedDataset(std::unique_ptr<Dataset> inner, double mix) : inner_(std::move(inner)), mix_(mix) {}

  std::uint64_t records() const override { return inner_->records(); }
  const std::vector<DatasetColumn>& columns() const override { return inner_->columns(); }
  std::uint64_t bytes_read() const override { return inner_->bytes_read(); }
  const std::vector<std::string>& label_names() const override { return inner_->label_names(); }
  std::shared_ptr<const FittedColumns> fitted_columns() const override { return inner_->fitted_columns(); }
  std::vector<std::string> header() const override { return inner_->header(); }
  std::vector<std::uint64_t> blocks() const override { return inner_->blocks(); }
  std::span<const std::uint32_t> lengths() const override { return inner_->lengths(); }
  std::uint64_t hash() const override { return inner_->hash(); }
  std::string notice() const override { return inner_->notice(); }
  std::vector<UnknownWords> unknown_words() const override { return inner_->unknown_words(); }
  const DataFigures* figures() const override { return inner_->figures(); }

  Status gather(std::span<const std::uint64_t> indices, std::span<const ColumnOut> columns,
                const Draw& draw) const override {
    Status gathered = inner_->gather(indices, columns, draw);
    if (!gathered || !draw.is_training || indices.empty()) return gathered;
    std::unique_ptr<Others> others = take();
    gathered = gather_others(indices, columns, draw, *others);
    if (gathered) mix(*others, columns);
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(others));
    return gathered;
  }

 private:
  // The records with which those of a batch are mixed. Threads make batches at the same time, so each takes one of its
  // own. Later batches reuse the memory.
  struct Others {
    std::vector<Mixture> mixtures;
    std::vector<std::uint64_t> indices;
    std::vector<std::vector<std::byte>> values;  // of each column
    std::vector<ColumnOut> columns;
  };

  std::unique_ptr<Others> take() const {
    const std::lock_guard lock(mutex_);
    if (free_.empty()) return std::make_unique<Others>();
    std::unique_ptr<Others> others = std::move(free_.back());
    free_.pop_back();
    return others;
  }

  Status gather_others(std::span<const std::uint64_t> indices, std::span<const ColumnOut> columns, const Draw& draw,
                       Others& others) const {
    others.mixtures.clear();
    others.indices.clear();
    for (const std::uint64_t record : indices) {
      others.mixtures.push_back(draw_mixture(mix_, draw, record, records()));
      others.indices.push_back(others.mixtures.back().other);
    }
    others.values.resize(columns.size());
    others.columns.assign(columns.begin(), columns.end());
    for (std::size_t c = 0; c < columns.size(); ++c) {
      others.values[c].resize(columns[c].out.size());
      others.columns[c].out = others.values[c];
    }
    return inner_->gather(others.indices, others.columns, draw);
  }

  static void mix(const Others& others, std::span<const ColumnOut> columns) {
    for (std::size_t c = 0; c < columns.size(); ++c)
      with_type(columns[c].as.dtype, columns[c].out, [&]<typename T>(std::span<T> values) {
        if constexpr (std::is_floating_point_v<T>)
          mix_rows<T>(others.mixtures, {reinterpret_cast<const T*>(others.values[c].data()), values.size()}, values);
      });
  }

  const std::unique_ptr<Dataset> inner_;
  const double mix_;
  mutable std::mutex mutex_;  // guards free_
  mutable std::vector<std::unique_ptr<Others>> free_;
};

}  // namespace

// Beta by the method of Johnk, "Erzeugung von betaverteilten und gammaverteilten Zufallszahlen" (Metrika, 1964), which
// needs at most two turns on average if mix <= 1. If both powers are below the smallest double, as nearly always with a
// tiny mix, their logarithms give the share.
Mixture draw_mixture(double mix, const Draw& draw, std::uint64_t record, std::uint64_t records) {
  Random random(draw.seed ^ draw.epoch * 0x9E3779B97F4A7C15u, stream_of("mix", record));
  const std::uint64_t other = random.below(records);
  for (;;) {
    const double u = random.uniform();
    const double v = random.uniform();
    const double x = std::pow(u, 1.0 / mix);
    const double y = std::pow(v, 1.0 / mix);
    if (x + y > 1.0) continue;
    if (x + y > 0.0) return {other, static_cast<float>(x / (x + y))};
    if (u + v > 0.0) return {other, static_cast<float>(1.0 / (1.0 + std::exp((std::log(v) - std::log(u)) / mix)))};
  }
}

Status can_mix(const Dataset& dataset, const std::vector<ColumnSpec>& columns, bool is_builtin) {
  const Result<std::vector<Binding>> bindings = bind_columns(dataset.columns(), columns);
  if (!bindings) return tl::unexpected(bindings.error());
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const DatasetColumn& array = dataset.columns()[(*bindings)[i].array];
    const bool is_label = array.name == "labels";
    const bool is_one_class = is_label && array.are_classes && element_count(columns[i]) == 1 && array.largest > 1;
    if (is_float_type(columns[i].dtype) && !is_one_class) continue;
    return fail(ErrorCode::kConfig,
                "data.mix makes " +
                    std::string(is_label ? "labels that are shares of classes" : "inputs that are fractions") +
                    ", but the model's column \"" + columns[i].name + "\" takes " +
                    (is_float_type(columns[i].dtype) ? "the number of a class" : to_string(columns[i].dtype)) + ": " +
                    (is_builtin ? is_label ? "set model.loss to \"softmax_cross_entropy\"" : "use another model"
                     : is_label ? "export the model with a loss that takes a float for each class"
                                : "export the model with inputs of float32") +
                    ", or set data.mix to 0");
  }
  return {};
}

std::unique_ptr<Dataset> make_mixed_dataset(std::unique_ptr<Dataset> dataset, double mix) {
  DISTTRAIN_CHECK(mix > 0.0 && mix <= 1.0);
  return std::make_unique<MixedDataset>(std::move(dataset), mix);
}

}  // namespace disttrain::input
