"""Models of transformers that are small and random, made without a network, and data that they can learn."""

from __future__ import annotations

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from torch.utils.data import Dataset
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertForTokenClassification,
    GPT2Config,
    GPT2LMHeadModel,
    T5Config,
    T5ForConditionalGeneration,
    TrainingArguments,
)

VOCABULARY = 19
BERT = {
    "vocab_size": VOCABULARY,
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 16,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}


def causal(seed: int = 0, vocabulary: int = VOCABULARY) -> GPT2LMHeadModel:
    torch.manual_seed(seed)
    sizes = {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 16, "vocab_size": vocabulary}
    without = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0, "bos_token_id": 1, "eos_token_id": 2}
    return GPT2LMHeadModel(GPT2Config(**sizes, **without))


def sequence_to_sequence(seed: int = 0) -> T5ForConditionalGeneration:
    torch.manual_seed(seed)
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 1, "num_heads": 2, "vocab_size": VOCABULARY}
    return T5ForConditionalGeneration(
        T5Config(**sizes, dropout_rate=0.0, decoder_start_token_id=0, pad_token_id=0)
    )


def classifier(seed: int = 0, labels: int = 3, **options) -> BertForSequenceClassification:
    torch.manual_seed(seed)
    return BertForSequenceClassification(BertConfig(**BERT, num_labels=labels, **options))


def tagger(seed: int = 0, labels: int = 5) -> BertForTokenClassification:
    torch.manual_seed(seed)
    return BertForTokenClassification(BertConfig(**BERT, num_labels=labels))


def masked(seed: int = 0) -> BertForMaskedLM:
    torch.manual_seed(seed)
    return BertForMaskedLM(BertConfig(**BERT))


class Examples(Dataset):
    """Dictionaries of tensors, cut into examples."""

    def __init__(self, **columns: torch.Tensor) -> None:
        self.columns = columns

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, place: int) -> dict[str, torch.Tensor]:
        return {name: column[place] for name, column in self.columns.items()}


def sentences(count: int = 16, length: int = 9, ignored: float = 0.4, seed: int = 0) -> Examples:
    """Tokens and labels, of which some are -100: unevenly many in each sentence."""
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(3, VOCABULARY, (count, length), generator=generator)
    share = torch.rand(count, 1, generator=generator) * 2 * ignored
    labels = tokens.masked_fill(torch.rand(count, length, generator=generator) < share, -100)
    return Examples(input_ids=tokens, attention_mask=torch.ones_like(tokens), labels=labels)


def labelled(count: int = 16, labels: int = 3, seed: int = 0) -> Examples:
    generator = torch.Generator().manual_seed(seed)
    tokens = torch.randint(3, VOCABULARY, (count, 7), generator=generator)
    return Examples(input_ids=tokens, attention_mask=torch.ones_like(tokens), labels=tokens[:, 0] % labels)


def arguments(directory, **options) -> TrainingArguments:
    usual = {
        "output_dir": str(directory),
        "per_device_train_batch_size": 4,
        "per_device_eval_batch_size": 4,
        "max_steps": 3,
        "learning_rate": 1e-2,
        "lr_scheduler_type": "constant",
        "optim": "sgd",
        "report_to": [],
        "use_cpu": True,
        "disable_tqdm": True,
        "logging_steps": 1,
        "save_strategy": "no",
        "seed": 0,
    }
    return TrainingArguments(**(usual | options))


def losses_of(trainer) -> list[float]:
    """What the trainer logged, step after step."""
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


def weights_of(model) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
