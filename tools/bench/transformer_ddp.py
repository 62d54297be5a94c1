"""One rank of the peer of tools/bench/transformer: the same decoder in PyTorch, trained with DistributedDataParallel
over gloo, on the same records and from the same initial values. Rank 0 prints one JSON object.

    transformer_ddp.py RANK RANKS PORT TEXT_FOLDER STEPS WARMUP SEED

Only the steps after the first WARMUP ones count for the speed. The model is written as in nanoGPT, without biases. Its
optimizer is that of examples/shakespeare/job.toml.
"""
import json
import math
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F

import philox

BLOCKS, HEADS, WIDTH, CONTEXT, VOCABULARY, BATCH = 4, 4, 128, 64, 256, 6
RATE, LAST_RATE, WARMUP_STEPS, SCHEDULE_STEPS = 1e-3, 1e-4, 100, 2000


class Block(nn.Module):
    def __init__(self, seed, name):
        super().__init__()
        def linear(part, inputs, outputs, deviation):
            layer = nn.Linear(inputs, outputs, bias=False)
            values = philox.normal(seed, f"{name}/{part}weight", (inputs, outputs), deviation)
            layer.weight = nn.Parameter(torch.from_numpy(values).t().contiguous())
            return layer
        projection = 0.02 / math.sqrt(2 * BLOCKS)
        self.norm1 = nn.LayerNorm(WIDTH, bias=False)
        self.attention = linear("attention/", WIDTH, 3 * WIDTH, 0.02)
        self.attention_projection = linear("attention/projection/", WIDTH, WIDTH, projection)
        self.norm2 = nn.LayerNorm(WIDTH, bias=False)
        self.mlp = linear("mlp/", WIDTH, 4 * WIDTH, 0.02)
        self.mlp_projection = linear("mlp/projection/", 4 * WIDTH, WIDTH, projection)

    def forward(self, x):
        shape = (x.size(0), x.size(1), HEADS, WIDTH // HEADS)
        q, k, v = (part.view(shape).transpose(1, 2) for part in self.attention(self.norm1(x)).split(WIDTH, dim=2))
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.attention_projection(attended.transpose(1, 2).contiguous().view(x.size()))
        return x + self.mlp_projection(F.gelu(self.mlp(self.norm2(x))))


class Decoder(nn.Module):
    def __init__(self, seed):
        super().__init__()
        def embedding(name, rows):
            values = torch.from_numpy(philox.normal(seed, f"{name}_embedding/weight", (rows, WIDTH), 0.02))
            return nn.Embedding.from_pretrained(values, freeze=False)
        self.tokens, self.positions = embedding("token", VOCABULARY), embedding("position", CONTEXT)
        self.blocks = nn.ModuleList(Block(seed, f"block{i}") for i in range(BLOCKS))
        self.norm = nn.LayerNorm(WIDTH, bias=False)
        self.output = nn.Linear(WIDTH, VOCABULARY, bias=False)
        self.output.weight = self.tokens.weight
        self.register_buffer("places", torch.arange(CONTEXT), persistent=False)

    def forward(self, windows):
        """The mean loss of windows [records, CONTEXT + 1]."""
        x = self.tokens(windows[:, :-1]) + self.positions(self.places)
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.output(self.norm(x)).view(-1, VOCABULARY), windows[:, 1:].reshape(-1))


def rate_of(step):
    """The schedule `cosine` with a warm-up: common/update/schedule.h."""
    if step < WARMUP_STEPS:
        return RATE * (step + 1) / WARMUP_STEPS
    done = min(1.0, (step - WARMUP_STEPS) / (SCHEDULE_STEPS - WARMUP_STEPS))
    return LAST_RATE + (RATE - LAST_RATE) * 0.5 * (1.0 + math.cos(math.pi * done))


def windows_of(path, stride):
    """All windows of a file that begin every `stride` bytes."""
    text = torch.frombuffer(bytearray(path.read_bytes()), dtype=torch.uint8)
    return text.unfold(0, CONTEXT + 1, stride)


@torch.no_grad()
def validation_loss(model, windows):
    losses = [model(part.long()).item() * len(part) for part in windows.split(100)]
    return sum(losses) / len(windows)


def main():
    rank, ranks, port, folder, steps, warmup, seed = (int(word) if word.isdigit() else word for word in sys.argv[1:])
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=ranks)
    model = Decoder(seed)
    replica = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True, static_graph=True)
    decayed = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}],
                                  lr=RATE, betas=(0.9, 0.99), fused=True)
    train = windows_of(Path(folder, "train.txt"), 1)
    # In sync, step n of rank r takes the positions from (n * ranks + r) * BATCH on.
    order = torch.from_numpy(philox.epoch_order(seed, 0, len(train)))[:steps * ranks * BATCH].view(steps, ranks, BATCH)
    for step in range(steps):
        if step == warmup:
            dist.barrier()
            begin = time.perf_counter()
        for group in optimizer.param_groups:
            group["lr"] = rate_of(step)
        loss = replica(train[order[step, rank]].long())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        loss.item()  # a user looks at the loss, as disttrain's workers do
    dist.barrier()
    seconds = time.perf_counter() - begin
    if rank == 0:
        print(json.dumps({"steps_per_second": (steps - warmup) / seconds,
                          "validation_loss": validation_loss(model, windows_of(Path(folder, "val.txt"), CONTEXT))}))


if __name__ == "__main__":
    main()
