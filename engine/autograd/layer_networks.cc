// Networks of layers, one after the other: linear, mlp and cnn.
#include <ATen/ATen.h>

#include "engine/autograd/networks.h"

namespace disttrain::workerd::autograd {

at::Tensor mlp(const ModelSection& model, Pass& pass) {
  at::Tensor values = pass.dense(pass.column(0));
  while (pass.has_more()) values = pass.dense(pass.dropout(activate(model.activation, values), model.dropout));
  return values;
}

at::Tensor cnn(const ModelSection& model, Pass& pass) {
  constexpr std::int64_t kSide = 28;
  at::Tensor values = pass.column(0).view({-1, 1, kSide, kSide});
  for (int convolution = 0; convolution < 2; ++convolution) {
    const at::Tensor& weight = pass.next();
    const at::Tensor& bias = pass.next();
    values = activate(model.activation, at::max_pool2d(at::conv2d(values, weight, bias), {2, 2}));
  }
  values = pass.dense(values.flatten(1));
  return pass.dense(pass.dropout(activate(model.activation, values), model.dropout));
}

}  // namespace disttrain::workerd::autograd
