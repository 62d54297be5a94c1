#include <array>
#include <cmath>
#include <string>

#include "common/builtin/parts.h"

namespace disttrain::builtin {

namespace {

constexpr std::uint64_t kMaxImageElements = std::uint64_t{1} << 28;

// A convolution without a bias; "kaiming_normal" with mode "fan_out" in torchvision.
void add_unbiased_convolution(ModelSpec& spec, const std::string& name, std::uint64_t in, std::uint64_t out,
                              std::uint64_t side) {
  const double deviation = std::sqrt(2.0 / static_cast<double>(out * side * side));
  add_variable(spec, name + "/weight", {out, in, side, side}, normal(deviation));
}

void add_state(ModelSpec& spec, const std::string& name, std::uint64_t channels, const Initializer& initializer) {
  add_variable(spec, name, {channels}, initializer);
  spec.variables.back().kind = VariableKind::kState;
}

void add_batch_norm(ModelSpec& spec, const std::string& name, std::uint64_t channels) {
  add_variable(spec, name + "/weight", {channels}, kOnes);
  add_variable(spec, name + "/bias", {channels}, kZeros);
  add_state(spec, name + "/running_mean", channels, kZeros);
  add_state(spec, name + "/running_var", channels, kOnes);
}

// Two convolutions of 3 x 3.
void add_basic_block(ModelSpec& spec, const std::string& block, std::uint64_t in, std::uint64_t width) {
  add_unbiased_convolution(spec, block + "/conv1", in, width, 3);
  add_batch_norm(spec, block + "/bn1", width);
  add_unbiased_convolution(spec, block + "/conv2", width, width, 3);
  add_batch_norm(spec, block + "/bn2", width);
}

// Convolutions of 1 x 1, 3 x 3 and 1 x 1.
void add_bottleneck_block(ModelSpec& spec, const std::string& block, std::uint64_t in, std::uint64_t width,
                          std::uint64_t out) {
  add_unbiased_convolution(spec, block + "/conv1", in, width, 1);
  add_batch_norm(spec, block + "/bn1", width);
  add_unbiased_convolution(spec, block + "/conv2", width, width, 3);
  add_batch_norm(spec, block + "/bn2", width);
  add_unbiased_convolution(spec, block + "/conv3", width, out, 1);
  add_batch_norm(spec, block + "/bn3", out);
}

Status check_resnet(const ResnetSection& section) {
  if (!resnet_blocks(section.depth)) return refuse("resnet.depth", std::to_string(section.depth), "18, 34 or 50");
  const std::uint64_t least = section.stem == Stem::kCifar ? 16 : 64;
  const std::string expected = "[channels, height, width] with a height and a width of at least " +
                               std::to_string(least) + ", and at most " + std::to_string(kMaxImageElements) + " values";
  std::string found;
  std::uint64_t elements = 1;
  for (const std::uint64_t size : section.image) {
    found += (found.empty() ? "[" : ", ") + std::to_string(size);
    elements = size > 0 && size <= kMaxImageElements / elements ? elements * size : kMaxImageElements + 1;
  }
  // A smaller image would shrink to a single value per channel, and the batch norm of a single record would then divide
  // by 0.
  if (section.image.size() != 3 || section.image[1] < least || section.image[2] < least || elements > kMaxImageElements)
    return refuse("resnet.image", found.empty() ? "[]" : found + "]", expected);
  return {};
}

}  // namespace

std::optional<std::array<std::uint32_t, 4>> resnet_blocks(std::uint32_t depth) {
  if (depth == 18) return std::array<std::uint32_t, 4>{2, 2, 2, 2};
  if (depth == 34 || depth == 50) return std::array<std::uint32_t, 4>{3, 4, 6, 3};
  return std::nullopt;
}

Result<ModelSpec> resnet(const ModelSection& model) {
  const ResnetSection& section = model.resnet;
  if (Status status = check_resnet(section); !status) return tl::unexpected(status.error());
  const bool has_bottlenecks = section.depth == 50;
  ModelSpec spec;
  std::uint64_t channels = 64;
  add_unbiased_convolution(spec, "conv1", section.image[0], channels, section.stem == Stem::kCifar ? 3 : 7);
  add_batch_norm(spec, "bn1", channels);
  for (std::size_t stage = 0; stage < 4; ++stage)
    for (std::uint32_t b = 0; b < (*resnet_blocks(section.depth))[stage]; ++b) {
      const std::string block = "layer" + std::to_string(stage + 1) + "/" + std::to_string(b);
      const std::uint64_t width = std::uint64_t{64} << stage;
      const std::uint64_t out = has_bottlenecks ? 4 * width : width;
      if (has_bottlenecks)
        add_bottleneck_block(spec, block, channels, width, out);
      else
        add_basic_block(spec, block, channels, width);
      if (b == 0 && (stage > 0 || channels != out)) {
        add_unbiased_convolution(spec, block + "/downsample/0", channels, out, 1);
        add_batch_norm(spec, block + "/downsample/1", out);
      }
      channels = out;
    }
  // torch.nn.Linear's initial values
  const Initializer dense = uniform(1.0 / std::sqrt(static_cast<double>(channels)));
  add_variable(spec, "fc/weight", {section.outputs, channels}, dense);
  add_variable(spec, "fc/bias", {section.outputs}, dense);
  spec.columns.push_back(
      {.name = "inputs", .dtype = DType::kFloat32, .shape = {section.image[0], section.image[1], section.image[2]}});
  add_wanted(spec, model, section.outputs);
  return spec;
}

}  // namespace disttrain::builtin
