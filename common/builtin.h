// The variables of the builtin models. They follow from the [model] section of a job file alone. The command line uses
// them to plan memory, and the engine builds exactly these variables.
#pragma once

#include "common/config/job_config.h"
#include "common/model.h"
#include "common/result.h"

namespace disttrain {

// mlp: a network of dense layers. layers[0] is the number of inputs. Layer i has layers[i] inputs and layers[i + 1]
// outputs. Its variables are "layer<i>/weight" [inputs, outputs] and "layer<i>/bias" [outputs]. The activation follows
// every layer except the last.
//
// cnn: inputs of 1 x 28 x 28, and 10 classes.
// - "layer0": 32 convolutions of 5 x 5; weight [32, 1, 5, 5].
// - "layer1": 64 convolutions of 5 x 5; weight [64, 32, 5, 5].
// - "layer2": a dense layer [1024, 512] with the activation and dropout.
// - "layer3": a dense layer [512, 10].
//
// "layer0" and "layer1" don't pad. Each of them is followed by a 2 x 2 maximum and the activation. So the side of the
// image shrinks from 28 to 24, 12, 8 and 4. The network is that of LeCun et al. 1998 with more channels. Classic
// tutorials use padding and 1024 hidden units; that costs three times as much and recognises MNIST no better.
//
// model.initializer gives the initial weights. Biases start at 0.
//
// The models take two columns: "inputs", float32, and with softmax_cross_entropy "labels", whole numbers, otherwise
// "targets", one float32 per output. With labels they have the metric "accuracy".
//
// Fails with kConfig if the builtin is unknown, an mlp can't have these layers, or the model is too large.
Result<ModelSpec> builtin_model(const ModelSection& model);

// The number of values that the model outputs per record.
std::uint64_t output_elements(const ModelSpec& model);

}  // namespace disttrain
