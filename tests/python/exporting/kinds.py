"""The kinds of modules that people export, for kinds_test.py: small models with their loss and their batches."""

import dataclasses
import typing

import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils import parametrizations
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

CLASSES = 3
BOTH = (".pt", ".pt2")
COMPILED = (".pt2",)  # TorchScript loses something, or lacks an operator; the export says so
SCRIPT = (".pt",)


@dataclasses.dataclass
class Kind:
    name: str
    model: typing.Callable  # makes it
    columns: typing.Callable  # of a batch of so many records; "labels" is for the loss, the others for the model in order
    loss: typing.Callable
    formats: tuple = BOTH
    limits: dict = dataclasses.field(default_factory=dict)
    is_random: bool = False  # its steps draw random numbers


KINDS = []


def kind(name, columns, loss=None, **options):
    """Registers a kind whose model the decorated function or class makes."""

    def register(make):
        KINDS.append(Kind(name, make, columns, loss or nn.CrossEntropyLoss(), **options))
        return make

    return register


def classes(size):
    return torch.randint(0, CLASSES, (size,))


def vectors(size):
    return {"inputs": torch.randn(size, 6), "labels": classes(size)}


def images(size):
    return {"inputs": torch.randn(size, 2, 8, 8), "labels": classes(size)}


def series(size):
    return {"inputs": torch.randn(size, 4, 5), "labels": classes(size)}


def tokens(size):
    return {"inputs": torch.randint(0, 9, (size, 4)), "labels": classes(size)}


def numbers(size):
    return {"inputs": torch.randn(size, 6), "labels": torch.randn(size, 2)}


def pictures(size):
    return {"inputs": torch.randn(size, 2, 8, 8), "labels": torch.rand(size, 2, 8, 8)}


def of_vectors(*layers, width=8):
    return nn.Sequential(nn.Linear(6, width), *layers, nn.Linear(width, CLASSES))


def of_images(*layers, channels=4):
    return nn.Sequential(nn.Conv2d(2, channels, 3, padding=1), *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.LazyLinear(CLASSES))


def warm(model, columns):
    """Gives lazy layers their shapes."""
    model.train()
    with torch.no_grad():
        model(*(value for name, value in columns(4).items() if name != "labels"))
    return model


def simple(name, columns, layers, loss=None, **options):
    kind(name, columns, loss, **options)(lambda: warm(layers(), columns))


# Activations and norms.
simple("relu_tanh_sigmoid", vectors, lambda: of_vectors(nn.ReLU(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8), nn.Sigmoid()))
simple("gelu_silu_mish", vectors, lambda: of_vectors(nn.GELU(), nn.Linear(8, 8), nn.SiLU(), nn.Linear(8, 8), nn.Mish()))
simple("prelu_elu_hardswish", vectors, lambda: of_vectors(nn.PReLU(8), nn.ELU(), nn.Linear(8, 8), nn.Hardswish()))
simple("in_place_on_the_input", vectors, lambda: nn.Sequential(nn.ReLU(inplace=True), of_vectors(nn.LeakyReLU(0.1, inplace=True))))
simple("glu_softplus", vectors, lambda: nn.Sequential(nn.Linear(6, 16), nn.GLU(), nn.Softplus(), nn.Linear(8, CLASSES)))
simple("batch_norm_1d", vectors, lambda: of_vectors(nn.BatchNorm1d(8), nn.ReLU()))
simple("batch_norm_2d", images, lambda: of_images(nn.BatchNorm2d(4, momentum=0.3), nn.ReLU()))
simple("batch_norm_variants", vectors, lambda: of_vectors(
    nn.BatchNorm1d(8, momentum=0.01), nn.Linear(8, 8), nn.BatchNorm1d(8, affine=False), nn.Linear(8, 8),
    nn.BatchNorm1d(8, track_running_stats=False)))
simple("layer_norm_rms_norm", vectors, lambda: of_vectors(nn.LayerNorm(8), nn.Linear(8, 8), nn.RMSNorm(8)))
simple("group_norm_instance_norm", images, lambda: of_images(
    nn.GroupNorm(2, 4), nn.InstanceNorm2d(4, affine=True), nn.InstanceNorm2d(4, track_running_stats=True), nn.ReLU()))
simple("local_response_norm", images, lambda: of_images(nn.LocalResponseNorm(2), nn.ReLU()))

# Convolutions and pooling.
simple("conv_1d", series, lambda: nn.Sequential(nn.Conv1d(4, 6, 3, padding=1), nn.ReLU(), nn.MaxPool1d(2), nn.Flatten(),
                                                nn.Linear(12, CLASSES)))
simple("conv_2d_strided_dilated_grouped", images, lambda: of_images(
    nn.Conv2d(4, 8, 3, stride=2, groups=2, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, dilation=2, padding=2, groups=8),
    nn.Conv2d(8, 4, 1, bias=False), nn.ReLU()))
simple("conv_2d_reflect_circular_same", images, lambda: of_images(
    nn.Conv2d(4, 4, 3, padding=1, padding_mode="reflect"), nn.Conv2d(4, 4, 3, padding="same", padding_mode="circular")))
simple("conv_3d", lambda size: {"inputs": torch.randn(size, 1, 3, 4, 4), "labels": classes(size)}, lambda: nn.Sequential(
    nn.Conv3d(1, 3, 2), nn.BatchNorm3d(3), nn.ReLU(), nn.AvgPool3d((2, 3, 3)), nn.Flatten(), nn.Linear(3, CLASSES)))
simple("conv_transposed", pictures, lambda: nn.Sequential(
    nn.Conv2d(2, 4, 3, stride=2, padding=1), nn.ReLU(), nn.ConvTranspose2d(4, 2, 3, stride=2, padding=1, output_padding=1)),
    nn.MSELoss())
simple("max_avg_lp_pooling", images, lambda: of_images(
    nn.MaxPool2d(2, stride=1, padding=1), nn.AvgPool2d(3, stride=2, padding=1, count_include_pad=False), nn.LPPool2d(2, 2)))
simple("adaptive_pooling", images, lambda: nn.Sequential(
    nn.Conv2d(2, 4, 3), nn.AdaptiveMaxPool2d(2), nn.Flatten(), nn.Linear(16, CLASSES)))
simple("pixel_shuffle_upsample", pictures, lambda: nn.Sequential(
    nn.Conv2d(2, 8, 3, stride=2, padding=1), nn.PixelShuffle(2), nn.AvgPool2d(2), nn.Upsample(scale_factor=2, mode="bilinear"),
    nn.Conv2d(2, 2, 3, padding=1), nn.PixelUnshuffle(2), nn.PixelShuffle(2)), nn.L1Loss())


@kind("residual", images)
class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(2, 4, 3, padding=1)
        self.block = nn.Sequential(nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.Conv2d(4, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4))
        self.head = nn.Linear(4, CLASSES)

    def forward(self, inputs):
        hidden = self.first(inputs)
        return self.head(functional.relu(hidden + self.block(hidden)).mean((2, 3)))


@kind("u_net", pictures, nn.BCEWithLogitsLoss())
class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.deep = nn.Conv2d(2, 3, 3, padding=1), nn.Conv2d(3, 4, 3, padding=1)
        self.up, self.last = nn.ConvTranspose2d(4, 3, 2, stride=2), nn.Conv2d(6, 2, 1)

    def forward(self, inputs):
        first = functional.relu(self.down(inputs))
        deep = functional.relu(self.deep(functional.max_pool2d(first, 2)))
        return self.last(torch.cat([first, self.up(deep)], 1))


# Texts and series.
@kind("embedding_with_padding", tokens)
class Embedded(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(9, 6, padding_idx=0)
        self.head = nn.Linear(6, CLASSES)

    def forward(self, inputs):
        there = (inputs != 0).unsqueeze(-1)
        return self.head((self.table(inputs) * there).sum(1) / there.sum(1).clamp(min=1))


@kind("embedding_bag", lambda size: {**tokens(size), "weights": torch.rand(size, 4)})
class Bags(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean, self.weighted = nn.EmbeddingBag(9, 6, mode="mean"), nn.EmbeddingBag(9, 6, mode="sum")
        self.head = nn.Linear(12, CLASSES)

    def forward(self, inputs, weights):
        return self.head(torch.cat([self.mean(inputs), self.weighted(inputs, per_sample_weights=weights)], 1))


@kind("tied_weights", lambda size: {"inputs": torch.randint(0, 9, (size, 4)), "labels": torch.randint(0, 9, (size, 4))},
      lambda outputs, labels: functional.cross_entropy(outputs.flatten(0, 1), labels.flatten()))
class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.middle, self.head = nn.Embedding(9, 6), nn.Linear(6, 6), nn.Linear(6, 9)
        self.head.weight = self.table.weight

    def forward(self, inputs):
        return self.head(self.middle(self.table(inputs)).tanh())


class Recurrent(nn.Module):
    def __init__(self, cells):
        super().__init__()
        self.cells = cells
        self.head = nn.LazyLinear(CLASSES)

    def forward(self, inputs):
        return self.head(self.cells(inputs)[0].mean(1))


simple("lstm_bidirectional", series, lambda: Recurrent(nn.LSTM(5, 4, 2, batch_first=True, bidirectional=True)))
simple("gru_rnn", series, lambda: Recurrent(nn.GRU(5, 4, batch_first=True)))


@kind("lstm_cell", series)
class Cells(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.LSTMCell(5, 4), nn.Linear(4, CLASSES)

    def forward(self, inputs):
        hidden = cell = inputs.new_zeros(inputs.shape[0], 4)
        for step in inputs.unbind(1):
            hidden, cell = self.cell(step, (hidden, cell))
        return self.head(hidden)


@kind("gru_with_packed_lengths", lambda size: {**series(size), "lengths": torch.randint(1, 5, (size,))}, formats=SCRIPT,
      limits={"lengths": None})
class Packed(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells, self.head = nn.GRU(5, 4, batch_first=True), nn.Linear(4, CLASSES)

    def forward(self, inputs, lengths):
        packed = pack_padded_sequence(inputs, lengths, batch_first=True, enforce_sorted=False)
        outputs, _ = pad_packed_sequence(self.cells(packed)[0], batch_first=True, total_length=4)
        return self.head(outputs.sum(1))


@kind("attention_with_a_mask", lambda size: {**series(size), "hidden": torch.randint(0, 2, (size, 4), dtype=torch.uint8)})
class Attending(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter, self.attention, self.head = nn.Linear(5, 4), nn.MultiheadAttention(4, 2, batch_first=True), nn.Linear(4, CLASSES)

    def forward(self, inputs, hidden):
        entered = self.enter(inputs)
        # The first place is never hidden.
        hidden = torch.cat([torch.zeros_like(hidden[:, :1]), hidden[:, 1:]], 1).bool()
        return self.head(self.attention(entered, entered, entered, key_padding_mask=hidden)[0].mean(1))


@kind("transformer_with_positions", tokens)
class Transformer(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(9, 8)
        self.learned = nn.Parameter(torch.randn(4, 8) * 0.1)
        place = torch.arange(4).unsqueeze(1) / 10 ** torch.arange(4)
        self.register_buffer("places", torch.cat([place.sin(), place.cos()], 1), persistent=False)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 12, 0.0, batch_first=True, norm_first=True), 2,
                                             enable_nested_tensor=False)
        self.head = nn.Linear(8, CLASSES)

    def forward(self, inputs):
        hidden = self.table(inputs) + self.learned + self.places
        mask = nn.Transformer.generate_square_subsequent_mask(4)
        return self.head(self.encoder(hidden, mask=mask, is_causal=True)[:, -1])


@kind("scaled_dot_product_attention", series)
class Products(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix, self.head = nn.Linear(5, 12), nn.Linear(4, CLASSES)

    def forward(self, inputs):
        query, key, value = (each.unflatten(-1, (2, 2)).transpose(1, 2) for each in self.mix(inputs).chunk(3, -1))
        return self.head(functional.scaled_dot_product_attention(query, key, value, is_causal=True).transpose(1, 2).flatten(2).mean(1))


# Losses.
simple("loss_with_weights_and_smoothing", vectors, lambda: of_vectors(nn.ReLU()),
       nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 0.5]), label_smoothing=0.1))
simple("loss_with_ignored_classes", lambda size: {"inputs": torch.randn(size, 6), "labels": torch.cat([classes(size - 1), torch.tensor([-100])])},
       lambda: of_vectors(nn.ReLU()), nn.CrossEntropyLoss(ignore_index=-100), limits={"labels": None})
simple("loss_for_each_record", vectors, lambda: of_vectors(nn.ReLU()), nn.CrossEntropyLoss(reduction="none"))
simple("loss_of_probabilities", lambda size: {"inputs": torch.randn(size, 6), "labels": torch.rand(size, CLASSES).softmax(1)},
       lambda: of_vectors(nn.ReLU()), lambda outputs, labels: functional.kl_div(outputs.log_softmax(1), labels, reduction="batchmean"))
simple("losses_mixed", numbers, lambda: nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2)),
       lambda outputs, labels: functional.smooth_l1_loss(outputs, labels) + 0.3 * functional.huber_loss(outputs, labels, delta=0.5)
       + 0.1 * (1 - functional.cosine_similarity(outputs, labels).mean()))
simple("loss_nll_and_multi_margin", vectors, lambda: of_vectors(nn.ReLU()),
       lambda outputs, labels: functional.nll_loss(outputs.log_softmax(1), labels) + functional.multi_margin_loss(outputs, labels))


# Several inputs and outputs.
@kind("siamese", lambda size: {"inputs": torch.randn(size, 6), "second": torch.randn(size, 6), "labels": torch.randint(0, 2, (size,)) * 2.0 - 1},
      lambda outputs, labels: functional.cosine_embedding_loss(*outputs, labels, margin=0.1))
class Siamese(nn.Module):
    def __init__(self):
        super().__init__()
        self.shared = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 4))

    def forward(self, inputs, second):
        return self.shared(inputs), self.shared(second)


@kind("dict_of_outputs", vectors, lambda outputs, labels: functional.cross_entropy(outputs["logits"], labels) + 0.1 * outputs["size"])
class Described(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(6, 8), nn.Linear(8, CLASSES)

    def forward(self, inputs):
        hidden = self.first(inputs).relu()
        return {"logits": self.last(hidden), "size": hidden.square().mean()}


@kind("einsum_bilinear", vectors)
class Bilinear(nn.Module):
    def __init__(self):
        super().__init__()
        self.pairs, self.weight = nn.Bilinear(6, 6, 4), nn.Parameter(torch.randn(4, 6, CLASSES) * 0.3)

    def forward(self, inputs):
        return torch.einsum("bi,bj,ijc->bc", self.pairs(inputs, inputs), inputs, self.weight)


@kind("mixture_of_experts", vectors)
class Experts(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(6, 3)
        self.experts = nn.ModuleList(nn.Linear(6, CLASSES) for _ in range(3))

    def forward(self, inputs):
        best, chosen = self.gate(inputs).softmax(-1).topk(2, -1)
        outputs = torch.stack([expert(inputs) for expert in self.experts], 1)
        return (outputs.gather(1, chosen.unsqueeze(-1).expand(-1, -1, CLASSES)) * best.unsqueeze(-1)).sum(1)


# Parametrizations and state.
@kind("weight_norm", vectors)
def weight_norm():
    return of_vectors(parametrizations.weight_norm(nn.Linear(8, 8)), nn.ReLU())


@kind("spectral_norm", vectors, formats=COMPILED)
def spectral_norm():
    return of_vectors(parametrizations.spectral_norm(nn.Linear(8, 8)), nn.ReLU())


@kind("old_weight_norm", vectors)
def old_weight_norm():
    return of_vectors(nn.utils.weight_norm(nn.Linear(8, 8)), nn.ReLU())


@kind("orthogonal", vectors)
def orthogonal():
    return of_vectors(parametrizations.orthogonal(nn.Linear(8, 8), orthogonal_map="cayley"), nn.ReLU())


@kind("running_average_of_ones_own", vectors)
class Running(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(6, 8), nn.Linear(8, CLASSES)
        self.register_buffer("center", torch.zeros(8))
        self.register_buffer("steps", torch.tensor(0))

    def forward(self, inputs):
        hidden = self.first(inputs)
        if self.training:
            self.steps += 1
            self.center.mul_(0.9).add_(hidden.detach().mean(0), alpha=0.1)
        return self.last((hidden - self.center).tanh())


@kind("frozen_layers", vectors)
def frozen_layers():
    model = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, CLASSES))
    model[0].requires_grad_(False)
    model[1].eval()
    return model


@kind("constants", vectors)
class Constants(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(6, 8), nn.Linear(8, CLASSES)
        self.scale, self.several, self.array = torch.rand(8), [torch.rand(8), torch.arange(8)], torch.rand(8).numpy()
        self.chosen = torch.tensor([2, 0, 1])

    def forward(self, inputs, default=torch.tensor([1.0, 2.0, 3.0])):
        hidden = self.first(inputs) * self.scale + torch.tensor(0.5) + self.several[0] * self.several[1]
        return (self.last(hidden * torch.from_numpy(self.array)) * default)[:, self.chosen]


@kind("float64", lambda size: {"inputs": torch.randn(size, 6, dtype=torch.float64), "labels": classes(size)})
def float64():
    return of_vectors(nn.BatchNorm1d(8), nn.ReLU()).double()


@kind("scripted_control_flow", vectors, formats=SCRIPT)
def scripted():
    class Deciding(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.last = nn.Linear(6, 8), nn.Linear(8, CLASSES)

        def forward(self, inputs):
            hidden = self.first(inputs)
            for _ in range(3):
                if bool(hidden.mean() > 0):
                    hidden = hidden - 1
                else:
                    hidden = hidden * 2 + 0.5
            return self.last(hidden)

    return torch.jit.script(Deciding())


# With random numbers. compiled_kinds_test.py takes the first one, unless PART names others.
@kind("mixup", vectors, is_random=True)
class Mixup(nn.Module):
    """Mixes each record with another one."""

    def __init__(self):
        super().__init__()
        self.layers = of_vectors(nn.ReLU())

    def forward(self, inputs):
        if self.training:
            inputs = 0.7 * inputs + 0.3 * inputs[torch.randperm(inputs.shape[0])]
        return self.layers(inputs)


simple("dropout", vectors, lambda: of_vectors(nn.Dropout(0.4), nn.ReLU(), nn.AlphaDropout(0.2)), is_random=True)
simple("dropout_2d", images, lambda: of_images(nn.Dropout2d(0.4), nn.ReLU()), is_random=True)


@kind("variational", lambda size: {"inputs": torch.rand(size, 6), "labels": torch.rand(size, 6)},
      lambda outputs, labels: functional.binary_cross_entropy_with_logits(outputs[0], labels) + 0.1 * outputs[1], is_random=True)
class Variational(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(6, 8), nn.Linear(4, 6)

    def forward(self, inputs):
        mean, log_variance = self.encoder(inputs).chunk(2, 1)
        noise = torch.randn_like(mean) if self.training else torch.zeros_like(mean)
        divergence = -0.5 * (1 + log_variance - mean.square() - log_variance.exp()).sum(1).mean()
        return self.decoder(mean + (0.5 * log_variance).exp() * noise), divergence
