"""The variables of a model: which it has, of which kind, and with which values."""

import contextlib
import dataclasses

import torch

from disttrain.exporting.batch import DTYPES as COLUMN_DTYPES
from disttrain.exporting.errors import ExportError, LayerTracker
from disttrain.wrapping import kind_of

TRAINABLE, STATE, FROZEN = "trainable", "state", "frozen"
# Begins the names of the loss's buffers. No layer's name has a colon.
LOSS = "loss:"
# State of integers is carried as float32, which holds integers up to this number exactly.
LARGEST_EXACT = 2**24
STATE_DTYPES = {**COLUMN_DTYPES, torch.int8: "int8", torch.int16: "int16", torch.bool: "bool"}


@dataclasses.dataclass
class Variable:
    """Trainable variables and state enter and leave a program in `carried_dtype`. Frozen ones enter it as they are."""

    name: str
    kind: str
    tensor: torch.Tensor  # the model's own, on the CPU
    persistent: bool  # whether state_dict() has it

    @property
    def carried_dtype(self):
        """The cluster keeps float64 as it is, and all other types as float32."""
        if self.kind == FROZEN or self.tensor.dtype == torch.float64:
            return self.tensor.dtype
        return torch.float32

    @property
    def carried(self):
        """The value as it enters a program."""
        return self.tensor.detach().to(self.carried_dtype).contiguous()

    def described(self):
        return {
            "name": self.name,
            "kind": self.kind,
            "shape": list(self.tensor.shape),
            "dtype": STATE_DTYPES[self.tensor.dtype],
            "persistent": self.persistent,
        }


class DescribedModel:
    """A model with the loss's buffers, which are frozen variables named LOSS + NAME that state_dict() doesn't have."""

    def __init__(self, model, loss, variables, aliases):
        self.model = model
        self.loss = loss
        self.variables = variables
        self.aliases = aliases  # other names of variables, as tied parameters have -> the variable
        self.layers = LayerTracker(model)
        self.trains = {module: module.training for module in model.modules()}
        if not model.training:
            self.trains = dict.fromkeys(self.trains, True)

    @contextlib.contextmanager
    def tracing_mode(self):
        """Restores the modules' training flags and the state of the random numbers at its end."""
        before = {module: module.training for module in self.model.modules()}
        try:
            with torch.random.fork_rng(devices=[]):
                yield
        finally:
            for module, training in before.items():
                module.training = training

    @contextlib.contextmanager
    def unchanged_attributes(self):
        """Restores what forward() keeps in attributes of layers, such as a trace's tensors without values."""
        kept = {module: dict(module.__dict__) for module in self._all_modules()}
        try:
            yield
        finally:
            for module, attributes in kept.items():
                module.__dict__.clear()
                module.__dict__.update(attributes)

    def attributes(self):
        """The numbers of Python, and the tensors that are no variables, of the layers and the loss: (layer, attribute) ->
        value."""
        owners = [(module, self.layers.name_of(module)) for module in self.trains]
        if isinstance(self.loss, torch.nn.Module):
            owners += [(module, "the loss") for module in self.loss.modules()]
        elif hasattr(self.loss, "__dict__"):
            owners.append((self.loss, "the loss"))
        return {
            (owner, name): value
            for each, owner in owners
            for name, value in vars(each).items()
            if name != "training" and isinstance(value, (int, float, complex, torch.Tensor))
        }

    def _all_modules(self):
        return [*self.trains, *(self.loss.modules() if isinstance(self.loss, torch.nn.Module) else ())]

    def set_training(self, training):
        for module, trains in self.trains.items():
            module.training = training and trains

    def training_statistics(self):
        """The names of the running statistics that a training step changes."""
        norms = torch.nn.modules.batchnorm._NormBase
        return {
            f"{name}.{buffer}" if name else buffer
            for name, module in self.model.named_modules()
            if isinstance(module, norms) and module.track_running_stats and self.trains[module]
            for buffer in ("running_mean", "running_var")
        }

    def refuse_compiled(self):
        """Layers that torch.jit has compiled run in .pt files only."""
        for module in (*self.trains, self.loss):
            if isinstance(module, (torch.jit.ScriptModule, torch.jit.ScriptFunction)):
                where = self.layers.name_of(module) if module in self.trains else "the loss"
                raise ExportError(
                    f"export: {where} was compiled by torch.jit, which torch.export doesn't take; export to a .pt file, "
                    "or pass the model as it was before torch.jit"
                )

    def of_kind(self, kind):
        return [variable for variable in self.variables if variable.kind == kind]

    @contextlib.contextmanager
    def with_values(self, values):
        """Lets the model and the loss use `values` (a dict by name) in place of their own tensors. Yields a function
        that returns the current value of a variable."""
        from torch.nn.utils.stateless import _reparametrize_module as replaced

        own = {name: value for name, value in values.items() if not name.startswith(LOSS)}
        of_loss = {name[len(LOSS) :]: value for name, value in values.items() if name.startswith(LOSS)}
        with contextlib.ExitStack() as stack:
            stack.enter_context(replaced(self.model, own, tie_weights=True))
            if of_loss:
                stack.enter_context(replaced(self.loss, of_loss))
            yield lambda name: (
                _tensor_at(self.loss, name[len(LOSS) :]) if name.startswith(LOSS) else _tensor_at(self.model, name)
            )


def _tensor_at(module, name):
    for part in name.split("."):
        module = getattr(module, part)
    return module


def describe_model(model, loss):
    if not isinstance(model, torch.nn.Module):
        of_class = isinstance(model, type) and issubclass(model, torch.nn.Module)
        expected = f"an object of it, {model.__name__}(...)" if of_class else "a torch.nn.Module"
        raise ExportError(f"export: model is {kind_of(model)}; expected {expected}")
    if isinstance(loss, type) or not callable(loss):
        raise ExportError(
            f"export: loss is {kind_of(loss)}; expected a function loss(outputs, labels), such as torch.nn.CrossEntropyLoss()"
        )
    if any(hasattr(module, "_orig_mod") for module in model.modules()):
        raise ExportError(
            "export: torch.compile has compiled the model or one of its layers, and export compiles them itself; pass the "
            "model as it was before torch.compile (compiled._orig_mod)"
        )
    _refuse_hooks(model)
    _refuse_sparse_layers(model)
    variables, aliases = [], {}
    saved = list(model.state_dict(keep_vars=True))  # layer by layer: the parameters of a layer, then its buffers
    first_name = {}
    for is_buffer, named in (
        (False, model.named_parameters(remove_duplicate=False)),
        (True, model.named_buffers(remove_duplicate=False)),
    ):
        for name, tensor in named:
            if id(tensor) in first_name:
                aliases[name] = first_name[id(tensor)]
                continue
            first_name[id(tensor)] = name
            # Which buffers are state is found out by Functions.observe().
            kind = FROZEN if is_buffer or not tensor.requires_grad else TRAINABLE
            variables.append(Variable(name, kind, _checked(name, tensor), name in saved))
    place = {name: index for index, name in enumerate(saved)}
    variables.sort(key=lambda variable: place.get(variable.name, len(saved)))
    if isinstance(loss, torch.nn.Module):
        if any(parameter.requires_grad for parameter in loss.parameters()):
            raise ExportError("export: the loss has trainable parameters; make them part of the model")
        for name, tensor in [*loss.named_parameters(), *loss.named_buffers()]:
            variables.append(Variable(LOSS + name, FROZEN, _checked(LOSS + name, tensor), False))
    if not any(variable.kind == TRAINABLE for variable in variables):
        raise ExportError("export: the model has no parameter with requires_grad=True, so there is nothing to train")
    return DescribedModel(model, loss, variables, aliases)


def _refuse_hooks(model):
    """A program gets the values of the parameters, and not the tensors that have the hooks."""
    for name, parameter in model.named_parameters():
        if parameter.requires_grad and (parameter._backward_hooks or parameter._post_accumulate_grad_hooks):
            raise ExportError(
                f'export: parameter "{name}" has a hook, which a program would leave out; expected parameters without hooks: '
                "remove the hook, change the gradient in forward(), or let workers run your script (model.trainer)"
            )


def _refuse_sparse_layers(model):
    for name, module in model.named_modules():
        if isinstance(module, (torch.nn.Embedding, torch.nn.EmbeddingBag)) and module.sparse and module.weight.requires_grad:
            raise ExportError(
                f'export: layer "{name}" ({type(module).__name__}) makes a sparse gradient, which a program can\'t return; use '
                "sparse=False"
            )


def _checked(name, tensor):
    if isinstance(tensor, torch.nn.parameter.UninitializedTensorMixin):
        raise ExportError(f'export: variable "{name}" of a lazy layer has no shape yet; run the model once first')
    if tensor.device.type != "cpu":
        raise ExportError(f'export: variable "{name}" is on device {tensor.device}; call model.cpu() first')
    if tensor.dtype not in STATE_DTYPES:
        raise ExportError(f'export: variable "{name}" has dtype {tensor.dtype}, which a program can\'t take')
    if tensor.is_floating_point() and not torch.isfinite(tensor.detach()).all():
        finite = torch.isfinite(tensor.detach())
        # A mask of attention is a buffer with infinities on purpose; a NaN is a mistake everywhere.
        if tensor.requires_grad or torch.isnan(tensor.detach()).any():
            raise ExportError(
                f'export: variable "{name}" has {int((~finite).sum())} values of {tensor.numel()} that are NaN or '
                "infinite; train or load the model again before the export"
            )
    if tensor.numel() == 0:
        raise ExportError(f'export: variable "{name}" has no elements (shape {list(tensor.shape)}); remove it')
    return tensor
