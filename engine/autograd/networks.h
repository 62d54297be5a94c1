// The forward pass of each builtin model (common/builtin/builtin.h).
#pragma once

#include <ATen/core/Tensor.h>

#include "common/config/job_config.h"
#include "engine/autograd/pass.h"

namespace disttrain::workerd::autograd {

// Returns the outputs, [rows, outputs]: the arguments of the loss. A row is a record; for a transformer it is a token.
// The first dimension of all columns is the number of records. May throw BadRecord and c10::Error.
using Network = at::Tensor (*)(const ModelSection& model, Pass& pass);

at::Tensor mlp(const ModelSection& model, Pass& pass);  // also linear
at::Tensor cnn(const ModelSection& model, Pass& pass);
at::Tensor resnet(const ModelSection& model, Pass& pass);
at::Tensor transformer(const ModelSection& model, Pass& pass);
at::Tensor matrix_factorization(const ModelSection& model, Pass& pass);
at::Tensor wide_deep(const ModelSection& model, Pass& pass);

}  // namespace disttrain::workerd::autograd
