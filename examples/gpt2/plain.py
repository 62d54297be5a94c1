"""A small GPT-2 learns to continue a text, byte by byte. README.md says how to run it."""

import sys
from pathlib import Path

import torch
from torch.utils.data import DataLoader
from transformers import GPT2Config, GPT2LMHeadModel

CONTEXT = 64


def windows(text):
    """The records: windows of CONTEXT bytes. The model itself shifts the labels by one."""
    return [{"input_ids": w, "labels": w} for w in torch.tensor(list(text)).split(CONTEXT) if len(w) == CONTEXT]


text = Path(sys.argv[1] if len(sys.argv) > 1 else "input.txt").read_bytes()
split = len(text) * 9 // 10
training, validation = windows(text[:split]), windows(text[split:])

torch.manual_seed(1)
sizes = {"vocab_size": 256, "n_positions": CONTEXT, "n_embd": 128, "n_layer": 4, "n_head": 4}
dropout = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
model = GPT2LMHeadModel(GPT2Config(**sizes, **dropout, bos_token_id=None, eos_token_id=None))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)


def evaluate(batch):
    return {"loss": model(**batch).loss}


for epoch in range(2):
    for batch in DataLoader(training, batch_size=12, shuffle=True):
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    model.eval()
    with torch.no_grad():
        losses = [evaluate(batch)["loss"] for batch in DataLoader(validation, batch_size=12)]
    model.train()
    print(f"epoch {epoch}: validation loss {torch.stack(losses).mean():.4f}")
