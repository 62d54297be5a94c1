#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "engine/autograd/networks.h"

namespace disttrain::workerd::autograd {
namespace {

// The sizes of a batch.
struct Sizes {
  std::int64_t records = 0;
  std::int64_t context = 0;
  std::int64_t heads = 0;
  std::int64_t width = 0;
};

at::Tensor layer_norm(const at::Tensor& values, Pass& pass) {
  constexpr double kEpsilon = 1e-5;
  return at::layer_norm(values, {values.size(-1)}, pass.next(), {}, kEpsilon);
}

// residual + dropout(values * weight), with the next variable as the weight.
at::Tensor project(const at::Tensor& residual, const at::Tensor& values, double dropout, Pass& pass) {
  if (!pass.drops(dropout)) return at::addmm(residual, values, pass.next());
  return residual + pass.dropout(at::mm(values, pass.next()), dropout);
}

// Attention of each token to itself and to those before it. All tensors are [records, heads, context, width / heads].
at::Tensor attend(const at::Tensor& queries, const at::Tensor& keys, const at::Tensor& values, double dropout,
                  Pass& pass) {
  // This function needs less memory, but its dropout would take libtorch's random numbers instead of the step's.
  if (!pass.drops(dropout)) return at::scaled_dot_product_attention(queries, keys, values, {}, 0.0, true);
  const std::int64_t context = queries.size(2);
  const at::Tensor future = at::ones({context, context}, at::kBool).triu(1);
  const at::Tensor scores = at::matmul(queries, keys.transpose(2, 3)) / std::sqrt(static_cast<double>(queries.size(3)));
  const at::Tensor shares = at::softmax(scores.masked_fill(future, -std::numeric_limits<double>::infinity()), -1);
  return at::matmul(pass.dropout(shares, dropout), values);
}

at::Tensor attention(const at::Tensor& residual, const Sizes& sizes, double dropout, Pass& pass) {
  const at::Tensor normed = layer_norm(residual, pass);
  const at::Tensor all = at::mm(normed, pass.next())
                             .view({sizes.records, sizes.context, 3, sizes.heads, sizes.width / sizes.heads})
                             .permute({2, 0, 3, 1, 4});
  const at::Tensor attended = attend(all[0], all[1], all[2], dropout, pass);
  return project(residual, attended.transpose(1, 2).reshape({-1, sizes.width}), dropout, pass);
}

at::Tensor two_layers(const at::Tensor& residual, double dropout, Pass& pass) {
  const at::Tensor normed = layer_norm(residual, pass);
  const at::Tensor hidden = at::gelu(at::mm(normed, pass.next()));
  return project(residual, hidden, dropout, pass);
}

}  // namespace

at::Tensor transformer(const ModelSection& model, Pass& pass) {
  const TransformerSection& section = model.transformer;
  // The last token is only a label. If all records are shorter than the context, so is the sequence that is computed.
  // Padding stands behind a record, so attention never looks at it.
  const std::int64_t length = pass.column(0).size(1) - 1;
  const Sizes sizes{pass.column(0).size(0), length, section.heads, section.width};
  const at::Tensor tokens = pass.column(0).narrow(1, 0, length).to(at::kLong);
  const at::Tensor& token_embedding = pass.next();
  const at::Tensor& position_embedding = pass.next();
  const at::Tensor positions = position_embedding.narrow(0, 0, length);
  at::Tensor values = pass.dropout(at::embedding(token_embedding, tokens) + positions, model.dropout);
  values = values.view({-1, sizes.width});
  for (std::uint32_t block = 0; block < section.blocks; ++block) {
    values = attention(values, sizes, model.dropout, pass);
    values = two_layers(values, model.dropout, pass);
  }
  values = layer_norm(pass.wanted_rows(values), pass);
  return at::mm(values, section.tied_embeddings ? token_embedding.t() : pass.next());
}

}  // namespace disttrain::workerd::autograd
