"""Fine-tunes a tiny BERT with Hugging Face's Trainer on sentences made here: nothing is downloaded."""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from torch.utils.data import Dataset
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    DataCollatorWithPadding,
    EvalPrediction,
    HfArgumentParser,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
    set_seed,
)

LONGEST = 24  # tokens, with [CLS] and [SEP]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
GOOD, BAD = ["good", "fine", "great", "warm"], ["bad", "poor", "awful", "cold"]
OTHER = ["the", "soup", "was", "and", "we", "sat", "by", "a", "window", "then", "tea", "came", "with", "bread"]


@dataclass
class Sentences:
    """How many sentences there are."""

    train_sentences: int = field(default=768, metadata={"help": "sentences to train on"})
    test_sentences: int = field(default=256, metadata={"help": "sentences to test on"})


class Reviews(Dataset[dict[str, Any]]):
    """Sentences of different lengths with one word that says what was thought of it."""

    def __init__(self, count: int, seed: int, tokenizer: PreTrainedTokenizerFast) -> None:
        drawn = random.Random(seed)
        self.labels = [drawn.randrange(2) for _ in range(count)]
        texts = []
        for label in self.labels:
            words = drawn.choices(OTHER, k=drawn.randrange(4, LONGEST - 2))
            words[drawn.randrange(len(words))] = drawn.choice(GOOD if label else BAD)
            texts.append(" ".join(words))
        self.encoded = tokenizer(texts, truncation=True, max_length=LONGEST)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {
            **{key: self.encoded[key][index] for key in ("input_ids", "attention_mask")},
            "label": self.labels[index],
        }


def tokenizer() -> PreTrainedTokenizerFast:
    """Return a tokenizer of whole words; a real job loads one from its own files with from_pretrained(FOLDER)."""
    words = {word: number for number, word in enumerate(SPECIAL + GOOD + BAD + OTHER)}
    whole = Tokenizer(models.WordLevel(words, unk_token="[UNK]"))
    whole.pre_tokenizer = pre_tokenizers.Whitespace()
    whole.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[(each, words[each]) for each in ("[CLS]", "[SEP]")]
    )
    named = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    return PreTrainedTokenizerFast(tokenizer_object=whole, model_max_length=LONGEST, **named)


def accuracy(told: EvalPrediction) -> dict[str, float]:
    """Return the share of sentences that were understood."""
    return {"accuracy": float((np.argmax(told.predictions, axis=1) == told.label_ids).mean())}


def main() -> None:
    """Train, then test once. The command line has all of TrainingArguments, --dataloader_num_workers too."""
    parser = HfArgumentParser((Sentences, TrainingArguments))
    parser.set_defaults(
        **{"output_dir": "/tmp/hugging-face", "learning_rate": 5e-3, "num_train_epochs": 3},
        **{"save_strategy": "no", "report_to": "none", "logging_steps": 8, "disable_tqdm": True, "use_cpu": True},
    )
    sentences, arguments = parser.parse_args_into_dataclasses()
    set_seed(arguments.seed)
    words = tokenizer()
    small = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    untrained = {"initializer_range": 0.1, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    # A real job: BertForSequenceClassification.from_pretrained(FOLDER)
    model = BertForSequenceClassification(
        BertConfig(vocab_size=len(words), max_position_embeddings=LONGEST, **small, **untrained)
    )
    trainer = Trainer(
        model=model,
        args=arguments,
        train_dataset=Reviews(sentences.train_sentences, 1, words),
        eval_dataset=Reviews(sentences.test_sentences, 2, words),
        data_collator=DataCollatorWithPadding(words),  # pads to the longest of the batch, in the worker
        compute_metrics=accuracy,
    )
    trainer.train()
    tested = trainer.evaluate()
    print(f"test accuracy {tested['eval_accuracy']:.4f} on {sentences.test_sentences} unseen sentences", flush=True)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
