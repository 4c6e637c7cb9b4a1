from dataclasses import dataclass

from transformers import AutoModelForSequenceClassification, HfArgumentParser, Trainer, TrainingArguments


@dataclass
class ModelArguments:
    model: str = "distilbert-base-uncased"


def main():
    parser = HfArgumentParser((ModelArguments, TrainingArguments))
    model_args, training_args = parser.parse_args_into_dataclasses()
    model = AutoModelForSequenceClassification.from_pretrained(model_args.model)
    trainer = Trainer(model=model, args=training_args, train_dataset=[], eval_dataset=[])
    trainer.train()


main()
