#include "input/fits.h"

#include <algorithm>
#include <string>

#include "common/config/columns.h"
#include "common/counted.h"
#include "input/bind.h"
#include "input/columns.h"
#include "input/integer_bounds.h"
#include "input/record_shape.h"

namespace disttrain::input {

namespace {

bool is_float(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64;
}

bool is_integer(DType dtype) {
  return dtype == DType::kInt32 || dtype == DType::kInt64 || dtype == DType::kUint8;
}

// Whether Dataset::gather() can make values of type `to` from those of type `from`.
bool converts(DType from, DType to) {
  return is_float(to) || (is_integer(from) && is_integer(to));
}

std::string shape_text(const std::vector<std::uint64_t>& shape) {
  if (shape.empty()) return "one value for each record";
  std::string text;
  for (const std::uint64_t size : shape) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return "values of the shape [" + text + "]";
}

// The keys of job.toml that set the sizes of a model's first and last columns.
struct SizeKeys {
  const char* inputs = "the model";
  const char* outputs = "the model";
};

SizeKeys size_keys(const std::string& builtin) {
  if (builtin == "mlp" || builtin == "linear")
    return {"model.layers (its first number)", "model.layers (its last number)"};
  if (builtin == "resnet") return {"model.resnet.image", "model.resnet.outputs"};
  if (builtin == "wide_deep") return {"model.wide_deep.numeric", "model.wide_deep.outputs"};
  if (builtin == "transformer") return {"model.transformer.context", "model.transformer.vocabulary"};
  return {};
}

class Fitting {
 public:
  Fitting(const ModelSection& model, const Source& source)
      : is_builtin_(!model.builtin.empty()),
        keys_(size_keys(model.builtin)),
        is_text_(source.format == DataFormat::kText),
        files_(source.files_key),
        // In a csv file the last column is the label, and no key chooses another column.
        labels_(!source.columns.empty()             ? "the label of data.columns"
                : source.format == DataFormat::kCsv ? "the last column of " + files_
                                                    : source.labels_key) {}

  Status inputs(const DatasetColumn& has, const ColumnSpec& wants) const {
    const std::string records = "the records of " + files_;
    if (Status ok = check_type(records, has, wants); !ok) return ok;
    if (has.elements == element_count(wants)) {
      if (Status ok = check_shape(records, has, wants); !ok) return ok;
      return within_range(records, has, wants);
    }
    if (is_text_)
      return fail(ErrorCode::kConfig, records + " have " + std::to_string(has.elements) +
                                          (has.dtype == DType::kUint8 ? " bytes" : " tokens") +
                                          " each, but the model takes " + std::to_string(element_count(wants)) +
                                          ": set data.window to " + std::to_string(element_count(wants)) +
                                          ", or change " + keys_.inputs);
    return fail(ErrorCode::kConfig, records + " have " + std::to_string(has.elements) +
                                        " values each, but the model's column \"" + wants.name + "\" takes " +
                                        std::to_string(element_count(wants)) + ": change " + keys_.inputs + " or " +
                                        files_);
  }

  // A column of the model that takes one of [data.columns].
  Status part(const DatasetColumn& array, const ColumnPart& has, const ColumnSpec& wants) const {
    const std::string what = "the column \"" + has.name + "\" of data.columns";
    const std::string taker = ", but the model's column \"" + wants.name + "\" takes ";
    const std::string advice = ": change the model or data.columns." + has.name;
    if (wants.ragged || !converts(array.dtype, wants.dtype))
      return fail(ErrorCode::kConfig, what + " has values of type " + to_string(array.dtype) + taker +
                                          (wants.ragged ? "sequences of " : "") + to_string(wants.dtype) + advice);
    if (without_ones(has.shape) != without_ones(wants.shape))
      return fail(ErrorCode::kConfig,
                  what + " has " + shape_text(has.shape) + taker + shape_text(wants.shape) + advice);
    if (!is_integer(array.dtype) || !is_integer(wants.dtype)) return {};
    const std::int64_t smallest = has.limit > 0 ? 0 : array.smallest;
    const std::int64_t largest = has.limit > 0 ? static_cast<std::int64_t>(has.limit - 1) : array.largest;
    const IntegerBounds bounds = bounds_of(wants);
    if (smallest >= bounds.smallest && largest <= bounds.largest) return {};
    return fail(ErrorCode::kData, what + " has numbers from " + std::to_string(smallest) + " to " +
                                      std::to_string(largest) + taker + "numbers from " +
                                      std::to_string(bounds.smallest) + " to " + std::to_string(bounds.largest) +
                                      advice);
  }

  // A column of tokens or bytes.
  Status tokens(const DatasetColumn& has, const ColumnSpec& wants) const {
    const bool are_bytes = has.dtype != DType::kInt32;
    const std::string what = "the column \"" + has.name + "\" of data.columns has " + (are_bytes ? "bytes" : "tokens");
    const std::string taker = ", but the model's column \"" + wants.name + "\" takes ";
    if (has.dtype == DType::kBytes && wants.dtype == DType::kBytes) return {};  // a trainer
    if (has.dtype == DType::kBytes)
      return fail(ErrorCode::kConfig, what + " of any length" + taker + std::to_string(element_count(wants)) +
                                          " values of each record: set data.columns." + has.name +
                                          ".length instead of limit");
    if (!is_integer(wants.dtype))
      return fail(ErrorCode::kConfig, what + taker + to_string(wants.dtype) + ": change the model or data.columns");
    if (has.is_ragged && !wants.ragged)
      return fail(ErrorCode::kConfig, what + " of different lengths" + taker + std::to_string(element_count(wants)) +
                                          " of each record: set data.columns." + has.name + ".pad_to = \"length\"");
    if (has.elements != element_count(wants))
      return fail(ErrorCode::kConfig, what + ", " + std::to_string(has.elements) + " of them" + taker +
                                          std::to_string(element_count(wants)) + ": change data.columns." + has.name +
                                          ".length or " + keys_.inputs);
    const std::int64_t largest = bounds_of(wants).largest;
    if (has.largest <= largest) return {};
    return fail(ErrorCode::kData, what + " from 0 to " + std::to_string(has.largest) + taker + "0 to " +
                                      std::to_string(largest) + ": change " + keys_.outputs + " or data.columns." +
                                      has.name);
  }

  // `words` is the number of classes that have names, or 0.
  Status labels(const DatasetColumn& has, const ColumnSpec& wants, std::size_t words) const {
    const std::string labels = "the labels of " + files_;
    const std::uint64_t outputs = element_count(wants);
    const bool are_classes = has.are_classes;
    const bool are_integers = is_integer(has.dtype) && !is_builtin_;
    if (!are_classes && !are_integers && is_integer(wants.dtype)) {
      const std::string taker =
          is_builtin_ ? "model.loss = \"softmax_cross_entropy\"" : "the model's column \"" + wants.name + "\"";
      const std::string range = wants.limit > 0 ? " from 0 to " + std::to_string(wants.limit - 1) : "";
      return fail(ErrorCode::kConfig, labels + " are target values (" + std::to_string(has.elements) +
                                          " per record), but " + taker + " expects whole numbers" + range +
                                          ": change model.loss or " + labels_);
    }
    if (Status ok = check_type(labels, has, wants); !ok) return ok;
    // As numbers, words would be their ranks. Two of them are 0 and 1, as a loss of one output takes them.
    if (words > 2 && !is_integer(wants.dtype) && outputs == 1)
      return fail(ErrorCode::kConfig, labels + " are " + std::to_string(words) + " words, but the model's column \"" +
                                          wants.name + "\" takes one number: change the model, or make numbers of " +
                                          labels_);
    if (!are_classes && has.elements != outputs) {
      return fail(ErrorCode::kConfig, labels + " have " + std::to_string(has.elements) +
                                          " values per record, but the model gives " + std::to_string(outputs) +
                                          ": change " + keys_.outputs + " or " + labels_);
    }
    // A label becomes a class, a number, or a 1 at the label's index among zeros.
    const std::uint64_t limit = is_integer(wants.dtype) ? wants.limit : outputs > 1 ? outputs : 0;
    const bool is_ignored = is_integer(wants.dtype) && wants.ignored == has.largest;
    if (are_classes && limit > 0 && static_cast<std::uint64_t>(has.largest) >= limit && !is_ignored) {
      return fail(ErrorCode::kData, labels + " go up to " + std::to_string(has.largest) + ", but the model has " +
                                        std::to_string(limit) + " outputs, for labels from 0 to " +
                                        std::to_string(limit - 1) + ": change " + keys_.outputs + " or " + labels_);
    }
    if (are_classes && is_integer(wants.dtype) && outputs != 1) {
      return fail(ErrorCode::kConfig, labels + " are one number per record, but the model's column \"" + wants.name +
                                          "\" has " + std::to_string(outputs) + ": change the model or " + labels_);
    }
    if (Status ok = check_shape(labels, has, wants); !ok) return ok;
    return within_range(labels, has, wants);
  }

 private:
  // Whether integers are within the limit of the model's column, and fit into its type.
  Status within_range(const std::string& what, const DatasetColumn& has, const ColumnSpec& wants) const {
    if (!is_integer(has.dtype) || !is_integer(wants.dtype)) return {};
    const IntegerBounds bounds = bounds_of(wants);
    // The values between them are checked in each batch.
    if (takes(wants, has.smallest) && takes(wants, has.largest)) return {};
    return fail(ErrorCode::kData, what + " have values from " + std::to_string(has.smallest) + " to " +
                                      std::to_string(has.largest) + ", but the model's column \"" + wants.name +
                                      "\" takes " + std::to_string(bounds.smallest) + " to " +
                                      std::to_string(bounds.largest) + ": change " + keys_.outputs + " or " + files_);
  }

  // Whether as many values stand in the order that the model expects.
  Status check_shape(const std::string& what, const DatasetColumn& has, const ColumnSpec& wants) const {
    const ColumnPart* const part = has.parts.size() == 1 ? &has.parts.front() : nullptr;
    const std::vector<std::uint64_t>& shape = part != nullptr ? part->shape : has.shape;
    if (have_same_order(shape, wants.shape)) return {};
    return fail(ErrorCode::kConfig, what + " have " + shape_text(shape) + ", but the model's column \"" + wants.name +
                                        "\" takes " + shape_text(wants.shape) + ": change " + keys_.inputs + " or " +
                                        (part != nullptr ? "data.columns." + part->name + ".shape"
                                                         : files_ + ", for example by numpy.transpose"));
  }

  Status check_type(const std::string& what, const DatasetColumn& has, const ColumnSpec& wants) const {
    if (converts(has.dtype, wants.dtype)) return {};
    return fail(ErrorCode::kConfig, what + " have values of type " + to_string(has.dtype) +
                                        ", but the model's column \"" + wants.name + "\" takes " +
                                        (wants.ragged ? "sequences of " : "") + to_string(wants.dtype) +
                                        ": change the model or " + files_);
  }

  const bool is_builtin_;
  const SizeKeys keys_;
  const bool is_text_;
  const std::string files_;
  const std::string labels_;
};

bool is_bound(std::size_t array, const std::vector<Binding>& bindings) {
  return std::any_of(bindings.begin(), bindings.end(),
                     [array](const Binding& binding) { return binding.array == array; });
}

// A program must not leave weights unused in silence. It may take only some of the other columns.
Status uses_weights(const std::vector<DatasetColumn>& columns, const std::vector<Binding>& bindings) {
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (columns[i].name == "weights" && !columns[i].parts.empty() && !is_bound(i, bindings))
      return fail(ErrorCode::kConfig, "data.columns." + columns[i].parts.front().name +
                                          " is the weight of each record, but the model has no column of this name or "
                                          "\"weights\": export the model with a loss that takes it, or leave the "
                                          "column out");
  return {};
}

// A builtin model must not leave columns of the job unused in silence.
Status uses_all(const std::vector<DatasetColumn>& columns, const std::vector<Binding>& bindings,
                const ModelSection& model) {
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (is_bound(i, bindings) || (columns[i].parts.empty() && !columns[i].are_tokens)) continue;
    const std::string& name = columns[i].are_tokens ? columns[i].name : columns[i].parts.front().name;
    return fail(ErrorCode::kConfig, "data.columns." + name + " gives \"" + columns[i].name +
                                        "\", which model.builtin = \"" + model.builtin +
                                        "\" doesn't take: remove the column, or choose another model (wide_deep takes "
                                        "numbers and categories)");
  }
  return {};
}

}  // namespace

Status fits(const Dataset& dataset, const ModelSpec& spec, const ModelSection& model, const Source& source) {
  const std::vector<DatasetColumn>& columns = dataset.columns();
  if (!are_bound_by_name(columns, spec.columns) && spec.columns.size() > columns.size()) {
    std::string names;
    for (const ColumnSpec& column : spec.columns) names += (names.empty() ? "\"" : ", \"") + column.name + "\"";
    const bool needs_columns = model.builtin == "wide_deep" && source.columns.empty();
    return fail(ErrorCode::kConfig,
                "the model takes " + std::to_string(spec.columns.size()) + " columns (" + names +
                    "), but the records of " + source.files_key + " have " + std::to_string(columns.size()) + ": " +
                    (needs_columns ? "add [data.columns], which says what each column of a csv file is to wide_deep"
                                   : "use other data or another model"));
  }
  const Result<std::vector<Binding>> bindings = bind_columns(columns, spec.columns);
  if (!bindings) return tl::unexpected(bindings.error());
  const Fitting fitting(model, source);
  for (std::size_t i = 0; i < spec.columns.size(); ++i) {
    const DatasetColumn& array = columns[(*bindings)[i].array];
    const ColumnPart* const part = part_named(columns, spec.columns[i].name);
    const Status ok = array.name == "labels" ? fitting.labels(array, spec.columns[i], dataset.label_names().size())
                      : array.are_tokens     ? fitting.tokens(array, spec.columns[i])
                      : part != nullptr      ? fitting.part(array, *part, spec.columns[i])
                                             : fitting.inputs(array, spec.columns[i]);
    if (!ok) return ok;
  }
  return model.builtin.empty() ? uses_weights(columns, *bindings) : uses_all(columns, *bindings, model);
}

void size_vocabulary(const Dataset& dataset, ModelSection& model) {
  const std::vector<DatasetColumn>& columns = dataset.columns();
  const auto found = std::find_if(columns.begin(), columns.end(), [](const auto& array) { return array.are_tokens; });
  const std::int64_t tokens = (found == columns.end() ? columns.front() : *found).largest + 1;
  model.transformer.vocabulary = static_cast<std::uint32_t>(std::max<std::int64_t>(tokens, 2));
}

void size_model(const FittedColumns& fitted, const DataSection& data, ModelSection& model) {
  take_column_sizes(with_vocabularies(data.columns, fitted), 1, model);
  for (std::size_t i = 0; i < data.columns.size(); ++i) {
    if (data.columns[i].kind != ColumnKind::kLabel || data.columns[i].normalise != Normalise::kStandard) continue;
    model.target_mean = fitted.columns[i].mean;
    model.target_deviation = fitted.columns[i].deviation;
  }
}

std::string target_taker(const ModelSection& model) {
  if (!takes_target(model)) return "";
  return model.builtin == "matrix_factorization" ? "model.builtin = \"matrix_factorization\"" : "model.loss = \"mse\"";
}

std::string notice_of_unknown(const Dataset& dataset, const std::vector<ColumnSection>& columns) {
  std::string names;
  std::string untrained;
  for (const UnknownWords& unknown : dataset.unknown_words()) {
    names += (names.empty() ? "" : ", ") + unknown.column + ": " + counted(unknown.records, "record");
    for (const ColumnSection& column : columns)
      if (column.name == unknown.column && column.vocabulary.empty() && column.min_count == 1)
        untrained = "data.columns." + column.name + ".min_count";
  }
  if (names.empty()) return "";
  return "some of the " + counted(dataset.records(), "record") +
         " to evaluate or predict have words that the vocabulary lacks (" + names + "); they have the category 0" +
         (untrained.empty() ? ""
                            : ", which the training never saw: set " + untrained +
                                  " to 2 or more, so that rare words of the training set train it");
}

std::string notice_of_min_count(const FittedColumns& fitted, const std::vector<ColumnSection>& columns) {
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (columns[i].min_count > 1 && !fitted.columns[i].has_rare_words)
      return "each word of the column \"" + columns[i].name + "\" has at least " +
             std::to_string(columns[i].min_count) +
             " training records, so none trains the category of unknown words: raise data.columns." + columns[i].name +
             ".min_count";
  return "";
}

void keep_types_of(const ModelSpec& spec, Source& source) {
  if (!spec.columns.empty()) source.inputs_as = spec.columns[0].dtype;
  if (spec.columns.size() > 1) source.labels_as = spec.columns[1].dtype;
}

}  // namespace disttrain::input
