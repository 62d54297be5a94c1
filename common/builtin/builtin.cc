#include "common/builtin/builtin.h"

#include <array>
#include <string>

#include "common/builtin/parts.h"
#include "common/printable.h"

namespace disttrain {

namespace {

constexpr std::uint64_t kMaxModelElements = std::uint64_t{1} << 36;  // 256 GiB of float32

struct Builtin {
  const char* name;
  Result<ModelSpec> (*describe)(const ModelSection&);
  const char* size_key;  // the key to change if the model is too large
};

constexpr std::array<Builtin, 7> kBuiltins = {{
    {"linear", builtin::linear, "layers"},
    {"mlp", builtin::mlp, "layers"},
    {"cnn", builtin::cnn, "builtin"},
    {"resnet", builtin::resnet, "resnet.outputs"},
    {"wide_deep", builtin::wide_deep, "wide_deep"},
    {"transformer", builtin::transformer, "transformer"},
    {"matrix_factorization", builtin::matrix_factorization, "matrix_factorization"},
}};

// Shapes come from a file, so their product may exceed 64 bits.
bool is_too_large(const ModelSpec& spec) {
  std::uint64_t left = kMaxModelElements;
  for (const VariableSpec& variable : spec.variables) {
    std::uint64_t elements = 1;
    for (const std::uint64_t dimension : variable.shape) {
      if (elements > 0 && dimension > kMaxModelElements / elements) return true;
      elements *= dimension;
    }
    if (elements > left) return true;
    left -= elements;
  }
  return false;
}

Status check_class_weights(const ModelSection& model, std::uint64_t outputs) {
  if (model.class_weights.empty()) return {};
  if (model.loss != Loss::kSoftmaxCrossEntropy)
    return fail(ErrorCode::kConfig,
                "model.class_weights has a meaning only with loss = \"softmax_cross_entropy\"; leave it out");
  if (model.class_weights.size() != outputs)
    return fail(ErrorCode::kConfig, "model.class_weights has " + std::to_string(model.class_weights.size()) +
                                        " weights; expected " + std::to_string(outputs) + ", one for each output");
  double sum = 0.0;
  for (const double weight : model.class_weights) sum += weight;
  if (sum > 0.0) return {};
  return fail(ErrorCode::kConfig, "model.class_weights are all 0, so nothing would be learned; expected one above 0");
}

Result<MetricSpec> metric_of(const ModelSection& model, const std::string& name, const std::string& kind,
                             std::uint64_t outputs) {
  const std::string key = "model.metrics." + name;
  if (const std::string problem = problem_with_metric_name(name); !problem.empty())
    return fail(ErrorCode::kConfig, key + ": " + problem);
  // Only a program or a trainer can compute the kind "mean".
  Result<MetricSpec> metric = parse_metric_kind(kind);
  if (!metric || metric->kind == MetricKind::kMean)
    return fail(ErrorCode::kConfig, key + " is \"" + printable(cut_text(kind, 64)) +
                                        "\"; a builtin model computes accuracy, top_5 (or another number), auc, "
                                        "precision, recall, perplexity, mse and mae");
  metric->name = name;
  if (metric->kind == MetricKind::kPerplexity && model.loss != Loss::kSoftmaxCrossEntropy)
    return fail(ErrorCode::kConfig, key +
                                        " is \"perplexity\", which needs loss = \"softmax_cross_entropy\"; expected "
                                        "another kind");
  if (metric->kind == MetricKind::kTopK && metric->k > outputs)
    return fail(ErrorCode::kConfig, key + " is \"" + kind + "\", but the model has " + std::to_string(outputs) +
                                        (outputs == 1 ? " output" : " outputs") + "; expected a smaller number");
  return metric;
}

Status add_metrics(ModelSpec& spec, const ModelSection& model) {
  const std::uint64_t outputs = output_elements(spec);
  if (model.metrics.size() > kMaxMetrics)
    return fail(ErrorCode::kConfig, "model.metrics has " + std::to_string(model.metrics.size()) +
                                        " metrics; expected at most " + std::to_string(kMaxMetrics));
  for (const auto& [name, kind] : model.metrics) {
    Result<MetricSpec> metric = metric_of(model, name, kind, outputs);
    if (!metric) return tl::unexpected(metric.error());
    spec.metrics.push_back(std::move(*metric));
  }
  if (!model.metrics.empty() || model.loss != Loss::kSoftmaxCrossEntropy) return {};
  spec.metrics.push_back({.name = "accuracy", .kind = MetricKind::kAccuracy});
  if (model.builtin == "transformer") spec.metrics.push_back({.name = "perplexity", .kind = MetricKind::kPerplexity});
  return {};
}

Result<ModelSpec> describe(const Builtin& builtin, const ModelSection& model) {
  Result<ModelSpec> spec = builtin.describe(model);
  if (!spec) return spec;
  if (is_too_large(*spec))
    return fail(ErrorCode::kConfig, std::string("model.") + builtin.size_key + " makes more than " +
                                        std::to_string(kMaxModelElements) + " parameters; use smaller sizes");
  const std::uint64_t outputs = output_elements(*spec);
  if (outputs == 1 && model.loss == Loss::kSoftmaxCrossEntropy)
    return fail(ErrorCode::kConfig,
                "model.loss is \"softmax_cross_entropy\", which needs at least 2 outputs, but the model has 1 output; "
                "use sigmoid_cross_entropy or mse");
  if (Status status = check_class_weights(model, outputs); !status) return tl::unexpected(status.error());
  if (Status status = add_metrics(*spec, model); !status) return tl::unexpected(status.error());
  spec->programs.predicts = true;
  return spec;
}

}  // namespace

std::uint64_t output_elements(const ModelSpec& model) {
  if (model.columns.empty()) return 0;
  const ColumnSpec& wanted = model.columns.back();
  return wanted.limit > 0 ? wanted.limit : element_count(wanted);
}

Result<ModelSpec> builtin_model(const ModelSection& model) {
  std::string names;
  for (const Builtin& builtin : kBuiltins) {
    if (model.builtin == builtin.name) return describe(builtin, model);
    names += (names.empty() ? "" : ", ") + std::string(builtin.name);
  }
  return fail(ErrorCode::kConfig, "model.builtin is \"" + model.builtin + "\"; expected one of " + names);
}

}  // namespace disttrain
