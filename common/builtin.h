// The builtin models, as everyone except their engine sees them. A pure function of [model]: the command line plans
// with it, and the engine builds exactly these variables.
#pragma once

#include "common/config/job_config.h"
#include "common/model.h"
#include "common/result.h"

namespace disttrain {

// mlp: layers[0] inputs. Layer i maps layers[i] to layers[i + 1] with "layer<i>/weight" [in, out] and "layer<i>/bias"
// [out]. The activation stands between layers, not after the last.
//
// cnn: 1 x 28 x 28 inputs, 10 classes. "layer0": 32 convolutions 5 x 5, weight [32, 1, 5, 5]; "layer1": 64
// convolutions 5 x 5, weight [64, 32, 5, 5], each without padding and followed by a 2 x 2 maximum and the activation
// (28 - 24 - 12 - 8 - 4); "layer2": dense [1024, 512] with the activation and dropout; "layer3": dense [512, 10].
// (LeCun et al. 1998, wider. With padding and 1024 hidden units, as in the classic tutorials, it costs three times as
// much and recognises MNIST no better.)
//
// Weights begin as model.initializer says, biases at 0. With softmax_cross_entropy, classes = outputs; the other losses
// compare with values, and classes = 0.
//
// Errors: kConfig for an unknown builtin, layers that an mlp can't have, or a model that is too large.
Result<ModelSpec> builtin_model(const ModelSection& model);

// Number of values that the model gives per record: the classes, or the length of a target.
std::uint64_t output_elements(const ModelSpec& model);

}  // namespace disttrain
