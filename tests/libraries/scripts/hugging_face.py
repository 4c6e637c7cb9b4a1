"""Hugging Face's Trainer, which evaluates every few steps."""

from common import BATCH, EPOCHS, Model, Rows
from transformers import Trainer, TrainingArguments

if __name__ == "__main__":
    arguments = TrainingArguments(
        output_dir="/tmp/out",
        num_train_epochs=EPOCHS,
        per_device_train_batch_size=BATCH,
        per_device_eval_batch_size=BATCH,
        eval_strategy="steps",
        eval_steps=5,
        dataloader_num_workers=2,
        prediction_loss_only=True,
        remove_unused_columns=False,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
    )
    Trainer(Model(), arguments, train_dataset=Rows(), eval_dataset=Rows(8)).train()
