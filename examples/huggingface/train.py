"""A small GPT-2 of the package transformers learns to continue a text, byte by byte: the trainer of job.toml."""

import disttrain
import torch
from transformers import GPT2Config, GPT2LMHeadModel

job = disttrain.init()
torch.manual_seed(job.seed)
sizes = {"vocab_size": 256, "n_positions": 64, "n_embd": 128, "n_layer": 4, "n_head": 4}
dropout = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
model = GPT2LMHeadModel(GPT2Config(**sizes, **dropout, bos_token_id=None, eos_token_id=None))
job.wrap(model)


def loss_of(batch):
    """The mean loss of windows of the text. The model itself shifts the labels by one."""
    tokens = batch.inputs.long()
    return model(input_ids=tokens, labels=tokens).loss


@job.on_evaluate
def evaluate(batch):
    return {"loss": loss_of(batch)}


for batch in job.batches():  # the records of [data] in job.toml
    loss = loss_of(batch)
    loss.backward()
    job.step(loss=loss)
