"""Fine-tuning a pretrained encoder with accelerate: prepared objects, accumulation, gathered metrics."""

import argparse
import math

import torch
from accelerate import Accelerator
from datasets import load_dataset
from torch.utils.data import DataLoader
from tqdm.auto import tqdm
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    DataCollatorWithPadding,
    get_linear_schedule_with_warmup,
)


def get_dataloaders(accelerator, args):
    tokenizer = AutoTokenizer.from_pretrained(args.model_name)
    raw = load_dataset("glue", "mrpc")

    def tokenize(examples):
        return tokenizer(examples["sentence1"], examples["sentence2"], truncation=True, max_length=128)

    with accelerator.main_process_first():
        tokenized = raw.map(tokenize, batched=True, remove_columns=["idx", "sentence1", "sentence2"])
    tokenized = tokenized.rename_column("label", "labels")
    collate = DataCollatorWithPadding(tokenizer, pad_to_multiple_of=8)
    options = {"collate_fn": collate, "num_workers": 2, "pin_memory": True, "persistent_workers": True}
    train = DataLoader(tokenized["train"], batch_size=args.batch_size, shuffle=True, **options)
    valid = DataLoader(tokenized["validation"], batch_size=2 * args.batch_size, **options)
    return train, valid


def evaluate(model, eval_dataloader, accelerator):
    model.eval()
    correct, total = 0, 0
    for batch in eval_dataloader:
        with torch.no_grad():
            outputs = model(**batch)
        predictions = outputs.logits.argmax(dim=-1)
        predictions, references = accelerator.gather_for_metrics((predictions, batch["labels"]))
        correct += (predictions == references).sum()
        total += references.size(0)
    return correct.item() / total


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--model_name", default="bert-base-cased")
    parser.add_argument("--batch_size", type=int, default=16)
    parser.add_argument("--accumulation", type=int, default=4)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=2e-5)
    args = parser.parse_args()

    accelerator = Accelerator(mixed_precision="fp16", gradient_accumulation_steps=args.accumulation)
    train_dataloader, eval_dataloader = get_dataloaders(accelerator, args)
    model = AutoModelForSequenceClassification.from_pretrained(args.model_name)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
    total_steps = args.epochs * math.ceil(len(train_dataloader) / args.accumulation)
    scheduler = get_linear_schedule_with_warmup(optimizer, 100, total_steps)
    model, optimizer, train_dataloader, eval_dataloader, scheduler = accelerator.prepare(
        model, optimizer, train_dataloader, eval_dataloader, scheduler
    )

    for epoch in range(args.epochs):
        model.train()
        total_loss = 0
        for batch in tqdm(train_dataloader, disable=not accelerator.is_local_main_process):
            with accelerator.accumulate(model):
                loss = model(**batch).loss
                total_loss += loss.detach().float()
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
        accuracy = evaluate(model, eval_dataloader, accelerator)
        accelerator.print(
            f"epoch {epoch}: loss {total_loss.item() / len(train_dataloader):.4f}, accuracy {accuracy:.4f}"
        )
    accelerator.wait_for_everyone()
    accelerator.unwrap_model(model).save_pretrained("out", save_function=accelerator.save)


if __name__ == "__main__":
    main()
