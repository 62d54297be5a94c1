#include <ATen/ATen.h>

#include "engine/autograd/networks.h"

#include "common/builtin/parts.h"

namespace disttrain::workerd::autograd {
namespace {

// A convolution with the next variable as its weight. The padding keeps the image's size if the stride is 1.
at::Tensor convolve(const at::Tensor& values, std::int64_t stride, Pass& pass) {
  const at::Tensor& weight = pass.next();
  const std::int64_t padding = weight.size(2) / 2;
  return at::conv2d(values, weight, {}, {stride, stride}, {padding, padding});
}

// The number of convolutions is 2 for a basic block and 3 for a bottleneck block, which has the stride in the second
// one.
at::Tensor block(const at::Tensor& inputs, int convolutions, std::int64_t stride, bool has_downsample, Pass& pass) {
  at::Tensor values = inputs;
  for (int c = 0; c < convolutions; ++c) {
    values = pass.batch_norm(convolve(values, c == convolutions - 2 ? stride : 1, pass));
    if (c + 1 < convolutions) values.relu_();
  }
  const at::Tensor shortcut = has_downsample ? pass.batch_norm(convolve(inputs, stride, pass)) : inputs;
  return (values + shortcut).relu_();
}

}  // namespace

at::Tensor resnet(const ModelSection& model, Pass& pass) {
  const ResnetSection& section = model.resnet;
  const bool has_bottlenecks = section.depth == 50;
  const bool is_cifar = section.stem == Stem::kCifar;
  at::Tensor values = pass.batch_norm(convolve(pass.column(0), is_cifar ? 1 : 2, pass)).relu_();
  if (!is_cifar) values = at::max_pool2d(values, {3, 3}, {2, 2}, {1, 1});
  const auto blocks = builtin::resnet_blocks(section.depth).value();
  for (std::size_t stage = 0; stage < blocks.size(); ++stage)
    for (std::uint32_t b = 0; b < blocks[stage]; ++b) {
      const bool is_first = b == 0;
      values = block(values, has_bottlenecks ? 3 : 2, is_first && stage > 0 ? 2 : 1,
                     is_first && (stage > 0 || has_bottlenecks), pass);
    }
  values = values.mean({2, 3});
  const at::Tensor& weight = pass.next();  // [outputs, channels], as torchvision has it
  const at::Tensor& bias = pass.next();
  return at::linear(values, weight, bias);
}

}  // namespace disttrain::workerd::autograd
