// Networks that look up rows of tables: matrix_factorization and wide_deep.
#include <ATen/ATen.h>

#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "engine/autograd/networks.h"

namespace disttrain::workerd::autograd {
namespace {

// The numbers in a column of float32.
at::Tensor whole_numbers(const at::Tensor& column, const std::string& what, std::int64_t limit) {
  const at::Tensor floats = column.contiguous();
  for (const float value : std::span(floats.const_data_ptr<float>(), static_cast<std::size_t>(floats.numel()))) {
    const bool is_whole = value == std::trunc(value);
    if (is_whole && value >= 0.0F && value < static_cast<float>(limit)) continue;
    std::ostringstream text;  // 24, not 24.000000
    text << value;
    throw BadRecord("a record has the " + what + " " + text.str() + "; model.matrix_factorization." + what +
                    "s = " + std::to_string(limit) + " allows whole numbers from 0 to " + std::to_string(limit - 1) +
                    (is_whole ? "" : ", which data.scale must leave as they are"));
  }
  return floats.to(at::kLong);
}

at::Tensor category(const at::Tensor& column, std::size_t index, std::int64_t limit) {
  const at::Tensor numbers = column.contiguous();
  for (const std::int64_t value :
       std::span(numbers.const_data_ptr<std::int64_t>(), static_cast<std::size_t>(numbers.numel())))
    if (value < 0 || value >= limit)
      throw BadRecord("a record has " + std::to_string(value) + " in category column " + std::to_string(index) +
                      "; model.wide_deep.categories[" + std::to_string(index) + "] = " + std::to_string(limit) +
                      " allows 0 to " + std::to_string(limit - 1));
  return numbers;
}

}  // namespace

at::Tensor matrix_factorization(const ModelSection&, Pass& pass) {
  const at::Tensor& user_factors = pass.next();
  const at::Tensor& user_bias = pass.next();
  const at::Tensor& item_factors = pass.next();
  const at::Tensor& item_bias = pass.next();
  const at::Tensor users = whole_numbers(pass.column(0).select(1, 0), "user", user_bias.size(0));
  const at::Tensor items = whole_numbers(pass.column(0).select(1, 1), "item", item_bias.size(0));
  const at::Tensor product =
      (at::embedding(user_factors, users) * at::embedding(item_factors, items)).sum({1}, /*keepdim=*/true);
  return product + at::embedding(user_bias.unsqueeze(1), users) + at::embedding(item_bias.unsqueeze(1), items) +
         pass.next();
}

at::Tensor wide_deep(const ModelSection& model, Pass& pass) {
  const WideDeepSection& section = model.wide_deep;
  std::vector<at::Tensor> deep;
  at::Tensor wide;
  const auto add_to_wide = [&wide](const at::Tensor& values) { wide = wide.defined() ? wide + values : values; };
  if (section.numeric > 0) {
    deep.push_back(pass.column(0));
    add_to_wide(at::mm(pass.column(0), pass.next()));
  }
  std::vector<at::Tensor> categories;
  for (std::size_t i = 0; i < section.categories.size(); ++i) {
    const at::Tensor& column = pass.column(section.numeric > 0 ? 1 : 0);
    categories.push_back(category(column.select(1, static_cast<std::int64_t>(i)), i, section.categories[i]));
    add_to_wide(at::embedding(pass.next(), categories.back()));
  }
  add_to_wide(pass.next());
  for (const at::Tensor& numbers : categories) deep.push_back(at::embedding(pass.next(), numbers));
  at::Tensor values = pass.dense(at::cat(deep, 1));
  while (pass.has_more()) values = pass.dense(pass.dropout(activate(model.activation, values), model.dropout));
  return wide + values;
}

}  // namespace disttrain::workerd::autograd
