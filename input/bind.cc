#include "input/bind.h"

#include <algorithm>
#include <optional>
#include <string>

namespace disttrain::input {

namespace {

bool is_array_named(const DatasetColumn& array, const std::string& name) {
  return array.name == name || (array.name == "labels" && name == "targets");
}

std::optional<Binding> find(const std::vector<DatasetColumn>& has, const std::string& name) {
  for (std::size_t i = 0; i < has.size(); ++i)
    if (is_array_named(has[i], name)) return Binding{i, 0};
  for (std::size_t i = 0; i < has.size(); ++i)
    for (const ColumnPart& part : has[i].parts)
      if (part.name == name) return Binding{i, part.first};
  return std::nullopt;
}

tl::unexpected<Error> no_column(const std::vector<DatasetColumn>& has, const std::string& name) {
  std::string columns;
  std::string arrays;
  for (const DatasetColumn& array : has) {
    arrays += (arrays.empty() ? "\"" : ", \"") + array.name + "\"";
    for (const ColumnPart& part : array.parts) columns += (columns.empty() ? "\"" : ", \"") + part.name + "\"";
  }
  return fail(ErrorCode::kConfig, "the model takes a column \"" + name + "\", but data.columns has the " +
                                      (columns.empty() ? "" : "columns " + columns + " and the ") + "arrays " + arrays +
                                      ": rename the column in the model or in data.columns");
}

}  // namespace

bool are_bound_by_name(const std::vector<DatasetColumn>& has, const std::vector<ColumnSpec>& wants) {
  const bool has_names =
      std::any_of(has.begin(), has.end(), [](const auto& array) { return array.are_tokens || !array.parts.empty(); });
  return has_names && std::any_of(wants.begin(), wants.end(),
                                  [&has](const ColumnSpec& column) { return find(has, column.name).has_value(); });
}

const ColumnPart* part_named(const std::vector<DatasetColumn>& has, const std::string& name) {
  for (const DatasetColumn& array : has)
    if (is_array_named(array, name)) return nullptr;
  for (const DatasetColumn& array : has)
    for (const ColumnPart& part : array.parts)
      if (part.name == name) return &part;
  return nullptr;
}

Result<std::vector<Binding>> bind_columns(const std::vector<DatasetColumn>& has, const std::vector<ColumnSpec>& wants) {
  const bool by_name = are_bound_by_name(has, wants);
  if (!by_name && wants.size() > has.size())
    return fail(ErrorCode::kConfig, "the model takes " + std::to_string(wants.size()) + " columns, but the data has " +
                                        std::to_string(has.size()));
  std::vector<Binding> bindings;
  for (std::size_t i = 0; i < wants.size(); ++i) {
    const std::optional<Binding> found = by_name ? find(has, wants[i].name) : Binding{i, 0};
    if (!found) return no_column(has, wants[i].name);
    bindings.push_back(*found);
  }
  return bindings;
}

}  // namespace disttrain::input
