#include "workerd/input/fits.h"

#include <string>

#include "common/builtin.h"

namespace disttrain::input {

std::uint64_t target_width(const ModelSpec& model) {
  return model.classes > 0 ? 0 : output_elements(model);
}

Status fits(const Dataset& dataset, const ModelSpec& model, const Source& source) {
  const std::string files = source.section + ".files";
  // In a csv file the last column is the label, and no key chooses another column.
  const std::string labels =
      source.format == DataFormat::kCsv ? "the last column of " + files : source.section + ".labels";
  if (dataset.input_elements() != model.input_elements) {
    return fail(ErrorCode::kConfig, "the records of " + files + " have " + std::to_string(dataset.input_elements()) +
                                        " values each, but the model takes " + std::to_string(model.input_elements) +
                                        ": change model.layers (its first number) or " + files);
  }
  const std::uint64_t outputs = output_elements(model);
  if (dataset.target_elements() > 0) {
    if (model.classes > 0) {
      return fail(ErrorCode::kConfig, "the labels of " + files + " are target values (" +
                                          std::to_string(dataset.target_elements()) +
                                          " per record), but model.loss = \"softmax_cross_entropy\" expects whole "
                                          "numbers from 0 to " +
                                          std::to_string(model.classes - 1) + ": change model.loss or " + labels);
    }
    if (dataset.target_elements() != outputs) {
      return fail(ErrorCode::kConfig, "the labels of " + files + " have " + std::to_string(dataset.target_elements()) +
                                          " values per record, but the model gives " + std::to_string(outputs) +
                                          ": change model.layers (its last number) or " + labels);
    }
    return {};
  }
  // A model with one output and without classes uses the label itself as the target value.
  if (model.classes == 0 && outputs == 1) return {};
  if (static_cast<std::uint64_t>(dataset.largest_label()) >= outputs) {
    return fail(ErrorCode::kData, "the labels of " + files + " go up to " + std::to_string(dataset.largest_label()) +
                                      ", but the model has " + std::to_string(outputs) +
                                      " outputs, for labels from 0 to " + std::to_string(outputs - 1) +
                                      ": change model.layers (its last number) or " + labels);
  }
  return {};
}

}  // namespace disttrain::input
