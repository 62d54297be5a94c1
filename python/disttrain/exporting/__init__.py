"""Exports a PyTorch model as a step program, which workerd trains without Python.

    disttrain.export(model, loss, (images, labels), "step.pt2", metrics={"accuracy": disttrain.metrics.Accuracy()})

The file ends in .pt2 (compiled by torch.export and AOTInductor; workerd never compiles) or in .pt (TorchScript; workerd
computes the gradients by autograd). In both cases it also holds the sidecar (sidecar.py): what disttrain must know of
the model without libtorch, and the initial values of its variables.
"""

from disttrain.exporting.errors import ExportError

__all__ = ["ExportError", "export"]


def export(
    model,
    loss,
    example_batch,
    path,
    *,
    inputs=None,
    labels="labels",
    outputs=None,
    metrics=None,
    limits=None,
    dynamic_batch=True,
    dtype=None,
    cpu=None,
    say=print,
):
    """Writes the training programs of `model` to `path`.

    model: a torch.nn.Module. Its parameters and buffers are the initial values, and keep their names. Parameters with
        requires_grad=False are frozen: they aren't sent, but an exported checkpoint has them. Buffers that a training
        step changes (batch norm's statistics) are state. If model.training is set, each of its modules keeps its own
        training flag in a step, so a batch norm in eval mode stays frozen. Otherwise all modules train.
    loss: loss(outputs, labels) returns the mean over the batch, or one value per record. Any callable, such as
        torch.nn.CrossEntropyLoss(). It may not have trainable parameters.
    example_batch: a dict from column names to tensors, whose first dimension is the batch's. A tuple (x, y) is short for
        {"inputs": x, "labels": y}. At least 2 records. Programs are compared with the model on values in the range of these,
        so zeros will do.
    inputs: the names of the columns that the model gets, in order, as positional arguments. Default: all but the labels,
        by their names if forward() has arguments of these names, and else in the order of the dict.
    labels: the name of the column that the loss gets, or a list of names (then the loss gets a dict of these columns),
        or None for a loss of the outputs alone.
    outputs: outputs(what the model returned) is the tensor that metrics and predictions get. Default: the tensor itself,
        or its `logits`, or the first entry of a tuple. The loss gets what the model returned.
    metrics: a dict from names to disttrain.metrics, such as {"accuracy": Accuracy(), "top_5": TopK(5)}.
    limits: a dict from names of integer columns to the number of values that are allowed: 0 to limit - 1. Needed for
        columns of int32 and int64, and of uint8 that the model converts to these, unless the export sees by itself that
        the column goes to an embedding, a cross entropy or one_hot. A compiled program doesn't survive an index out of
        range, so workerd checks the limits. None: the column is no index, any value is allowed.
    dynamic_batch: the programs take batches of any size. False: exactly as many records as example_batch has.
    dtype: torch.float16 or torch.bfloat16: computes with autocast to this type. Variables stay float32. Default: as the
        model computes.
    cpu: "x86-64-v3" (AVX2) or "x86-64-v4" (AVX-512): the oldest processors that can run the .pt2. Default: the best that
        this machine has. TorchScript files run everywhere.
    say: gets lines on what the export does; compiling takes a minute. None: silent.

    Raises ExportError, whose message names the layer where it can. What the model takes from Python and what differs from
    process to process, such as the clock, is such an error as far as the export can see it. It can't see the order of a set
    of texts, an object's address in its repr(), environment variables, files, the machine's name, and what a module has
    read at its import: a program keeps the values that the export got.
    """
    from disttrain.exporting.batch import describe_batch
    from disttrain.exporting.errors import check_folder
    from disttrain.exporting.model import describe_model
    from disttrain.exporting.programs import Functions
    from disttrain.exporting.repeats import check_repeats

    say = say or (lambda line: None)
    path = str(path)
    if not path.endswith((".pt2", ".pt")):
        raise ExportError(f'export: the file name "{path}" ends neither in .pt2 (compiled) nor in .pt (TorchScript)')
    check_folder(path)
    batch = describe_batch(example_batch, inputs, labels, dynamic_batch, model)
    described = describe_model(model, loss)
    with described.tracing_mode(), described.unchanged_attributes():
        functions = Functions(described, loss, batch, outputs, metrics or {}, dtype)
        batch.set_limits(functions.observe(), limits or {})
        check_repeats(functions)  # first: losses that differ by chance may look like a sum
        functions.refuse_sum()
        if path.endswith(".pt2"):
            described.refuse_compiled()
            from disttrain.exporting.pt2 import write
        else:
            from disttrain.exporting.torchscript import write
        write(path, functions, cpu, say)
