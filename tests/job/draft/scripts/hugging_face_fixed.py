from transformers import AutoModelForCausalLM, Trainer, TrainingArguments

args = TrainingArguments(
    output_dir="out",
    per_device_train_batch_size=16,
    gradient_accumulation_steps=4,
    dataloader_num_workers=4,
    dataloader_pin_memory=False,
)
trainer = Trainer(AutoModelForCausalLM.from_pretrained("gpt2"), args, train_dataset=[])
trainer.train()
